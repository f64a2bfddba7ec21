"""Seeded resamples: halves and resamples of items, small labelled samples, permuted task labels."""

import itertools
import zlib

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ALL_PERMUTATIONS = 720  # up to 6 tasks every relabelling is visited, so the p-value is exact


def generator(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that depend on ``seed`` and ``names`` only, so that no other row of a table can move a result."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])


def subsets(n: int, size: int, draws: int, rng: np.random.Generator) -> Array:
    """Weights (draws, n) of 0 and 1: ``size`` of ``n`` items drawn without replacement."""
    order = np.argsort(rng.random((draws, n)), axis=1)
    return (order < size).astype(np.float64)


def resamples(n: int, draws: int, rng: np.random.Generator) -> Array:
    """Weights (draws, n) of ``n`` items drawn with replacement."""
    return rng.multinomial(n, np.full(n, 1.0 / n), size=draws).astype(np.float64)


def relabellings(n: int, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Permutations (P, n) of task labels: all of them if there are few, else the identity and ``draws`` random ones.

    The identity is always among them, as an exact permutation test wants it.
    """
    if n <= 1 or np.prod(np.arange(1.0, n + 1)) <= _ALL_PERMUTATIONS:
        return np.array(list(itertools.permutations(range(n))), dtype=np.int64)
    shuffled = rng.permuted(np.tile(np.arange(n), (draws, 1)), axis=1)
    return np.concatenate([np.arange(n)[None], shuffled])
