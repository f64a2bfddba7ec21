"""Halves of samples, standard errors from them, rank correlation of curves."""

import numpy as np
import pytest
from _metric_inputs import gaussian
from layerwise.metrics.dataset_entropy import dataset_entropy
from layerwise.metrics.resampling import draw_halves, spearman, spread
from layerwise.spectrum import centre_unit
from scipy import stats


@pytest.mark.parametrize("n", [2, 3, 7, 10, 40, 101])
def test_halves_are_half_without_repetition(n):
    halves = draw_halves(n, 12, seed=1)
    assert len(halves.halves) == 13
    np.testing.assert_array_equal(np.sort(np.concatenate(halves.groups)), np.arange(n))
    for half in range(12):
        rows = halves.rows(half)
        assert len(set(rows.tolist())) == len(rows)
        assert abs(len(rows) - n / 2) <= max(0.5, 0.05 * n)
    both = np.concatenate([halves.rows(0), halves.rows(12)])
    np.testing.assert_array_equal(np.sort(both), np.arange(n))


def test_halves_depend_on_seed_and_n_alone():
    first = draw_halves(50, 10, seed=1)
    again, other = draw_halves(50, 10, seed=1), draw_halves(50, 10, seed=2)
    assert first.halves == again.halves
    assert all((a == b).all() for a, b in zip(first.groups, again.groups, strict=True))
    assert not np.array_equal(first.rows(0), other.rows(0))
    assert len({tuple(first.rows(half).tolist()) for half in range(10)}) > 5


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_samples_give_empty_halves(n):
    halves = draw_halves(n, 0, seed=0)
    assert sorted(len(halves.rows(half)) for half in range(2)) == [0, n]


def test_spread_of_halves_is_the_standard_error_of_the_whole():
    """Against the real thing: the value's spread over 150 fresh data sets."""
    n, fresh = 60, [gaussian(60, 8, seed=s) * np.arange(1, 9) ** -0.7 for s in range(150)]
    truth = np.std([dataset_entropy(centre_unit(rows)) for rows in fresh], ddof=1)
    estimates, means = [], []
    for seed, rows in enumerate(fresh[:60]):
        halves = draw_halves(n, 10, seed)
        estimates.append(spread([dataset_entropy(centre_unit(rows[halves.rows(h)])) for h in range(10)]))
        means.append(spread([float(rows[halves.rows(h), 0].mean()) for h in range(10)]))
    assert np.sqrt(np.mean(np.square(estimates))) == pytest.approx(truth, rel=0.25)
    assert np.sqrt(np.mean(np.square(means))) == pytest.approx(1 / np.sqrt(n), rel=0.2)


def test_spread_needs_two_values():
    assert spread([1.0, None, 3.0]) == pytest.approx(np.sqrt(2))
    assert spread([1.0, None]) is None
    assert spread([]) is None


def test_spearman_matches_scipy_with_ties():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 6, size=(2, 12)).astype(float)
        assert spearman(a.tolist(), b.tolist()) == pytest.approx(stats.spearmanr(a, b).statistic)


def test_spearman_is_undefined_without_variation():
    assert spearman([1.0, 1.0, 1.0 + 1e-15], [1.0, 2.0, 3.0]) is None
    assert spearman([1.0, 2.0], [1.0, 2.0]) is None
    assert spearman([1.0, None, 2.0, 3.0], [3.0, 9.0, 2.0, 1.0]) == -1.0
