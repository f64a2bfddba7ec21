"""The files of a task: its rows by split as JSON lines, and spec.json."""

import hashlib
import json
from pathlib import Path
from typing import Any

from layerwise.atomic import write_text
from layerwise.records import write_record
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


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of one split. Lines end at newlines only: texts may hold other line separators."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
