"""Simulated studies: how often the tests reject without an effect, and how often the intervals cover the truth."""

import numpy as np
import pytest
from layerwise.tables import dependence
from layerwise.tables.pair_statistics import Pair, statistics, task_permutation
from layerwise.tables.task_bootstrap import MIN_TASKS_INTERVAL, correlation_interval, strata, task_weights
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


def smooth(rng: np.random.Generator, n: int, layers: int, scale: float = 0.25) -> Array:
    """Curves (n, layers) of a Gaussian process over depth with standard deviation 1."""
    depth = np.linspace(0, 1, layers)
    kernel = np.exp(-0.5 * ((depth[:, None] - depth) / scale) ** 2) + 1e-8 * np.eye(layers)
    return rng.standard_normal((n, layers)) @ np.linalg.cholesky(kernel).T


def walks(rng: np.random.Generator, n: int, layers: int) -> Array:
    return np.cumsum(rng.standard_normal((n, layers)), axis=1)


@pytest.mark.parametrize("curves", [smooth, walks])
@pytest.mark.parametrize("layers", [7, 13, 25, 31])
def test_the_task_permutation_rejects_five_percent_of_smooth_independent_curves(layers: int, curves) -> None:
    rng, p = np.random.default_rng(layers), []
    for study in range(1200):
        tasks = 8 + study % 5
        profile = curves(rng, 1, layers) if study % 2 else 0  # of all tasks, the same in metric and score
        both = (profile + curves(rng, tasks, layers) for _ in range(2))
        p.append(task_permutation(*both, rng)["p_task"])
    assert 0.03 <= np.mean(np.array(p) <= 0.05) <= 0.07
    # the p-value of a single curve, which ignores that neighbouring layers are alike, rejects far too often
    naive = [stats.spearmanr(*(curves(rng, 1, layers)[0] for _ in range(2))).pvalue for _ in range(200)]
    assert np.mean(np.array(naive) <= 0.05) > 0.1


def _inverted_u(rng: np.random.Generator, layers: int, peak: float, noise: float) -> Array:
    depth = np.linspace(0, 1, layers)
    curve = -((depth - peak) ** 2)
    return (curve - curve.mean()) / curve.std() + noise * rng.standard_normal(layers)


@pytest.mark.parametrize("layers", [13, 25, 31])
@pytest.mark.parametrize("noise", [0.02, 0.5])
@pytest.mark.parametrize("peak", [0.5, 0.7])
def test_an_inverted_u_of_depth_vanishes_in_the_depth_controlled_column(layers: int, noise: float, peak: float) -> None:
    rng, depth, found = np.random.default_rng(layers), np.linspace(0, 1, layers), []
    for _ in range(200):
        metric, score = (np.array([_inverted_u(rng, layers, peak, noise)]) for _ in range(2))
        found.append(statistics(Pair(metric, score, depth, ["sts"], own=True), rng))
    mean = {name: np.mean([row[name] for row in found]) for name in ("spearman", "residual_spearman", "partial_spearman")}
    assert mean["spearman"] > 0.6
    assert abs(mean["residual_spearman"]) < 0.06  # standard error .02 at 13 layers
    # a quadratic in ranks is only close to one in values, so the usual partial correlation keeps some of a clean U
    assert mean["partial_spearman"] > 0.3 or noise > 0.1 or peak != 0.5


DESIGNS = {  # types of the tasks, size of a task's own curves against the shared ones
    "8 tasks of 1 type": ([0] * 8, 0.5),
    "8 tasks of 3 types": ([0, 0, 1, 1, 1, 2, 2, 2], 0.5),
    "12 tasks of 3 types, own curves as large": ([0] * 4 + [1] * 4 + [2] * 4, 1.0),
    "32 tasks of 5 types": ([0] * 10 + [1] * 6 + [2] * 4 + [3] * 9 + [4] * 3, 0.5),
}


def _covered(rng: np.random.Generator, types: list[int], own: float, relation: float, layers: int = 25) -> list[bool]:
    """Whether the intervals of the plain and of the depth-controlled correlation hold those of the population's curves."""
    metric = smooth(rng, 1, layers)
    score = relation * metric + np.sqrt(1 - relation**2) * smooth(rng, 1, layers)
    kinds, depth = np.array(types), np.linspace(0, 1, layers)
    truth = [curve + 0.5 * (max(types) > 0) * smooth(rng, max(types) + 1, layers)[kinds] for curve in (metric, score)]
    seen = [curve + own * smooth(rng, len(types), layers) for curve in truth]
    weights = task_weights([str(kind) for kind in types], rng, 300)
    result = []
    for measure in (dependence.spearman, lambda x, y: dependence.residual_spearman(x, y, depth)):
        target, estimate = (float(measure(*(part.mean(axis=0) for part in curves))) for curves in (truth, seen))
        low, high = correlation_interval(estimate, measure(*(weights @ part for part in seen)))
        result.append(low <= target <= high)
    return result


@pytest.mark.parametrize("design", DESIGNS)
def test_bootstrap_intervals_cover(design: str) -> None:
    types, own = DESIGNS[design]
    rng = np.random.default_rng(7)
    covered = np.array([_covered(rng, types, own, relation) for relation in (0.0, 0.8) for _ in range(150)])
    # .93 is asked for on average; 300 studies of .95 have a standard error of .013
    assert covered.mean() >= 0.93
    assert covered.mean(axis=0).min() >= 0.93 - 0.025


def test_weights_give_the_mean_and_its_variance_within_types() -> None:
    rng = np.random.default_rng(3)
    types = ["a"] * 3 + ["b"] * 6
    weights = task_weights(types, rng, 40_000)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(weights.mean(axis=0), 1 / 9, atol=0.004)
    values = rng.standard_normal(9)
    parts = [values[:3], values[3:]]
    variance = sum(len(part) ** 2 * part.var(ddof=1) / len(part) for part in parts) / 81
    stretch = (stats.t.ppf(0.975, 7) / stats.norm.ppf(0.975)) ** 2
    assert (weights @ values).var() == pytest.approx(stretch * variance, rel=0.03)


def test_no_stratum_has_one_task() -> None:
    def named(types: str) -> list[list[int]]:
        return [group.tolist() for group in strata([*types])]

    assert named("aabb") == [[0, 1], [2, 3]]
    assert named("abcaa") == [[0, 3, 4], [1, 2]]  # b and c together
    assert named("aabbbc") == [[0, 1], [2, 3, 4, 5]]  # c with the largest
    assert named("abc") == [[0, 1, 2]]
    assert named("a") == [[0]]
    assert MIN_TASKS_INTERVAL == 8
    assert task_weights(["a"], np.random.default_rng(0), 3).tolist() == [[1.0]] * 3


def test_an_interval_needs_an_estimate_and_draws() -> None:
    assert np.isnan(correlation_interval(float("nan"), np.zeros(9))).all()
    assert np.isnan(correlation_interval(0.5, np.full(9, np.nan))).all()
    low, high = correlation_interval(1.0, np.linspace(0.8, 1, 100))
    assert low < 0.82
    assert high == pytest.approx(1)
