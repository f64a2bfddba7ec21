"""Write a task: its rows, the texts it asks for, and its baselines."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd

from layerwise.atomic import write_text
from layerwise.records import write_record
from layerwise.tasks.encoder import Recorder, text_key
from layerwise.tasks.rows import Rows


def write_task(folder: Path, name: str, options: dict[str, Any], rows: Rows) -> None:
    """Write the rows of a task as JSON lines by split, then spec.json with their digest."""
    state = hashlib.sha256()
    for split, frame in sorted(rows.items()):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in frame.to_dict("records"))
        state.update(f"{split}\x1f{lines}".encode())
        write_text(folder / f"{split}.jsonl", lines)
    record = {"name": name, "options": options, "splits": sorted(rows), "digest": state.hexdigest()}
    write_record(folder / "spec.json", record)


def recorded_texts(folder: Path) -> pd.DataFrame:
    """Return the samples a task looks up: every text its evaluator asks for, once, found by letting it run.

    Returns:
        id (hash of the text), split and text; texts of the test split are marked so, even if train asks for them too.
    """
    from layerwise.tasks.benchmark import TaskFiles

    recorder = Recorder()
    files = TaskFiles(folder)
    files.fresh().evaluate(recorder, "test", encode_kwargs={"batch_size": 1024, "show_progress_bar": False})
    for split in files.dataset:  # the probe sees every train row, mteb's evaluator only the rows it draws
        for column in ("text", "sentences", "sentence1", "sentence2"):
            if column in files.dataset[split].column_names:
                recorder.encode([{"text": list(files.dataset[split][column])}], hf_split=str(split))
    texts = list(recorder.splits)
    return pd.DataFrame({"id": [text_key(t) for t in texts], "split": list(recorder.splits.values()), "text": texts})
