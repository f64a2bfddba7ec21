"""Effective rank against singular values, and the inequality the paper states the wrong way round."""

import math

import numpy as np
import pytest
from _metric_inputs import DEFINED, UNDEFINED, centre_unit, gaussian, rotation
from layerwise.errors import UndefinedMetric
from layerwise.metrics.effective_rank import effective_rank
from layerwise.metrics.matrix_entropy import matrix_entropy


def slow_rank(rows):
    sigma = np.linalg.svd(rows, compute_uv=False)
    p = [value / sum(sigma) for value in sigma]
    return math.exp(-sum(x * math.log(x) for x in p if x > 0))


@pytest.mark.parametrize("shape", [(7, 12), (12, 7), (8, 8)])
def test_matches_slow_reference(shape):
    rows = gaussian(*shape)
    assert effective_rank(rows) == pytest.approx(slow_rank(rows), rel=1e-9)
    assert effective_rank(centre_unit(rows)) == pytest.approx(slow_rank(centre_unit(rows)), rel=1e-5)


def test_known_values():
    assert effective_rank(np.eye(4)) == pytest.approx(4.0)
    assert effective_rank(np.diag([0.9, 0.1])) == pytest.approx(math.exp(-0.9 * math.log(0.9) - 0.1 * math.log(0.1)))
    assert effective_rank(np.outer(np.arange(1.0, 6), [1.0, 2, 3])) == pytest.approx(1.0)


def test_never_below_the_exponential_of_the_entropy():
    """Theorem 1 of the paper states the reverse; see PAPER 1.4."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        rows = rng.normal(size=rng.integers(2, 12, size=2)) * rng.exponential()
        if min(rows.shape) > 1:
            assert effective_rank(rows) > math.exp(matrix_entropy(rows))


def test_invariances_and_precision():
    rows = gaussian(9, 6)
    value = effective_rank(rows)
    assert effective_rank(rows[::-1] @ rotation(6)) == pytest.approx(value, rel=1e-10)
    assert effective_rank(np.hstack([rows, np.zeros((9, 30))])) == pytest.approx(value, rel=1e-6)
    assert effective_rank(rows * 1e200) == pytest.approx(value, rel=1e-10)
    assert effective_rank(rows.astype(np.float32)) == pytest.approx(value, rel=1e-5)


def test_rank_deficiency_is_not_filled_with_rounding():
    rows = gaussian(300, 4) @ gaussian(4, 400)
    assert effective_rank(rows) == pytest.approx(slow_rank(rows), rel=1e-9)
    assert effective_rank(rows) <= 4.0


@pytest.mark.parametrize("name", DEFINED)
def test_hard_inputs_are_in_bounds(name):
    assert 1.0 <= effective_rank(DEFINED[name]) <= min(DEFINED[name].shape) + 1e-9


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_inputs_are_named(name):
    with pytest.raises(UndefinedMetric):
        effective_rank(UNDEFINED[name])
