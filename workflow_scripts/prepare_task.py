"""Rule prepare_task: the rows of a task, the texts it looks up, a sample of them for metrics, and its baselines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from layerwise.data.prepare import write_dataset
from layerwise.progress import rule_log
from layerwise.records import read_record, write_record
from layerwise.samples import balanced_sample, new_samples, read_samples
from layerwise.tasks.baselines import baselines
from layerwise.tasks.benchmark import TaskFiles
from layerwise.tasks.prepare import recorded_texts, write_task
from layerwise.tasks.rows import task_rows

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(parent: str, baselines_file: str, sample_folder: str, name: str, options: dict[str, Any]) -> None:
    """Prepare task ``name`` from the dataset in folder ``parent``."""
    folder, origin = Path(baselines_file).parent, Path(parent).parent
    facts = read_record(origin / "manifest.json", "origin", "licence")
    kept = {key: facts[key] for key in ("origin", "licence")} | {"source": {"task": name}, "sample": None}
    judged = pd.read_parquet(origin / "pairs.parquet")
    rows = task_rows(name, options, read_samples(parent), judged if len(judged) else None)
    write_task(folder / "task", name, options, rows)
    texts = recorded_texts(folder / "task")
    write_dataset(folder, name, new_samples(texts), kept, empty_allowed=True)
    tested = texts[(texts["split"] == "test") & texts["text"].str.strip().ne("")]
    sampled = balanced_sample(tested, max(options["sample"], 1), options["seed"])
    write_dataset(Path(sample_folder), f"{name}~sample", new_samples(sampled), kept)
    files = TaskFiles(folder / "task")
    record = {"task": name, "type": files.type, "main_score": files.main_score}
    write_record(baselines_file, record | {"baselines": baselines(files, texts["text"].tolist())})


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"prepare_task {snakemake.wildcards.task}"):
        main(
            snakemake.input.samples,
            snakemake.output.baselines,
            str(Path(snakemake.output.sample).parent),
            snakemake.wildcards.task,
            snakemake.params.options,
        )
