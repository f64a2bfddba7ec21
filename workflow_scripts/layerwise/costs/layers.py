"""What a model costs when it is cut after layer i: its parameters, and the operations of a forward pass over one sample."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layerwise.costs.sizes import block_of, safetensors_shapes, tower

COLUMNS = (
    "model", "task", "layer", "depth", "parameters", "parameters_share", "flops", "flops_share", "tokens", "undefined",
)  # fmt: skip
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|head|classifier|pooler|decoder|cls|text_projection|visual_projection)\.")
_ATTENTION = re.compile(r"att(?:ention|n)|\.qkv\.|query")


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Where the parameters of a model are.

    Attributes:
        outside: embeddings and final norm, which every cut keeps; heads are not counted.
        patches: of ``outside``, those that every patch of an image meets.
        each: by block, in order.
        matrices: of ``each``, those in matrices, which every token is multiplied with.
        attends: by block, whether it compares every token with every other.
        width: D.
    """

    outside: int
    patches: int
    each: tuple[int, ...]
    matrices: tuple[int, ...]
    attends: tuple[bool, ...]
    width: int


def blocks_of(folder: Path, loader: str, width: int) -> Blocks | None:
    """Return where the parameters of the model in ``folder`` are, from headers alone; None where no blocks are found."""
    files = sorted(folder.glob("*.safetensors"))
    shapes = tower({name: shape for file in files for name, shape in safetensors_shapes(file).items()}, loader)
    numbered = {name: number for name in shapes if (number := block_of(name)) is not None}
    if not numbered:
        return None
    count = 1 + max(numbered.values())
    each, matrices, attends, outside, patches = [0] * count, [0] * count, [False] * count, 0, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        if name in numbered:
            each[numbered[name]] += size
            matrices[numbered[name]] += size if len(shape) > 1 else 0
            attends[numbered[name]] |= bool(_ATTENTION.search(name))
        elif not _HEAD.search(name):
            outside += size
            patches += size if loader != "text" and len(shape) == 4 else 0
    return Blocks(outside, patches, tuple(each), tuple(matrices), tuple(attends), width)


def token_moments(lengths: Sequence[int] | np.ndarray) -> dict[str, float]:
    """Return what the operations of a forward pass depend on: mean length and mean squared length of the samples."""
    found = np.asarray(lengths, dtype=np.float64)
    return {"mean": float(found.mean()), "mean_square": float(np.square(found).mean())}


def cut_costs(blocks: Blocks, tokens: Mapping[str, float]) -> pd.DataFrame:
    """Return ``parameters`` and ``flops`` of one sample, and the share of the whole model, for layers 0..L.

    Two operations per weight and token, and 4 D T^2 for attention; what embeddings, norms, biases and activation functions
    take is left out, and so are heads, which no layer below them needs.

    Args:
        blocks: see ``blocks_of``.
        tokens: see ``token_moments``.
    """
    mean, square = tokens["mean"], tokens["mean_square"]
    flops = [2.0 * blocks.patches * mean]
    for size, attends in zip(blocks.matrices, blocks.attends, strict=True):
        flops.append(flops[-1] + 2.0 * size * mean + (4.0 * blocks.width * square if attends else 0.0))
    parameters = blocks.outside + np.cumsum([0, *blocks.each])
    frame = pd.DataFrame({"layer": range(len(flops)), "parameters": parameters, "flops": flops})
    shares = frame[["parameters", "flops"]].div(frame[["parameters", "flops"]].iloc[-1])
    return frame.join(shares.add_suffix("_share"))


def cost_rows(blocks: Blocks | None, record: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of one model and task.

    Args:
        blocks: of the model.
        record: of the task, with ``model``, ``task``, ``tokens`` and ``readouts``.
    """
    layers = 1 + max(entry["layer"] for entries in record["readouts"].values() for entry in entries)
    known = blocks is not None and len(blocks.each) == layers - 1
    frame = cut_costs(blocks, record["tokens"]) if blocks is not None and known else pd.DataFrame({"layer": range(layers)})
    reason = "" if known else "the names of its tensors do not tell its blocks apart"
    frame = frame.assign(model=record["model"], task=record["task"], tokens=record["tokens"]["mean"], undefined=reason)
    return frame.assign(depth=frame["layer"] / max(layers - 1, 1)).reindex(columns=[*COLUMNS])
