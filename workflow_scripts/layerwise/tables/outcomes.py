"""Scores of every layer from per-item outcomes, for many subsets or resamples of the items at once.

A subset or resample is a row of non-negative integer weights, one per item: 0 leaves the item out, 2 counts it twice.
Every score is computed inside the weighted sample: ranks, precisions and contingency tables are never taken over from
the full set.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

_CELLS = 60_000  # weights sorted at once: an array of half a megabyte stays in the cache


@dataclass(frozen=True)
class TaskItems:
    """Per-item outcomes of one model on one task.

    Attributes:
        protocol: the protocol whose score the outcomes give.
        score: "accuracy", "spearman", "average_precision" or "v_measure".
        gold: (n,) human scores, 0/1 labels or class codes; unused for "accuracy".
        readouts: name -> (L + 1, n) outcome of every item at every layer: 0/1 correct, a similarity, or a cluster code.
    """

    protocol: str
    score: str
    gold: NDArray[np.float64]
    readouts: dict[str, NDArray[np.float64]]

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.gold)

    def scores(self, readout: str, weights: ArrayLike) -> Array:
        """Scores (S, L + 1) of every layer of ``readout`` on S weighted samples (S, n)."""
        return layer_scores(self.score, self.gold, self.readouts[readout], weights)


def layer_scores(score: str, gold: ArrayLike, outcomes: ArrayLike, weights: ArrayLike) -> Array:
    """Score every layer on every weighted sample.

    Args:
        score: "accuracy", "spearman", "average_precision" or "v_measure".
        gold: (n,) gold values (ignored for "accuracy").
        outcomes: (L + 1, n) outcomes per layer.
        weights: (S, n) non-negative integer weights.

    Returns:
        (S, L + 1) float64; NaN where the sample has no score (no items, constant ranks, no positive pair).

    Raises:
        KeyError: an unknown ``score``.
    """
    function = SCORES[score]
    gold, outcomes = np.asarray(gold, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    return function(gold, outcomes, np.atleast_2d(np.asarray(weights, dtype=np.float64)))


def _blocks(weights: Array) -> Iterator[Array]:
    step = max(1, _CELLS // max(1, weights.shape[1]))
    for start in range(0, len(weights), step):
        yield weights[start : start + step]


def accuracy(gold: Array, outcomes: Array, weights: Array) -> Array:
    """Weighted mean of 0/1 outcomes (S, L + 1)."""
    return _ratio(weights @ outcomes.T, weights.sum(axis=1, keepdims=True))


def spearman(gold: Array, outcomes: Array, weights: Array) -> Array:
    """Spearman correlation of outcomes and gold, ranked (ties share their mean rank) inside each sample."""
    wanted_sorted, sortings = _sorting(gold), [_sorting(row) for row in outcomes]
    parts = [np.empty((0, len(outcomes)))]
    for block in _blocks(weights):
        columns = np.ascontiguousarray(block.T)  # sorting then moves whole rows, several times faster
        wanted = _centred_ranks(wanted_sorted, columns)
        wanted_norm = np.einsum("ns,ns,ns->s", columns, wanted, wanted)
        result = np.full((len(block), len(outcomes)), np.nan)
        for layer, sorting in enumerate(sortings):
            found = _centred_ranks(sorting, columns)
            weighted = columns * found
            norm = np.sqrt(np.einsum("ns,ns->s", weighted, found) * wanted_norm)
            result[:, layer] = _ratio(np.einsum("ns,ns->s", weighted, wanted), np.where(norm > 1e-9, norm, 0.0))
        parts.append(result)
    return np.concatenate(parts)


def _sorting(values: Array) -> tuple[Codes, Codes, Codes]:
    """The order of ``values`` (n,), the last place of each group of equal ones in it, and the group of each value."""
    _, group = np.unique(values, return_inverse=True)
    return np.argsort(group, kind="stable"), np.cumsum(np.bincount(group)) - 1, group


def _centred_ranks(sorting: tuple[Codes, Codes, Codes], columns: Array) -> Array:
    """Mean ranks (n, S) of sorted values, minus their mean, where item i occurs ``columns[i, s]`` times in sample s.

    Sorting happens once, ranking inside every sample: the rank is a count of the sample's own items.
    """
    order, ends, group = sorting
    counts = columns[order]
    upper = np.cumsum(counts, axis=0, out=counts)
    upper = upper if len(ends) == len(order) else upper[ends]
    ranks = upper - upper[-1]  # (items up to and with the group + items below it + 1) / 2, minus its mean
    ranks[1:] += upper[:-1]
    ranks /= 2.0
    return ranks[group]


def average_precision(gold: Array, outcomes: Array, weights: Array) -> Array:
    """Area under the precision-recall steps, thresholds at the distinct outcomes; gold > 0 is a positive pair."""
    sortings = [_sorting(-row) for row in outcomes]
    parts = [np.stack([_average_precision(gold > 0, s, block) for s in sortings], axis=1) for block in _blocks(weights)]
    return np.concatenate([np.empty((0, len(outcomes))), *parts])


def _average_precision(positive: NDArray[np.bool_], sorting: tuple[Codes, Codes, Codes], weights: Array) -> Array:
    order, ends, _ = sorting
    sorted_weights = weights[:, order]
    found = np.cumsum(sorted_weights * positive[order], axis=1)[:, ends]
    seen = np.cumsum(sorted_weights, axis=1)[:, ends]
    steps = np.diff(found, axis=1, prepend=0.0)
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    return _ratio((steps * precision).sum(axis=1), found[:, -1])


def v_measure(gold: Array, outcomes: Array, weights: Array) -> Array:
    """Harmonic mean of homogeneity and completeness: 2 I(gold; cluster) / (H(gold) + H(cluster))."""
    wanted = _entropy(gold, weights)
    return np.stack([_v_measure(gold, wanted, row, weights) for row in outcomes], axis=1)


def _v_measure(gold: Array, gold_entropy: Array, clusters: Array, weights: Array) -> Array:
    _, joint = np.unique(np.stack([gold, clusters]), axis=1, return_inverse=True)
    separate = gold_entropy + _entropy(clusters, weights)
    shared = np.maximum(separate - _entropy(joint.ravel(), weights), 0.0)
    value = np.divide(2.0 * shared, separate, out=np.ones_like(shared), where=separate > 1e-12)
    return np.where(weights.sum(axis=1) > 0, value, np.nan)


def _entropy(labels: NDArray[np.generic], weights: Array) -> Array:
    """Shannon entropy (S,) in nats of the label frequencies in every sample."""
    _, codes = np.unique(labels, return_inverse=True)
    n = len(codes)
    one_hot = sparse.csr_array((np.ones(n), (codes, np.arange(n))), shape=(int(codes.max(initial=0)) + 1, n))
    counts = (one_hot @ weights.T).T
    p = _ratio(counts, weights.sum(axis=1, keepdims=True))
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    return -(p * logs).sum(axis=1)


def _ratio(numerator: Array, denominator: Array) -> Array:
    denominator = np.broadcast_to(denominator, numerator.shape)
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0)


SCORES = {
    "accuracy": accuracy,
    "spearman": spearman,
    "average_precision": average_precision,
    "v_measure": v_measure,
}
