"""Views from columns: view k of a sample is its k-th named column, for example two translations of one verse."""

from collections.abc import Hashable, Mapping
from typing import Any

from layerwise.errors import DataError


def view_text(row: Mapping[Hashable, Any], view: int, _seed: int, columns: list[str]) -> str:
    """Return column number ``view`` of ``row``.

    Raises:
        DataError: fewer columns than views, no such column, or no text in it.
    """
    if view >= len(columns) or columns[view] not in row:
        raise DataError(f"'transform: columns' needs one existing column per view; view {view} of {columns} has none.")
    text = row[columns[view]]
    if not isinstance(text, str):
        raise DataError(f"column {columns[view]!r} of sample {row['id']!r} holds {text!r}, no text, so it is no view.")
    return text
