"""The statistics of one metric curve and one score curve over the tasks that both have."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layerwise.tables import dependence
from layerwise.tables.resampling import relabellings
from layerwise.tables.task_bootstrap import MIN_TASKS_INTERVAL, correlation_interval, task_weights

Array = NDArray[np.float64]

MIN_TASKS_PERMUTED = 5

_PERMUTATIONS = 1999


@dataclass(frozen=True)
class Pair:
    """The curves of the tasks that a metric and a score have in common, tasks in one order, layers in one order."""

    metric: Array  # (T, layers); every row is the same curve where the metric was taken on a corpus
    score: Array  # (T, layers)
    depth: Array  # (layers,)
    types: list[str]
    own: bool


def statistics(pair: Pair, rng: np.random.Generator) -> dict[str, float]:
    """Return the statistics of ``correlation.correlations`` by column name; a missing one is NaN or absent.

    Args:
        pair: no curve and no mean curve is constant or undefined.
        rng: draws the bootstrap, then the relabellings.
    """
    x, y = pair.metric.mean(axis=0), pair.score.mean(axis=0)
    rho = float(dependence.spearman(x, y))
    beyond = float(dependence.residual_spearman(x, y, pair.depth))
    intervals = dict.fromkeys(("low", "high", "residual_low", "residual_high"), float("nan"))
    if len(pair.types) >= MIN_TASKS_INTERVAL:
        weights = task_weights(pair.types, rng)
        drawn = weights @ pair.metric, weights @ pair.score
        plain = correlation_interval(rho, dependence.spearman(*drawn))
        residual = correlation_interval(beyond, dependence.residual_spearman(*drawn, pair.depth))
        intervals = dict(zip(intervals, (*plain, *residual), strict=True))
    return {
        "spearman": rho,
        "kendall": dependence.kendall(x, y),
        "dcor": dependence.distance_correlation(x, y),
        "dcor2_corrected": dependence.corrected_squared_distance_correlation(x, y),
        **intervals,
        "residual_spearman": beyond,
        "partial_spearman": dependence.partial_spearman(x, y, pair.depth),
        **(task_permutation(pair.metric, pair.score, rng) if pair.own else {}),
    }


def task_permutation(metric: Array, score: Array, rng: np.random.Generator) -> dict[str, float]:
    """Compare the correlation of a task's metric curve with its own scores to that with other tasks' scores.

    Both curves keep their depth profile under a relabelling of the tasks, so the test asks what depth alone cannot
    answer: does the metric know more about its own task than about any other?

    Args:
        metric: (T, L) metric curves, none constant.
        score: (T, L) score curves of the same tasks in the same order, none constant.
        rng: draws the relabellings; all T! of them are used up to 6 tasks.

    Returns:
        within_task, other_task (NaN for one task) and p_task (NaN below 5 tasks) in (0, 1].
    """
    correlation = dependence.unit_ranks(metric) @ dependence.unit_ranks(score).T
    n = len(correlation)
    within = float(np.trace(correlation) / n)
    other = float((correlation.sum() - np.trace(correlation)) / (n * (n - 1))) if n > 1 else float("nan")
    result = {"within_task": within, "other_task": other, "p_task": float("nan")}
    if n >= MIN_TASKS_PERMUTED:
        permuted = correlation[np.arange(n), relabellings(n, _PERMUTATIONS, rng)].mean(axis=1)
        result["p_task"] = float((np.abs(permuted) >= abs(within) - 1e-12).mean())
    return result
