"""DiME against loops over permutations; sample Gram matrices whatever D; the authors' numbers."""

import math

import numpy as np
import pytest
from _metric_inputs import DEFINED, UNDEFINED, centre_unit, gaussian, noisy_views, parity, rotation
from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.dime import dime, evaluate, null_case, permutation_set, summarise
from layerwise.metrics.matrix_entropy import matrix_entropy
from layerwise.metrics.spec import Case


def slow_joint_entropy(kernel_a, kernel_b, order):
    n = len(kernel_a)
    product = np.array([[kernel_a[i][j] * kernel_b[order[i]][order[j]] for j in range(n)] for i in range(n)])
    p = np.linalg.eigvals(product / np.trace(product)).real
    return -sum(x * math.log(x) for x in p if x > 1e-14)


def slow_dime(kernel_a, kernel_b, orders):
    permuted = [slow_joint_entropy(kernel_a, kernel_b, order) for order in orders]
    return sum(permuted) / len(permuted) - slow_joint_entropy(kernel_a, kernel_b, range(len(kernel_a)))


def pair(n=10, d=6, noise=0.5, seed=0):
    views = noisy_views(n, 2, d, noise, seed)
    return centre_unit(views[:, 0]), centre_unit(views[:, 1])


@pytest.mark.parametrize("shape", [(10, 6), (6, 10), (3, 3), (2, 4)])
def test_matches_slow_reference(shape):
    a, b = pair(*shape)
    orders = permutation_set(5, len(a), 4)
    expected = slow_dime(a @ a.T, b @ b.T, orders)
    assert dime(a, b, permutations=4, seed=5) == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_released_swaps_samples_for_features_only_when_they_are_more():
    a, b = pair(10, 6)
    expected = slow_dime(a.T @ a, b.T @ b, permutation_set(0, 6, 10))
    assert dime(a, b, variant="released") == pytest.approx(expected, rel=1e-8)
    assert dime(a, b, variant="released") != pytest.approx(dime(a, b), rel=0.2)
    a, b = pair(6, 10)
    assert dime(a, b, variant="released") == dime(a, b)


def test_several_eigenvalue_calls_give_what_one_gives(monkeypatch):
    a, b = pair()
    whole = dime(a, b)
    monkeypatch.setattr("layerwise.metrics.dime._BATCH_ENTRIES", 300)
    assert dime(a, b) == pytest.approx(whole, rel=1e-12)


def test_permutations_depend_on_seed_and_n_alone():
    first = permutation_set(3, 20, 10)
    permutation_set.cache_clear()
    np.random.default_rng(0).normal(size=10)
    np.testing.assert_array_equal(first, permutation_set(3, 20, 10))
    np.testing.assert_array_equal(permutation_set(3, 20, 4), first[:4])
    assert not np.array_equal(permutation_set(4, 20, 10), first)
    assert all(sorted(row) == list(range(20)) for row in first)
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1


def test_unrelated_views_give_about_zero_and_related_ones_more():
    a, b = centre_unit(gaussian(150, 64, seed=1)), centre_unit(gaussian(150, 64, seed=2))
    assert abs(dime(a, b)) < 1e-3
    assert dime(a, a) > 0.02
    closer = [dime(*pair(60, 12, noise)) for noise in (4.0, 1.0, 0.2)]
    assert closer == sorted(closer)


def test_evaluate_normalises_by_the_poorer_view_and_gives_the_noise():
    a, b = pair()
    state, case = summarise(np.stack([a, b], axis=1)), Case("paper", {"permutations": 10})
    value = evaluate(state, case, seed=0)
    assert value.value == dime(a, b)
    assert value.normalized == pytest.approx(value.value / min(matrix_entropy(a), matrix_entropy(b)))
    permuted = [slow_joint_entropy(a @ a.T, b @ b.T, order) for order in permutation_set(0, 10, 10)]
    one_out = [np.mean(permuted[:i] + permuted[i + 1 :]) - permuted[i] for i in range(10)]
    assert value.null_broken_pairs == pytest.approx(np.sqrt(np.mean(np.square(one_out))), rel=1e-6)
    assert evaluate(state, null_case(case), seed=0).null_broken_pairs is None


def test_never_above_the_entropy_of_the_poorer_view():
    for seed in range(10):
        a, b = pair(8, 8, noise=0.01, seed=seed)
        assert dime(a, b) <= min(matrix_entropy(a), matrix_entropy(b)) + 1e-9


def test_invariances():
    a, b = pair()
    value = dime(a, b)
    assert dime(a @ rotation(6), b @ rotation(6, 1)) == pytest.approx(value, rel=1e-8)
    assert dime(np.hstack([a, np.zeros((10, 40))]), b) == pytest.approx(value, rel=1e-8)
    for scale in (1e-200, 1e-20, 1e20, 1e200):
        assert dime(a * scale, b / scale) == pytest.approx(value, rel=1e-8)
    assert dime(a.astype("f4"), b.astype("f4")) == pytest.approx(value, rel=1e-4)
    order = np.random.default_rng(0).permutation(len(a))
    assert dime(a[order], b[order], 2000) == pytest.approx(dime(a, b, 2000), rel=0.03)
    assert dime(a, b[order], 200) < 0.5 * value


@pytest.mark.parametrize("name", DEFINED)
def test_hard_inputs_are_finite(name):
    rows = centre_unit(DEFINED[name])
    assert math.isfinite(dime(rows, rows))
    assert math.isfinite(dime(rows, rows, variant="released"))


@pytest.mark.parametrize("name", UNDEFINED)
@pytest.mark.parametrize("variant", ["paper", "released"])
def test_undefined_inputs_are_named(name, variant):
    with pytest.raises(UndefinedMetric):
        dime(UNDEFINED[name], UNDEFINED[name], variant=variant)


def test_bad_arguments():
    with pytest.raises(UndefinedMetric, match="5 and 6 samples"):
        dime(gaussian(5, 3), gaussian(6, 3))
    with pytest.raises(UndefinedMetric, match="one width"):
        dime(gaussian(9, 3), gaussian(9, 4), variant="released")
    for count in (0, -1, 2.5):
        with pytest.raises(ConfigError, match="permutations"):
            dime(np.eye(3), np.eye(3), permutations=count)
    with pytest.raises(ConfigError, match="paper, released"):
        dime(np.eye(3), np.eye(3), variant="gram")


@pytest.mark.parametrize("case", ["views_N_lt_D", "views_N_gt_D"])
def test_parity_with_the_definition_and_the_authors(case):
    """Their permutations are not ours, so values agree within the error of a mean over permutations.

    The error of a mean over 400 is given; over 10 it is sqrt(40) times larger. 4 standard errors of the difference.
    """
    inputs, expected = parity()
    for index, views in enumerate(inputs[case]):
        a, b = centre_unit(views[:, 0]), centre_unit(views[:, 1])
        mean, error = expected[case]["dime_sample_gram_400perm_mean_stderr"][index]
        assert dime(a, b, 400) == pytest.approx(mean, abs=4 * math.sqrt(2) * error)
        assert dime(a, b, 10) == pytest.approx(mean, abs=4 * math.sqrt(1 + 40) * error)
        ours = np.array([dime(a, b, 40, seed, "released") for seed in range(10)])
        spread = ours.std(ddof=1) * math.sqrt(40 / 10)  # of a 10-permutation value
        theirs = expected[case]["dime_reference_10perm_seed0"]["raw"][index]
        assert ours.mean() == pytest.approx(theirs, abs=4 * spread)
        if case == "views_N_gt_D":  # the bound is tight enough to tell the two apart
            assert abs(mean - theirs) > 4 * spread
