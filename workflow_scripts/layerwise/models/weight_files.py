"""Safetensors files and their index: every header read and checked, nothing loaded."""

import math
from pathlib import Path

from safetensors import safe_open

from layerwise.errors import ModelError
from layerwise.models.configs import read_mapping

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def is_plain(name: str) -> bool:
    """Whether ``name`` is that of a file in a folder itself: no path, on no system, and not hidden."""
    return bool(name) and not name.startswith(".") and not any(mark in name for mark in ("/", "\\", ":", "\0"))


def shards_of(index: Path) -> dict[str, list[str]]:
    """Return the shards that an index names, each with its tensors.

    Raises:
        ModelError: it is no index, or names a file outside its folder.
    """
    content = read_mapping(index)
    mapped = content.get("weight_map")
    if not isinstance(mapped, dict) or not mapped or not all(isinstance(shard, str) for shard in mapped.values()):
        raise ModelError(f"{index} maps no weights to shards ('weight_map'); download or save the model again.")
    shards: dict[str, list[str]] = {}
    for tensor, shard in mapped.items():
        if not is_plain(shard) or not shard.endswith(".safetensors"):
            raise ModelError(f"{index} names the shard {shard!r}, no safetensors file of its folder; do not use this model.")
        shards.setdefault(shard, []).append(tensor)
    return shards


def count_parameters(folder: Path) -> int:
    """Return how many numbers the weights in ``folder`` hold, after checking every safetensors file and the index.

    Raises:
        ModelError: a header or its offsets are damaged, a file is cut short, or a shard or a tensor of it is missing.
    """
    tensors = {file.name: _tensors(file) for file in sorted(folder.glob("*.safetensors"))}
    index = folder / INDEX
    if SINGLE in tensors or not index.is_file():
        return sum(tensors[SINGLE].values()) if SINGLE in tensors else sum(sum(each.values()) for each in tensors.values())
    shards = shards_of(index)
    for shard, names in shards.items():
        if shard not in tensors:
            raise ModelError(f"{folder} lacks the shard {shard!r} that {INDEX} names; copy or download it again.")
        absent = next((name for name in names if name not in tensors[shard]), None)
        if absent is not None:
            raise ModelError(f"{folder / shard} lacks {absent!r}, which {INDEX} places there; copy or download it again.")
    return sum(sum(tensors[shard].values()) for shard in shards)


def _tensors(file: Path) -> dict[str, int]:
    """The number of values of each tensor in ``file``."""
    try:
        with safe_open(file, framework="np") as opened:
            return {name: math.prod(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118 - no mapping
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{file.name} cannot be loaded from {file.parent} ({type(error).__name__}: {reason}); it is damaged or cut "
            "short: copy or download it again."
        ) from error
