"""Halves of the samples, for standard errors and split-half curves, and the rank correlation of two curves."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from layerwise.metrics.spec import Array, Indices

_STREAM, _SUBSET_STREAM = 2, 5  # keep these random numbers apart from other uses of the same seed


class Halves(NamedTuple):
    """Halves of N samples, as unions of disjoint groups, so that sums over samples are formed once per group.

    Attributes:
        groups: disjoint sorted row indices, together all N.
        halves: group numbers of every half: the subsamples, then the complement of the first of them (for split-half).
    """

    groups: tuple[Indices, ...]
    halves: tuple[tuple[int, ...], ...]

    def rows(self, half: int) -> Indices:
        """Sorted row indices of one half."""
        return np.sort(np.concatenate([np.empty(0, np.intp), *(self.groups[group] for group in self.halves[half])]))


def draw_halves(n: int, subsamples: int, seed: int) -> Halves:
    """Draw ``subsamples`` halves of n samples without replacement (at least one, and its complement).

    The samples are dealt at random into an even number of groups (each its own group when there are few), a half is a
    random half of the groups. Every half is then a simple random one of N/2 samples.

    Why their spread is the standard error of the FULL-sample value: a mean over m of N samples drawn without
    replacement varies by s^2 / m (1 - m/N) around the full mean, and for m = N/2 that is s^2 / N, the sampling
    variance of the full mean; the same holds to first order for any smooth statistic. (With replacement, duplicates
    lower the rank and bias every entropy: 5.93 becomes 5.44.)
    """
    rng = np.random.default_rng([seed, _STREAM, n])
    wanted = max(10, subsamples + subsamples % 2)
    count = max(1, min(n, wanted))
    groups = tuple(np.sort(part) for part in np.array_split(rng.permutation(n), count))
    draws = [tuple(sorted(rng.permutation(count)[: count // 2].tolist())) for _ in range(max(subsamples, 1))]
    complement = tuple(group for group in range(count) if group not in draws[0])
    return Halves(groups, (*draws, complement))


def draw_subset(n: int, most: int | None, seed: int) -> Indices | None:
    """Sorted numbers of ``most`` of n samples, drawn without replacement; None where all n are taken.

    They are the same for every layer, readout and model with n samples, and a larger subset contains the smaller ones.
    """
    if most is None or n <= most:
        return None
    return np.sort(np.random.default_rng([seed, _SUBSET_STREAM, n]).permutation(n)[:most])


def spread(values: Sequence[float | None]) -> float | None:
    """Standard deviation of the values that are not None, None below two."""
    known = [value for value in values if value is not None]
    return float(np.std(known, ddof=1)) if len(known) > 1 else None


def spearman(first: Sequence[float | None], second: Sequence[float | None]) -> float | None:
    """Spearman correlation of two curves over the layers where both have a value.

    Returns:
        Within [-1, 1]; None below three layers or when either curve is constant to within rounding.
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if len(pairs) < 3:
        return None
    columns = np.asarray(pairs, dtype=np.float64).T
    if (np.ptp(columns, axis=1) <= 1e-12 * np.abs(columns).max(axis=1)).any():
        return None
    correlation = float(np.corrcoef(_ranks(columns[0]), _ranks(columns[1]))[0, 1])
    return min(1.0, max(-1.0, correlation)) if math.isfinite(correlation) else None


def _ranks(values: Array) -> Array:
    """Ranks from 1, ties sharing their mean (scipy.stats would cost a job half a second of import)."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2.0)[inverse])
