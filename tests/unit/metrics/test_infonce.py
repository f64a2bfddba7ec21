"""InfoNCE against loops, its floor and ceiling, both forms of the authors' code."""

import math

import numpy as np
import pytest
from _metric_inputs import UNDEFINED, centre_unit, gaussian, noisy_views, parity, rotation
from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.infonce import SPEC, evaluate, infonce, summarise
from layerwise.metrics.spec import Case


def slow_infonce(a, b, temperature):
    losses = []
    for i, x in enumerate(a):
        logits = [sum(p * q for p, q in zip(x, y, strict=True)) / temperature for y in b]
        losses.append(math.log(sum(math.exp(logit) for logit in logits)) - logits[i])
    return sum(losses) / len(losses)


def slow_simclr(a, b, temperature):
    everyone, losses = [*a, *b], []
    for i, x in enumerate(everyone):
        logits = {j: float(np.dot(x, y)) / temperature for j, y in enumerate(everyone) if j != i}
        losses.append(math.log(sum(map(math.exp, logits.values()))) - logits[(i + len(a)) % len(everyone)])
    return sum(losses) / len(losses)


def pair(n=12, d=7, noise=0.5, seed=0):
    views = noisy_views(n, 2, d, noise, seed)
    return centre_unit(views[:, 0]), centre_unit(views[:, 1])


@pytest.mark.parametrize("shape", [(12, 7), (7, 12), (2, 5)])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_matches_slow_reference(shape, temperature):
    a, b = pair(*shape)
    assert infonce(a, b, temperature) == pytest.approx(slow_infonce(a, b, temperature), rel=1e-10, abs=1e-14)
    released = infonce(a, b, temperature, "released")
    assert released == pytest.approx(slow_simclr(a, b, temperature), rel=1e-10, abs=1e-14)


def test_known_values():
    eye = np.eye(6)
    assert infonce(eye, eye) == pytest.approx(math.log(1 + 5 * math.exp(-10)))  # the floor that the temperature sets
    same = np.tile([1.0, 0], (6, 1))
    assert infonce(same, same) == pytest.approx(math.log(6))
    assert infonce(same, same, variant="released") == pytest.approx(math.log(11))
    a, b = centre_unit(gaussian(300, 400, seed=1)), centre_unit(gaussian(300, 400, seed=2))
    assert infonce(a, b, temperature=10.0) == pytest.approx(math.log(300), abs=1e-3)


def test_wrong_pairs_cost_more_and_the_broken_null_is_their_mean():
    a, b = pair(noise=0.2)
    for variant, slow in (("paper", slow_infonce), ("released", slow_simclr)):
        value = evaluate(summarise(np.stack([a, b], axis=1)), Case(variant, {"temperature": 0.1}), seed=0)
        shifted = [slow(a, np.roll(b, shift, axis=0), 0.1) for shift in range(1, len(a))]  # each wrong partner once
        assert value.null_broken_pairs == pytest.approx(np.mean(shifted), rel=1e-9)
        assert value.value < value.null_broken_pairs - 1


def test_evaluate_normalises_by_chance_and_gives_the_error_of_a_mean():
    a, b = pair()
    value = evaluate(summarise(np.stack([a, b], axis=1)), Case("paper", {"temperature": 0.1}), seed=0)
    losses = [slow_infonce(np.roll(a, -i, 0), np.roll(b, -i, 0), 0.1) for i in range(len(a))]
    assert value.normalized == pytest.approx(1 - losses[0] / math.log(12))
    released = evaluate(summarise(np.stack([a, b], axis=1)), Case("released", {"temperature": 0.1}), seed=0)
    assert released.normalized == pytest.approx(1 - slow_simclr(a, b, 0.1) / math.log(23))
    logits = a @ b.T / 0.1
    single = np.log(np.exp(logits).sum(1)) - np.diag(logits)
    assert value.standard_error == pytest.approx(np.std(single, ddof=1) / math.sqrt(12))


def test_invariances():
    a, b = pair()
    order, turn = np.random.default_rng(0).permutation(len(a)), rotation(7)
    for variant in SPEC.variants:
        value = infonce(a, b, 0.1, variant)
        assert infonce(a[order], b[order], 0.1, variant) == pytest.approx(value, rel=1e-10)
        assert infonce(a @ turn, b @ turn, 0.1, variant) == pytest.approx(value, rel=1e-10)
        assert infonce(a.astype("f4"), b.astype("f4"), 0.1, variant) == pytest.approx(value, rel=1e-4)
        assert infonce(a, b[order], 0.1, variant) > value + 0.1
    assert infonce(a, b, 0.1, "released") == pytest.approx(infonce(b, a, 0.1, "released"), rel=1e-12)


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_inputs_are_named(name):
    rows = UNDEFINED[name]
    for variant in SPEC.variants:
        with pytest.raises(UndefinedMetric):
            infonce(rows, rows, variant=variant)


def test_mismatched_or_unscaled_views():
    with pytest.raises(UndefinedMetric, match="shapes"):
        infonce(gaussian(5, 3), gaussian(6, 3))
    with pytest.raises(UndefinedMetric, match="unit vectors"):
        infonce(gaussian(5, 3) * 1e200, gaussian(5, 3) * 1e200)
    assert infonce(gaussian(5, 3) * 1e-200, gaussian(5, 3)) == pytest.approx(math.log(5))
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(ConfigError, match="temperature"):
            infonce(np.eye(3), np.eye(3), temperature)
    with pytest.raises(ConfigError, match="paper, released"):
        infonce(np.eye(3), np.eye(3), variant="simclr")


@pytest.mark.parametrize("case", ["views_N_lt_D", "views_N_gt_D"])
def test_parity_with_the_authors(case):
    """Their 2026 code is the definition (`paper`); the form before 2025, over 2N, is `released`."""
    inputs, expected = parity()
    pairs = [(centre_unit(v[:, 0]), centre_unit(v[:, 1])) for v in inputs[case]]
    np.testing.assert_allclose([infonce(a, b) for a, b in pairs], expected[case]["infonce_fork2026"]["raw"], rtol=1e-6)
    released = [infonce(a, b, variant="released") for a, b in pairs]
    np.testing.assert_allclose(released, expected[case]["infonce_2024"]["raw"], rtol=1e-6)
    states = [summarise(np.stack(views, axis=1)) for views in pairs]
    shares = [evaluate(state, Case("paper", {"temperature": 0.1}), 0).normalized for state in states]
    np.testing.assert_allclose(shares, expected[case]["infonce_fork2026"]["mi-lower-bound"], rtol=1e-6)
