"""Pooled metrics of more vectors than a job should hold: two passes over blocks of them, for metrics with ``accumulate``.

The first pass gives the mean, the second the prepared vectors. Every half of the samples is such a corpus of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from layerwise.budgets import BLOCK_BYTES, HELD_BYTES
from layerwise.errors import UndefinedMetric
from layerwise.metrics.resampling import Halves
from layerwise.metrics.spec import Activations, Array, Indices
from layerwise.spectrum import unit_about


class Corpus(NamedTuple):
    """The vectors of N samples, block by block.

    Attributes:
        n: N.
        width: D.
        blocks: gives (rows, D) raw vectors, together N, the same at every call.
    """

    n: int
    width: int
    blocks: Callable[[], Iterator[Array]]


def in_blocks(module: ModuleType, n: int, width: int) -> bool:
    """Whether a metric of n vectors is computed block by block; not where a half of them has fewer rows than columns."""
    return hasattr(module, "accumulate") and n // 2 > width and 8 * n * width > HELD_BYTES


def whole_and_halves(module: ModuleType, activations: Activations, readout: str, layer: int, halves: Halves) -> list[Any]:
    """State of all samples and of every half of them, each prepared anew; a constant half becomes its UndefinedMetric.

    Raises:
        UndefinedMetric: all vectors are equal.
    """
    states = [state(module, of_layer(activations, readout, layer, np.arange(activations.n_samples)))]
    for half in range(len(halves.halves)):
        try:
            states.append(state(module, of_layer(activations, readout, layer, halves.rows(half))))
        except UndefinedMetric as undefined:
            states.append(undefined)
    return states


def of_layer(activations: Activations, readout: str, layer: int, samples: Indices) -> Corpus:
    """The first view of some samples at one layer."""
    rows = block_rows(activations.width)

    def blocks() -> Iterator[Array]:
        for start in range(0, len(samples), rows):
            part = activations.among(samples[start : start + rows])
            yield np.asarray(part.pooled(readout, layer), dtype=np.float64)

    return Corpus(len(samples), activations.width, blocks)


def noise(n: int, width: int, key: Sequence[int]) -> Corpus:
    """Gaussian vectors: the rows that ``default_rng(key).standard_normal((n, width))`` has."""
    rows = block_rows(width)

    def blocks() -> Iterator[Array]:
        rng = np.random.default_rng(key)
        for start in range(0, n, rows):
            yield rng.standard_normal((min(rows, n - start), width))

    return Corpus(n, width, blocks)


def state(module: ModuleType, corpus: Corpus) -> Any:  # noqa: ANN401 - each metric has its own
    """What the metric's ``summarise`` makes of all prepared vectors at once.

    Raises:
        UndefinedMetric: all vectors are equal.
    """
    prepare = getattr(module, "prepare", None)
    if prepare is not None:  # row by row
        return module.accumulate((corpus.n, corpus.width), map(prepare, corpus.blocks()))
    mean = sum((block.sum(axis=0) for block in corpus.blocks()), np.zeros(corpus.width)) / corpus.n
    return module.accumulate((corpus.n, corpus.width), (unit_about(b, mean, corpus.n) for b in corpus.blocks()))


def block_rows(width: int) -> int:
    """Rows of D float64 numbers in a block, at least one."""
    return max(1, BLOCK_BYTES // (8 * width))
