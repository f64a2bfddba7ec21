"""The rows of a task from the user's own tables. Every error names the file, the column and the row (counted from 1)."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layerwise.config_tasks import TABLE_COLUMNS
from layerwise.errors import DataError
from layerwise.table_file import read_table, table_origin
from layerwise.tasks.files import write_task
from layerwise.tasks.rows import Rows, task_rows

Options = dict[str, Any]
_SPLITS = ("train", "test")


def prepare(folder: Path, name: str, options: Options, _parent: Path | None) -> dict[str, str]:
    """Write the rows of the task's own table to ``folder``; return its origin and licence."""
    rows, origin = table_rows(name, options)
    write_task(folder, name, options, rows)
    return {"origin": origin, "licence": "unknown"}


def table_rows(name: str, options: Options) -> tuple[Rows, str]:
    """Return the rows of a classification, clustering, sts or pair_classification task, and their origin.

    Args:
        name: of the task, for messages.
        options: the config's entry, with ``table``.

    Returns:
        Rows by split as ``rows.task_rows`` gives them, and the file with its digest.

    Raises:
        DataError: a file or column is missing, a cell does not hold what it should, one class or score only, a label in
            no train row, or fewer than ten rows.
    """
    table = Table(options["table"], options["type"])
    rows = _BUILDERS[options["type"]](name, options, table)
    for split, frame in rows.items():
        if len(frame) < 10:
            raise DataError(f"task {name!r}: table {table.path!r} has {len(frame)} {split} rows, at least 10 are needed.")
    return rows, table_origin(table.path)


class Table:
    """The columns that a task of one type needs, by role, checked cell by cell."""

    def __init__(self, entry: dict[str, Any], kind: str) -> None:
        """Read the file that the config's ``entry`` names, for a task of type ``kind``."""
        self.path: str = entry["path"]
        roles = {role: entry[role] or usual for role, usual in TABLE_COLUMNS[kind].items()}
        self.columns: dict[str, str] = {role: column for role, column in roles.items() if column is not None}
        self.frame = read_table(self.path, *self.columns.values())

    def texts(self, role: str) -> list[str]:
        """Return a column of texts."""
        values = self.frame[self.columns[role]].tolist()
        self._refuse(role, values, lambda value: isinstance(value, str), "no text")
        return values

    def labels(self, role: str) -> list[str]:
        """Return a column of labels; numbers become text."""
        values = ["" if value is None or value != value else str(value) for value in self.frame[self.columns[role]]]
        self._refuse(role, values, lambda value: bool(value.strip()), "no label")
        return values

    def numbers(self, role: str, admitted: Callable[[float], bool], what: str) -> list[float]:
        """Return a column of finite numbers that are ``admitted``; ``what`` says which are."""
        read = pd.to_numeric(self.frame[self.columns[role]], errors="coerce").astype(float).tolist()
        values = self.frame[self.columns[role]].tolist()
        good = [math.isfinite(number) and admitted(number) for number in read]
        self._refuse(role, list(zip(values, good, strict=True)), lambda pair: pair[1], what)
        return [float(number) for number in read]

    def fail(self, role: str, row: int, message: str) -> DataError:
        """Return the error about a cell; ``row`` counts from 0."""
        return DataError(f"table {self.path!r}: column {self.columns[role]!r} of row {row + 1} {message}.")

    def _refuse(self, role: str, values: list[Any], good: Callable[[Any], bool], what: str) -> None:
        wrong = next((row for row, value in enumerate(values) if not good(value)), None)
        if wrong is not None:
            value = values[wrong]
            found = value[0] if isinstance(value, tuple) else value
            raise self.fail(role, wrong, f"holds {what} (found {found!r}); correct or remove the row")


def _classification(name: str, options: Options, table: Table) -> Rows:
    frame = _labelled(table)
    if "split" not in table.columns:
        extra = options["group"]
        if extra is not None:
            read_table(table.path, extra)
            frame[str(extra)] = table.frame[str(extra)]
        return task_rows(name, options | {"label": "label"}, frame, None)
    splits = table.labels("split")
    wrong = next((row for row, split in enumerate(splits) if split not in _SPLITS), None)
    if wrong is not None:
        raise table.fail("split", wrong, f"holds {splits[wrong]!r}; write 'train' or 'test'")
    frame["split"] = splits
    parts = {split: frame[frame["split"] == split].reset_index(drop=True) for split in _SPLITS}
    where = f"task {name!r}: table {table.path!r}, column {table.columns['label']!r}"
    if frame["label"].nunique() < 2:
        raise DataError(f"{where}: one class only ({frame['label'].iloc[0]!r}); two are needed.")
    unseen = set(parts["test"]["label"]) - set(parts["train"]["label"])
    if unseen:
        row = int(np.flatnonzero((frame["label"] == min(unseen)) & (frame["split"] == "test"))[0])
        raise DataError(
            f"{where}: label {min(unseen)!r} of test row {row + 1} is in no train row; add some or remove the row."
        )
    codes = {value: code for code, value in enumerate(sorted(frame["label"].unique()))}
    return {
        split: pd.DataFrame({"text": part["text"], "label": part["label"].map(codes), "label_name": part["label"]})
        for split, part in parts.items()
    }


def _clustering(name: str, options: Options, table: Table) -> Rows:
    frame = _labelled(table)
    test = options["test"] or len(frame)
    return task_rows(name, options | {"label": "label", "test": test}, frame, None)


def _labelled(table: Table) -> pd.DataFrame:
    frame = pd.DataFrame({"text": table.texts("text"), "label": table.labels("label")})
    return frame.assign(id=[f"row-{row + 1}" for row in range(len(frame))])


def _sts(name: str, options: Options, table: Table) -> Rows:
    scores = table.numbers("score", math.isfinite, "no finite number")
    if len(set(scores)) < 2:
        raise DataError(
            f"task {name!r}: table {table.path!r}, column {table.columns['score']!r}: all scores are equal, so no rank "
            "correlation is defined; name the column with the human scores."
        )
    return _drawn(options, _pairs(table, "score", scores))


def _pair_classification(name: str, options: Options, table: Table) -> Rows:
    labels = table.numbers("label", lambda number: number in (0.0, 1.0), "neither 0 nor 1")
    if len(set(labels)) < 2:
        raise DataError(
            f"task {name!r}: table {table.path!r}, column {table.columns['label']!r}: one class only ({labels[0]:.0f}); "
            "pairs with 0 and with 1 are needed."
        )
    return _drawn(options, _pairs(table, "labels", [int(label) for label in labels]))


def _pairs(table: Table, name: str, values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"sentence1": table.texts("first"), "sentence2": table.texts("second"), name: values})


def _drawn(options: Options, frame: pd.DataFrame) -> Rows:
    if options["test"] is None or options["test"] >= len(frame):
        return {"test": frame}
    return {"test": frame.sample(options["test"], random_state=options["seed"]).sort_index().reset_index(drop=True)}


_BUILDERS: dict[str, Callable[[str, Options, Table], Rows]] = {
    "classification": _classification,
    "clustering": _clustering,
    "pair_classification": _pair_classification,
    "sts": _sts,
}
