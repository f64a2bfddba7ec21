"""What a job asks a cluster for: memory, minutes and GPUs, from the manifests of its model and dataset.

Before these are there, from assumptions; Snakemake asks again when a job is about to start. Requests are upper bounds,
unlike what ``estimates`` gives: every text counts as ``max_tokens`` long, and a margin covers the two Snakemake processes
that surround each job.
"""

import functools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from layerwise.config import ModelEntry
from layerwise.costs.estimates import Collected, Tokens, extraction_mib, forward_flops, metric_mib, scoring_mib
from layerwise.costs.sizes import ModelSize

_UNKNOWN_MODEL = ModelSize(n_layers=24, width=2048, parameters=10**9, block_parameters=10**9)
_UNKNOWN_ROWS = 2_000
_IMAGE_TOKENS = 576
_MARGIN, _SNAKEMAKE_MIB, _CUDA_MIB = 1.25, 700, 3000
_GPU_BYTES = 32e9  # of weights that one GPU is trusted with
_CPU_FLOPS, _GPU_FLOPS = 1e10, 2e12  # a second: of one thread, of one GPU; a tenth of what good ones do
_START_MINUTES = 10


def memory(mib: float, attempt: int) -> int:
    """Return the MiB to ask for where ``mib`` are expected, more at every attempt."""
    return math.ceil((_MARGIN * mib + _SNAKEMAKE_MIB) * attempt / 100) * 100


def minutes(seconds: float, attempt: int, start: int = _START_MINUTES) -> int:
    """Return the minutes to ask for where ``seconds`` of work are expected, more at every attempt."""
    return math.ceil((start + 2 * seconds / 60) * attempt)


def model_size(manifest: Path) -> ModelSize:
    """Return the size that a model's manifest tells, or one that is assumed."""
    record = _record(str(manifest), _time(manifest))
    numbers = [record.get(key) for key in ("n_layers", "hidden_size", "parameters")]
    n_layers, width, parameters = (value if type(value) is int else 0 for value in numbers)
    if not parameters:
        return _UNKNOWN_MODEL
    return ModelSize(n_layers or _UNKNOWN_MODEL.n_layers, width or _UNKNOWN_MODEL.width, parameters, parameters)


def dataset_rows(manifest: Path) -> int:
    """Return the rows that a dataset's manifest tells, or a number that is assumed."""
    rows = _record(str(manifest), _time(manifest)).get("n_rows")
    return rows if type(rows) is int else _UNKNOWN_ROWS


def extraction(
    size: ModelSize, entry: ModelEntry, collect: Mapping[str, Any], rows: int, gpus: int, passes: int = 1
) -> tuple[float, float]:
    """Return the MiB and the seconds that a forward pass over ``rows`` samples takes at most.

    Args:
        size: of the model.
        entry: its config.
        collect: ``readouts``, ``recipes`` and ``taps`` that are kept.
        rows: of the dataset.
        gpus: that it runs on; 0 for the CPU.
        passes: how often the model runs over them.
    """
    longest = entry.max_tokens if entry.modality == "text" else _IMAGE_TOKENS
    tokens = Tokens(rows, rows * longest, rows * longest**2, longest, rows * min(longest, size.width))
    kept = Collected(size.n_layers, size.width, collect["taps"], collect["readouts"], collect["recipes"])
    mib = extraction_mib(size, entry.dtype, entry.batch_tokens, kept, tokens) + (_CUDA_MIB if gpus else 0)
    spectra = 10 * rows * (size.n_layers + 1) * len(kept.recipes) * len(kept.taps) * min(longest, size.width) ** 3
    speed = gpus * _GPU_FLOPS if gpus else entry.threads * _CPU_FLOPS
    return mib, (passes * forward_flops(size, tokens) + spectra) / speed


def metric(size: ModelSize, rows: int, max_tokens: int, most: int | None) -> tuple[float, float]:
    """Return the MiB and the seconds of one metric.

    Args:
        size: of the model.
        rows: of the dataset, views included.
        max_tokens: of a sample.
        most: rows that the metric takes of more: at most a few hundred eigenproblems of their Gram matrix for each layer;
            None: all, in a few dozen passes.
    """
    side = min(rows, size.width) if most is None else min(rows, most)
    products = 3.0 * rows * size.width**2 if most is None else 0.0  # a tenth: ten times as fast as eigenproblems
    flops = 400.0 * side**3 + products
    mib = metric_mib(size.width, rows, min(max_tokens, size.width), most)
    return mib, (size.n_layers + 1) * flops / _CPU_FLOPS


def scoring(size: ModelSize, rows: int) -> tuple[float, float]:
    """Return the MiB and the seconds of scoring a task at every layer."""
    return scoring_mib(size.width, rows), 0.05 * rows * (size.n_layers + 1)


def gpus(entry: ModelEntry, size: ModelSize, available: int, split_over_all: bool) -> int:
    """Return the GPUs to ask for: none where the model stays on the CPU or there are none, else as many as hold its weights.

    Args:
        entry: config of the model.
        size: of the model.
        available: GPUs that may be asked for at once.
        split_over_all: whether ``device: split`` takes every one of them, as it does on this machine.
    """
    if entry.device in ("cpu", "mps"):
        return 0
    if entry.device.startswith("cuda"):
        return min(1, available)
    if entry.device == "split" and split_over_all:
        return available
    return min(available, math.ceil(max(size.weight_bytes(entry.dtype), 1) / _GPU_BYTES))


def _time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


@functools.cache
def _record(path: str, time: int) -> dict[str, Any]:
    """The mapping in a manifest; an empty one where it is absent or damaged, which the rule that reads it will say."""
    try:
        content = json.loads(Path(path).read_text("utf-8")) if time else {}
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
