"""JSON records: strict, versioned, written atomically. A record that is not whole and valid is refused, never repaired."""

import json
import os
from pathlib import Path
from typing import Any

from layerwise.atomic import write_text
from layerwise.errors import FileError

SCHEMA_VERSION = 1


def write_record(path: str | os.PathLike[str], record: dict[str, Any]) -> None:
    """Write ``record`` with its schema version; NaN and infinity are errors, because JSON has neither.

    Raises:
        ValueError: a float in ``record`` is NaN or infinite.
    """
    body = {"schema_version": SCHEMA_VERSION, **record}
    write_text(path, json.dumps(body, allow_nan=False, ensure_ascii=False, indent=1) + "\n")


def read_record(path: str | os.PathLike[str], *keys: str) -> dict[str, Any]:
    """Read a record and check that it has ``keys``.

    Raises:
        FileError: empty or half-written file, duplicate keys, NaN, another schema version, or a missing key.
    """
    path = Path(path)
    try:
        record = json.loads(
            path.read_text(encoding="utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates
        )
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is not a valid record ({error}); delete it and run again.") from error
    if not isinstance(record, dict) or record.get("schema_version") != SCHEMA_VERSION:
        found = record.get("schema_version") if isinstance(record, dict) else None
        raise FileError(
            f"{path} has schema version {found!r}, this program reads {SCHEMA_VERSION}; delete it and run again."
        )
    missing = [key for key in keys if key not in record]
    if missing:
        raise FileError(f"{path} lacks {', '.join(missing)}; delete it and run again.")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it holds {name}")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result
