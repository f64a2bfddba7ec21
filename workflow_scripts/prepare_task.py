"""Rule prepare_task: the rows of a task, what it looks up, a sample of that for metrics, and its baselines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from layerwise.data.prepare import write_dataset
from layerwise.progress import rule_log
from layerwise.records import read_record, write_record
from layerwise.samples import balanced_sample, new_samples, read_samples
from layerwise.tasks.files import write_task
from layerwise.tasks.registry import load_kind
from layerwise.tasks.rows import task_rows

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(parent: str, baselines_file: str, sample_folder: str, name: str, options: dict[str, Any]) -> None:
    """Prepare task ``name`` from the dataset in folder ``parent``."""
    folder, origin = Path(baselines_file).parent, Path(parent).parent
    facts = read_record(origin / "manifest.json", "origin", "licence")
    kept = {key: facts[key] for key in ("origin", "licence")} | {"source": {"task": name}, "sample": None}
    judged = pd.read_parquet(origin / "pairs.parquet")
    frame, kind = read_samples(parent), load_kind(options["type"])
    write_task(folder / "task", name, options, task_rows(name, options, frame, judged if len(judged) else None))
    task = kind.load(folder / "task")
    samples = kind.samples(folder / "task", frame, origin)
    write_dataset(folder, name, new_samples(samples), kept, empty_allowed=True)
    tested = samples[(samples["split"] == "test") & (samples["text"].str.strip().ne("") if "text" in samples else True)]
    sampled = balanced_sample(tested, max(options["sample"], 1), options["seed"])
    write_dataset(Path(sample_folder), f"{name}~sample", new_samples(sampled), kept)
    record = {"task": name, "type": task.type, "main_score": task.main_score}
    write_record(baselines_file, record | {"baselines": kind.baselines(task, samples, folder)})


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"prepare_task {snakemake.wildcards.task}"):
        main(
            snakemake.input.samples,
            snakemake.output.baselines,
            str(Path(snakemake.output.sample).parent),
            snakemake.wildcards.task,
            snakemake.params.options,
        )
