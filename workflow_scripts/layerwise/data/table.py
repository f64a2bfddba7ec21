"""Your own samples: a CSV, TSV, JSONL or Parquet file with a text column; the other columns are labels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from layerwise.data.source import Source
from layerwise.errors import DataError
from layerwise.packages import file_digest

_READERS: dict[str, tuple[Callable[..., pd.DataFrame], dict[str, Any]]] = {
    ".csv": (pd.read_csv, {"keep_default_na": False}),
    ".tsv": (pd.read_csv, {"keep_default_na": False, "sep": "\t"}),
    ".jsonl": (pd.read_json, {"lines": True, "dtype": False}),
    ".parquet": (pd.read_parquet, {}),
}


def read(path: str, text: str = "text", id: str | None = None) -> Source:
    """Return the rows of a table.

    Args:
        path: the file; its ending tells the format.
        text: the column that holds the text.
        id: the column that holds unique ids; row numbers where it is not given.

    Raises:
        DataError: no such file, an unknown ending, an unreadable table, or a missing column.
    """
    file = Path(path)
    if file.suffix.lower() not in _READERS:
        raise DataError(f"table {path!r}: unknown ending {file.suffix!r}; use one of {', '.join(_READERS)}.")
    if not file.is_file():
        raise DataError(f"table {path!r} does not exist (looked in {Path.cwd()}); write a path from the project's folder.")
    reader, options = _READERS[file.suffix.lower()]
    try:
        frame = reader(file, **options)
    except (ValueError, OSError) as error:
        raise DataError(f"table {path!r} cannot be read ({str(error).splitlines()[0]}); check its format.") from error
    for column in filter(None, (text, id)):
        if column not in frame:
            raise DataError(f"table {path!r} has no column {column!r}; its columns: {', '.join(map(str, frame.columns))}.")
    named = {text: "text"} | ({id: "id"} if id else {})
    # A column that already has one of these names would make two of it; the config's choice counts.
    frame = frame.drop(columns=[new for old, new in named.items() if new != old and new in frame]).rename(columns=named)
    if id is None:
        frame["id"] = [f"row-{i}" for i in range(len(frame))]
    return Source(frame, "unknown", f"{file.name} sha256 {file_digest(file)}")
