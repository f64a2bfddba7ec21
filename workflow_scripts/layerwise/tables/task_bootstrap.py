"""Intervals of what two mean curves over few tasks have in common: a bootstrap over tasks within their types.

The plain percentile bootstrap covers too little here: within types of two or three tasks it understates the variance by
a half or a third, and a resampled mean curve is noisier than the mean curve, so its correlation is closer to zero than
the estimate, which is itself closer to zero than the truth. With 8 tasks of 3 types a nominal 95 % interval covered 78 to
87 % of simulated studies. What is done instead covered 91 to 98 % there and from 8 to 32 tasks (tests/unit/tables).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from layerwise.tables.resampling import resamples

Array = NDArray[np.float64]

MIN_TASKS_INTERVAL = 8
DRAWS = 1000

_NORMAL_975 = 1.959964
_NEARLY_ONE = 1.0 - 1e-9


def task_weights(types: Sequence[str], rng: np.random.Generator, draws: int = DRAWS) -> Array:
    """Weights (draws, T), rows of sum 1, that turn task curves (T, L) into resampled mean curves.

    In a type of m tasks m - 1 are drawn with replacement and scaled up, so that a weighted mean has the variance of the
    mean (Rao and Wu 1988). All deviations are then stretched by the ratio of the t quantile (tasks minus types degrees
    of freedom) to the normal one; weights may be negative. Types with one task form a stratum together; a single one
    joins the largest type.
    """
    n, groups = len(types), strata(types)
    weights = np.zeros((draws, n))
    for members in groups:
        m = len(members)
        drawn = resamples(m, draws, rng) if m == 1 else rng.multinomial(m - 1, np.full(m, 1.0 / m), size=draws) * m / (m - 1)
        weights[:, members] = drawn
    stretch = float(stdtrit(n - len(groups), 0.975)) / _NORMAL_975 if n > len(groups) else 1.0
    return 1.0 / n + stretch * (weights - 1.0) / n


def strata(types: Sequence[str]) -> list[NDArray[np.int64]]:
    """Positions of the tasks of each stratum, each of two tasks or more if there are two."""
    labels = np.asarray(types)
    names, counts = np.unique(labels, return_counts=True)
    alone = np.flatnonzero(np.isin(labels, names[counts == 1]))
    groups = [np.flatnonzero(labels == name) for name in names[counts > 1]]
    if len(alone) == 1 and groups:
        largest = max(range(len(groups)), key=lambda at: len(groups[at]))
        groups[largest] = np.sort(np.concatenate([groups[largest], alone]))
    elif len(alone):
        groups.append(alone)
    return groups


def correlation_interval(estimate: float, drawn: Array) -> tuple[float, float]:
    """95 % interval of a correlation from its bootstrap draws: the percentile interval and its mirror image together.

    The percentile interval lies too close to zero, the one mirrored at the estimate (on Fisher's z scale) too far from
    it; both ends are the wider of the two.

    Returns:
        (low, high) in [-1, 1]; NaN without an estimate or with less than half of the draws defined.
    """
    if not np.isfinite(estimate) or np.isfinite(drawn).mean() < 0.5:
        return float("nan"), float("nan")
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    z = np.arctanh(np.clip([estimate, low, high], -_NEARLY_ONE, _NEARLY_ONE))
    mirrored = np.tanh([2 * z[0] - z[2], 2 * z[0] - z[1]])
    return float(min(low, mirrored[0])), float(max(high, mirrored[1]))
