"""Your own samples: a CSV, TSV, JSONL or Parquet file with a text column; the other columns are labels."""

from layerwise.data.source import Source
from layerwise.table_file import read_table, table_origin


def read(path: str, text: str = "text", id: str | None = None) -> Source:
    """Return the rows of a table.

    Args:
        path: the file; its ending tells the format.
        text: the column that holds the text.
        id: the column that holds unique ids; row numbers where it is not given.

    Raises:
        DataError: no such file, an unknown ending, an unreadable table, or a missing column.
    """
    frame = read_table(path, text, *([id] if id else []))
    named = {text: "text"} | ({id: "id"} if id else {})
    # A column that already has one of these names would make two of it; the config's choice counts.
    frame = frame.drop(columns=[new for old, new in named.items() if new != old and new in frame]).rename(columns=named)
    if id is None:
        frame["id"] = [f"row-{i}" for i in range(len(frame))]
    return Source(frame, "unknown", table_origin(path))
