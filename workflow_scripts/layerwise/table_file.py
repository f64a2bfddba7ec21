"""The user's own tables: CSV, TSV, JSONL or Parquet files, read the same way wherever one is named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from layerwise.errors import DataError
from layerwise.packages import file_digest

_READERS: dict[str, tuple[Callable[..., pd.DataFrame], dict[str, Any]]] = {
    ".csv": (pd.read_csv, {"keep_default_na": False}),
    ".tsv": (pd.read_csv, {"keep_default_na": False, "sep": "\t"}),
    ".jsonl": (pd.read_json, {"lines": True, "dtype": False}),
    ".parquet": (pd.read_parquet, {}),
}


def read_table(path: str, *columns: str) -> pd.DataFrame:
    """Return the rows of the table at ``path``, whose ending tells the format.

    Raises:
        DataError: no such file, an unknown ending, an unreadable table, or one of ``columns`` is missing.
    """
    file = Path(path).expanduser()
    if file.suffix.lower() not in _READERS:
        raise DataError(f"table {path!r}: unknown ending {file.suffix!r}; use one of {', '.join(_READERS)}.")
    if not file.is_file():
        raise DataError(f"table {path!r} does not exist (looked in {Path.cwd()}); write a path from the project's folder.")
    reader, options = _READERS[file.suffix.lower()]
    try:
        frame = reader(file, **options)
    except (ValueError, OSError) as error:
        raise DataError(f"table {path!r} cannot be read ({str(error).splitlines()[0]}); check its format.") from error
    for column in columns:
        if column not in frame:
            raise DataError(f"table {path!r} has no column {column!r}; its columns: {', '.join(map(str, frame.columns))}.")
    return frame


def table_origin(path: str) -> str:
    """Return the name of a file with the sha256 of its content."""
    return f"{Path(path).name} sha256 {file_digest(Path(path).expanduser())}"
