"""Per-item outcomes of the task files, read one file at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from layerwise.errors import FileError
from layerwise.records import read_record
from layerwise.tables.outcomes import TaskItems
from layerwise.tables.reading import PathLike, in_order, need

FIELDS = ("model", "task", "type", "main_score", "readouts")

_ITEM_SCORES = {
    ("correct", ""): "accuracy",
    ("query", ""): "accuracy",  # a mean over items, as accuracy is
    ("cluster", ""): "v_measure",
    ("similarity", "sts"): "spearman",
    ("similarity", "pair_classification"): "average_precision",
}


class ItemStore(Mapping[tuple[str, str], TaskItems]):
    """Per-item outcomes by (model, task), read when asked for: a study's outcomes together may not fit the memory."""

    def __init__(self, paths: Mapping[tuple[str, str], Path], progress: Callable[[int, int], None] | None = None) -> None:
        """Remember where the outcomes of each (model, task) lie; ``progress`` hears (read before, files) at each read."""
        self._paths, self._progress, self._read = dict(paths), progress, 0

    def __getitem__(self, key: tuple[str, str]) -> TaskItems:
        """Read one task file; KeyError where it is unknown or keeps no outcomes, FileError where they do not fit."""
        path = self._paths[key]
        if self._progress is not None:
            self._progress(self._read, len(self))
        self._read += 1
        record = read_record(path, *FIELDS)
        if (record["model"], record["task"]) != key:
            raise FileError(f"{path} holds model {record['model']!r} and task {record['task']!r}; delete it and run again.")
        items = _parse_items(path, record)
        if items is None:
            raise KeyError(key)
        return items

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Iterate over (model, task)."""
        return iter(self._paths)

    def __len__(self) -> int:
        """Number of task files, with outcomes or without."""
        return len(self._paths)


def item_store(task_paths: Iterable[PathLike], progress: Callable[[int, int], None] | None = None) -> ItemStore:
    """Return the per-item outcomes of ``results/tasks/{model}/{task}.json`` by (model, task), read lazily.

    Model and task are taken from the path and checked when a file is read. What is computed from a file is computed
    before the next is asked for, so ``progress``, called with (read before, files) at each read, is that of the table.

    Raises:
        FileError: two files for one model and task.
    """
    paths: dict[tuple[str, str], Path] = {}
    for path in in_order(task_paths):
        key = (path.parent.name, path.stem)
        if key in paths:
            raise FileError(f"{path} and {paths[key]} both score model {key[0]!r} on task {key[1]!r}; delete one of them.")
        paths[key] = path
    return ItemStore(paths, progress)


def _parse_items(path: Path, record: Mapping[str, Any]) -> TaskItems | None:
    items = record.get("items")
    if not items:
        return None
    need(items, path, "protocol", "kind", "gold", "readouts")
    score = _ITEM_SCORES.get((items["kind"], record["type"])) or _ITEM_SCORES.get((items["kind"], ""))
    if score is None:
        raise FileError(f"{path} keeps {items['kind']!r} outcomes of a {record['type']!r} task, which have no score.")
    n = len(items["gold"])
    readouts = {}
    for readout, layers in items["readouts"].items():
        expected = (len(record["readouts"].get(readout, [])), n)
        if len(layers) != expected[0] or any(len(layer) != n for layer in layers):
            raise FileError(
                f"{path}: outcomes of readout {readout!r} are not {expected[0]} layers x {n} items; delete the file "
                "and run again."
            )
        readouts[readout] = np.asarray(layers, dtype=np.float64)
    gold = np.unique(items["gold"], return_inverse=True)[1] if items["kind"] != "similarity" else items["gold"]
    return TaskItems(items["protocol"], score, np.asarray(gold, dtype=np.float64), readouts)
