"""Formulas: bytes of activation files, memory of jobs, operations of a forward pass.

The constants were measured on two CPU cores with the default study; ``tests`` compare the formulas with what finished runs
used.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from layerwise.budgets import BLOCK_BYTES, HELD_BYTES
from layerwise.costs.sizes import ModelSize
from layerwise.store_layout import arrays, chunk, is_readout

MIB = 2**20
_PROCESS_MIB = 930  # Python, torch, transformers and what they keep
_LIGHT_MIB = 100  # Python, NumPy and h5py
_SCORING_MIB = 850  # with mteb and scikit-learn
_WINDOW_BYTES = 128 * MIB  # results are written when so many are held (see activations.batching)
_ARRAY_BYTES = 3072  # HDF5's header and chunk index of one array
_FILE_BYTES = 16384  # attributes
_ROW_BYTES = 120  # ids, views, numbers of tokens
_STATES = 12  # arrays of a batch's tokens by width that are alive at once inside a block
_SQUARES = 4  # float64 arrays of tokens by tokens that the token statistics hold of a batch


@dataclasses.dataclass(frozen=True)
class Collected:
    """What is kept of every layer: the part of a file's header that decides how large it is.

    Attributes:
        n_layers: L.
        width: D.
        taps: where in a block.
        readouts: each with its ``name``; none where a dataset collects none.
        recipes: of the token statistics; none likewise.
        storage: "float32" or "float16", of the readouts.
    """

    n_layers: int
    width: int
    taps: Sequence[str]
    readouts: Sequence[dict[str, str]]
    recipes: Sequence[str]
    storage: str = "float32"

    def row_bytes(self, kept: float) -> float:
        """Bytes of one row of all layers, with ``kept`` eigenvalues a layer and recipe."""
        floats = len(self.readouts) * self.width + len(self.recipes) * (kept + 2)
        return 4 * (self.n_layers + 1) * len(self.taps) * floats


@dataclasses.dataclass(frozen=True)
class Tokens:
    """How long the samples of a dataset are to one model.

    Attributes:
        rows: how many samples, views included.
        total: tokens of all of them.
        squares: sum of the squared lengths, which is what attention costs.
        longest: of one sample.
        kept: sum of min(length, width): the eigenvalues that are stored of a layer and recipe.
    """

    rows: int
    total: int
    squares: int
    longest: int
    kept: int


def activation_bytes(collected: Collected, tokens: Tokens) -> int:
    """Return the bytes of an activation file, without compression."""
    total = _FILE_BYTES + tokens.rows * _ROW_BYTES
    for name, shape in arrays(collected, tokens.rows, tokens.kept):
        dtype = np.dtype(collected.storage if is_readout(name) else "float32")
        rows = chunk(shape, dtype)[0]
        total += math.ceil(shape[0] / rows) * rows * math.prod(shape[1:]) * dtype.itemsize + _ARRAY_BYTES
    return total


def forward_flops(size: ModelSize, tokens: Tokens) -> int:
    """Return the floating-point operations of one forward pass: two per weight of the blocks and token, and attention."""
    return 2 * size.block_parameters * tokens.total + 4 * size.n_layers * size.width * tokens.squares


def extraction_mib(size: ModelSize, dtype: str, batch_tokens: int, collected: Collected, tokens: Tokens) -> int:
    """Return the peak memory of an extraction on the CPU in MiB: the process, the weights, one batch, one window."""
    batch = max(min(batch_tokens, tokens.total), tokens.longest)
    states = _STATES * batch * size.width * 4
    squares = _SQUARES * batch * tokens.longest * 8 if collected.recipes else 0
    results = tokens.rows * collected.row_bytes(tokens.kept / max(tokens.rows, 1))
    held = min(_WINDOW_BYTES, results)
    return math.ceil(_PROCESS_MIB + (size.weight_bytes(dtype) + states + squares + held) / MIB)


def metric_mib(width: int, rows: int, spectrum: int, most: int | None) -> int:
    """Return the memory of a metric in MiB: a layer's vectors, their Gram matrices, and a block of spectra, in float64.

    Args:
        width: D.
        rows: of the dataset, views included.
        spectrum: most eigenvalues of one sample.
        most: rows that the metric takes of more (``max_samples`` times the views), which it compares with each other; None:
            it takes all, block by block.
    """
    held = min(rows, HELD_BYTES // (8 * width)) if most is None else min(rows, most)
    grams = 4 * min(held, width if most is None else held) ** 2
    spectra = 4 * min(rows * spectrum, BLOCK_BYTES // 8)
    return math.ceil(_LIGHT_MIB + (8 * (4 * held * width + grams + spectra) + _ROW_BYTES * rows) / MIB)


def scoring_mib(width: int, rows: int) -> int:
    """Return the memory of scoring a task in MiB: the evaluator and a few copies of one layer's vectors."""
    return math.ceil(_SCORING_MIB + 6 * 8 * rows * width / MIB)
