"""Tasks whose rows are drawn from the samples of a dataset."""

from pathlib import Path
from typing import Any

import pandas as pd

from layerwise.records import read_record
from layerwise.samples import read_samples
from layerwise.tasks.files import write_task
from layerwise.tasks.rows import task_rows


def prepare(folder: Path, name: str, options: dict[str, Any], parent: Path) -> dict[str, str]:
    """Write rows of the dataset in folder ``parent`` to ``folder``; return its origin and licence."""
    judged = pd.read_parquet(parent / "pairs.parquet")
    frame = read_samples(parent / "samples.parquet")
    write_task(folder, name, options, task_rows(name, options, frame, judged if len(judged) else None))
    facts = read_record(parent / "manifest.json", "origin", "licence")
    return {key: facts[key] for key in ("origin", "licence")}
