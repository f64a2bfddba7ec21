"""The rows of one split as plain lists, with the part of ``datasets.Dataset`` that mteb's evaluators use.

A column of a ``Dataset`` is decoded row by row whenever it is read, and each of mteb's measures reads the labels several
times: for one layer of a classification that took longer than all fits.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self


class PlainRows:
    """Equally long columns by name."""

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        """Keep the columns; they are not copied."""
        self.columns = dict(columns)

    @classmethod
    def from_rows(cls, rows: list[dict[str, Any]]) -> Self:
        """Make columns of ``rows``, which all have the keys of the first.

        Raises:
            ValueError: a row has other keys than the first.
        """
        names = list(rows[0]) if rows else []
        if any(row.keys() != rows[0].keys() for row in rows):
            raise ValueError(f"a row has other columns than {names}")
        return cls({name: [row[name] for row in rows] for name in names})

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.columns)

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), []))

    def __getitem__(self, key: str | int) -> Any:  # noqa: ANN401 - a column, or a row as a mapping
        """Return the column named ``key``, or row ``key``."""
        if isinstance(key, str):
            return self.columns[key]
        return {name: column[key] for name, column in self.columns.items()}

    def select(self, indices: Iterable[int]) -> Self:
        """Return the rows ``indices``."""
        chosen = list(indices)
        return type(self)({name: [column[index] for index in chosen] for name, column in self.columns.items()})

    def select_columns(self, names: str | list[str]) -> Self:
        """Return the columns ``names``."""
        return type(self)({name: self.columns[name] for name in ([names] if isinstance(names, str) else names)})

    def rename_columns(self, names: Mapping[str, str]) -> Self:
        """Return the columns under new ``names``; one that is not in them keeps its own."""
        return type(self)({names.get(name, name): column for name, column in self.columns.items()})
