"""Checks that every result file passes before a row of it enters a table."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from layerwise.errors import FileError

PathLike = str | os.PathLike[str]

_DEPTH_TOLERANCE = 1e-3  # writers may round; neighbouring layers of a 200-layer model differ by 5e-3


def in_order(paths: Iterable[PathLike]) -> list[Path]:
    """Paths in alphabetical order, so that messages and tables do not depend on how they were listed."""
    return sorted(Path(path) for path in paths)


def checked_layers(layers: object, where: str, n_layers: int | None = None, first: int = 0) -> list[dict[str, Any]]:
    """Check that ``layers`` are ``first``..L once each with depth i / L, where L is ``n_layers`` if that is stated."""
    entries = objects(layers, where, "layers")
    for layer in entries:
        need(layer, where, "layer", "depth")
    found = sorted(layer["layer"] for layer in entries)
    last = len(found) - 1 + first if n_layers is None else n_layers
    if found != list(range(first, last + 1)) or last < 1:
        expected = ranges(range(first, last + 1))
        raise FileError(f"{where} has layers {ranges(found) or 'none'}, {expected} expected; delete the file and run again.")
    wrong = [layer for layer in entries if abs(layer["depth"] - layer["layer"] / last) > _DEPTH_TOLERANCE]
    if wrong:
        raise FileError(
            f"{where} gives layer {wrong[0]['layer']} of {last} depth {wrong[0]['depth']}, so layers are missing or "
            "misnumbered; delete the file and run again."
        )
    return [layer | {"depth": layer["layer"] / last} for layer in entries]


def ranges(layers: Iterable[int]) -> str:
    """Write 0, 3, 4, 5 as "0, 3-5"."""
    runs: list[list[int]] = []
    for layer in sorted({int(layer) for layer in layers}):
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def objects(value: object, where: PathLike, name: str) -> list[dict[str, Any]]:
    """Return ``value`` if it is a list of JSON objects; ``name`` is what it is called in ``where``."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise FileError(f"{where}: {name} is not a list of objects; delete the file and run again.")
    return value


def need(entry: Mapping[str, Any], where: PathLike, *keys: str) -> None:
    """Refuse an ``entry`` of the file ``where`` that lacks one of ``keys``."""
    missing = [key for key in keys if key not in entry]
    if missing:
        raise FileError(f"{where} lacks {', '.join(missing)}; delete the file and run again.")
