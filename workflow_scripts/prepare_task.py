"""Rule prepare_task: the rows of a task, what it looks up, a sample of that for metrics, and its baselines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise.data.prepare import write_dataset
from layerwise.progress import rule_log
from layerwise.records import write_record
from layerwise.samples import balanced_sample, new_samples, read_samples
from layerwise.tasks.registry import load_kind, load_task_source

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(
    parent: str | None, baselines_file: str, sample_folder: str, name: str, source: str, options: dict[str, Any]
) -> None:
    """Prepare task ``name`` from its own ``source``, or from the samples ``parent`` of the dataset it is drawn from."""
    folder, origin = Path(baselines_file).parent, Path(parent).parent if parent else None
    facts = load_task_source(source).prepare(folder / "task", name, options, origin)
    kept = facts | {"source": {"task": name}, "sample": None}
    kind = load_kind(options["type"])
    samples = kind.samples(folder / "task", read_samples(parent) if parent else None, origin or folder)
    if "occurrences" in samples:  # of texts
        n_texts = int(samples["occurrences"].sum())
        kept |= {"n_texts": n_texts, "n_duplicates": n_texts - len(samples)}
    write_dataset(folder, name, new_samples(samples), kept, empty_allowed=True)
    tested = samples[(samples["split"] == "test") & (samples["text"].str.strip().ne("") if "text" in samples else True)]
    sampled = balanced_sample(tested, max(options["sample"], 1), options["seed"])
    write_dataset(Path(sample_folder), f"{name}~sample", new_samples(sampled), kept)
    task = kind.load(folder / "task")
    record = {"task": name, "type": task.type, "main_score": task.main_score}
    write_record(baselines_file, record | {"baselines": kind.baselines(task, samples, folder)})


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"prepare_task {snakemake.wildcards.task}"):
        main(
            snakemake.input.get("samples"),
            snakemake.output.baselines,
            str(Path(snakemake.output.sample).parent),
            snakemake.wildcards.task,
            snakemake.params.source,
            snakemake.params.options,
        )
