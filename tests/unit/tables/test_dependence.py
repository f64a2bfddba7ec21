"""Measures of dependence against slow loops, and what they must not see."""

import numpy as np
import pytest
from layerwise.tables import dependence
from layerwise.tables.resampling import relabellings, resamples, subsets
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


def slow_distance_covariance(x: Array, y: Array) -> float:
    n = len(x)
    a = [[abs(x[i] - x[j]) for j in range(n)] for i in range(n)]
    b = [[abs(y[i] - y[j]) for j in range(n)] for i in range(n)]
    first = sum(a[i][j] * b[i][j] for i in range(n) for j in range(n)) / n**2
    second = sum(map(sum, a)) / n**2 * sum(map(sum, b)) / n**2
    third = sum(sum(a[i]) * sum(b[i]) for i in range(n)) / n**3
    return first + second - 2 * third


def slow_u_covariance(x: Array, y: Array) -> float:
    n = len(x)

    def centred(z: Array, i: int, j: int) -> float:
        row = sum(abs(z[i] - z[k]) for k in range(n))
        column = sum(abs(z[k] - z[j]) for k in range(n))
        total = sum(abs(z[k] - z[m]) for k in range(n) for m in range(n))
        return abs(z[i] - z[j]) - row / (n - 2) - column / (n - 2) + total / ((n - 1) * (n - 2))

    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    return sum(centred(x, i, j) * centred(y, i, j) for i, j in pairs) / (n * (n - 3))


@pytest.mark.parametrize("n", [4, 7, 12])
def test_distance_correlation_equals_the_definition(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n)
    y = np.round(x**2 + rng.standard_normal(n), 1)
    scale = np.sqrt(slow_distance_covariance(x, x) * slow_distance_covariance(y, y))
    wanted = np.sqrt(slow_distance_covariance(x, y) / scale)
    assert dependence.distance_correlation(x, y) == pytest.approx(wanted, rel=1e-10)
    scale = np.sqrt(slow_u_covariance(x, x) * slow_u_covariance(y, y))
    wanted = slow_u_covariance(x, y) / scale
    assert dependence.corrected_squared_distance_correlation(x, y) == pytest.approx(wanted, rel=1e-10)


def test_distance_correlation_is_biased_and_its_correction_is_not() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.standard_normal((600, 2, 25))
    plain = np.mean([dependence.distance_correlation(x, y) for x, y in pairs])
    corrected = np.mean([dependence.corrected_squared_distance_correlation(x, y) for x, y in pairs])
    assert plain == pytest.approx(0.34, abs=0.02)
    assert corrected == pytest.approx(0.0, abs=0.01)


def test_scale_shift_and_order_of_layers_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 20))
    order = rng.permutation(20)
    for measure in (dependence.distance_correlation, dependence.corrected_squared_distance_correlation):
        assert measure(x, y) == pytest.approx(measure(5 - 1e3 * x[order], y[order]))
        assert measure(x, 3 * x + 1) == pytest.approx(1)


def test_spearman_equals_scipy_also_with_ties_and_broadcasts() -> None:
    rng = np.random.default_rng(2)
    x, y = np.round(rng.random((2, 6, 15)), 1)
    wanted = [stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(dependence.spearman(x, y), wanted)
    assert dependence.spearman(x[:, None], y).shape == (6, 6)
    np.testing.assert_array_equal(dependence.ranks(x), stats.rankdata(x, axis=-1))
    wanted = [stats.kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)]
    smooth = rng.random((5, 3, 15))
    np.testing.assert_array_equal(dependence.ranks(smooth), stats.rankdata(smooth, axis=-1))
    assert np.isnan(dependence.spearman(np.full(15, np.nan), y[0]))
    np.testing.assert_allclose([dependence.kendall(a, b) for a, b in zip(x, y, strict=True)], wanted)


@pytest.mark.parametrize("curve", [np.zeros(10), np.full(10, 0.1), 0.1 + 1e-17 * np.arange(10)])
def test_constant_curves_have_no_correlation_and_raise_nothing(curve: Array) -> None:
    other, depth = np.arange(10.0), np.linspace(0, 1, 10)
    for x, y in ((curve, other), (other, curve), (curve, curve)):
        assert np.isnan(dependence.spearman(x, y))
        assert np.isnan(dependence.kendall(x, y))
        assert np.isnan(dependence.distance_correlation(x, y))
        assert np.isnan(dependence.corrected_squared_distance_correlation(x, y))
        assert np.isnan(dependence.partial_spearman(x, y, depth))
        assert np.isnan(dependence.residual_spearman(x, y, depth))


def test_a_relation_beyond_depth_stays() -> None:
    rng, depth = np.random.default_rng(6), np.linspace(0, 1, 25)
    extra = rng.standard_normal(25)
    x, y = depth + extra, 4 * depth**2 + extra
    assert dependence.partial_spearman(x, y, depth) > 0.8
    assert dependence.residual_spearman(x, y, depth) > 0.8


def test_a_curve_that_depth_explains_is_undefined() -> None:
    depth = np.linspace(0, 1, 25)
    assert np.isnan(dependence.partial_spearman(depth, np.random.default_rng(0).random(25), depth))
    assert np.isnan(dependence.residual_spearman(depth**2 + depth, np.sin(9 * depth), depth))
    assert np.isnan(
        dependence.residual_spearman(np.stack([depth, np.sin(9 * depth)]), np.sin(9 * depth), depth)
    ).tolist() == [
        True,
        False,
    ]
    assert np.isnan(dependence.partial_spearman([1, 3, 2, 5, 4], [1, 2, 3, 5, 4], np.linspace(0, 1, 5)))


def test_resamples() -> None:
    rng = np.random.default_rng(0)
    half = subsets(9, 4, 2000, rng)
    assert set(half.sum(axis=1)) == {4}
    assert np.abs(half.mean(axis=0) - 4 / 9).max() < 0.05
    assert set(resamples(9, 50, rng).sum(axis=1)) == {9}


def test_relabellings_are_all_of_them_or_include_the_identity() -> None:
    rng = np.random.default_rng(0)
    assert len({tuple(p) for p in relabellings(5, 10, rng)}) == 120
    assert relabellings(1, 10, rng).tolist() == [[0]]
    many = relabellings(9, 50, rng)
    assert many.shape == (51, 9)
    assert many[0].tolist() == list(range(9))
    assert {tuple(sorted(p)) for p in many} == {tuple(range(9))}
