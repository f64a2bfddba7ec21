"""Curvature against an angle-by-angle loop, both conventions, zero-length steps."""

import math

import numpy as np
import pytest
from _metric_inputs import DEFINED, UNDEFINED, centre_unit, gaussian, parity, rotation
from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.curvature import curvature


def slow_curvature(tokens, absolute):
    angles = []
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        first = [y - x for x, y in zip(a, b, strict=True)]
        second = [y - x for x, y in zip(b, c, strict=True)]
        dot = sum(x * y for x, y in zip(first, second, strict=True))
        cosine = dot / math.sqrt(sum(x * x for x in first)) / math.sqrt(sum(x * x for x in second))
        angles.append(math.acos(abs(cosine) if absolute else cosine))
    return sum(angles) / len(angles)


@pytest.mark.parametrize("shape", [(3, 5), (20, 4), (6, 30)])
def test_matches_slow_reference(shape):
    tokens = gaussian(*shape)
    assert curvature(tokens) == pytest.approx(slow_curvature(tokens, absolute=False), rel=1e-12)
    assert curvature(tokens, "released") == pytest.approx(slow_curvature(tokens, absolute=True), rel=1e-12)


def test_unrelated_tokens_turn_by_120_and_60_degrees():
    tokens = gaussian(400, 1024)
    assert math.degrees(curvature(tokens)) == pytest.approx(120, abs=0.3)
    assert math.degrees(curvature(tokens, "released")) == pytest.approx(60, abs=0.3)


def test_known_shapes():
    line = np.outer(np.arange(1.0, 8), gaussian(5))
    assert curvature(line) == pytest.approx(0.0, abs=1e-12)
    assert curvature(line, "released") == pytest.approx(0.0, abs=1e-12)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0.0]])
    assert curvature(square) == pytest.approx(math.pi / 2)
    there_and_back = np.array([[0.0], [1], [0], [1]])
    assert curvature(there_and_back) == pytest.approx(math.pi)
    assert curvature(there_and_back, "released") == pytest.approx(0.0, abs=1e-12)
    walk = np.cumsum(gaussian(400, 1024), axis=0)
    assert math.degrees(curvature(walk)) == pytest.approx(90, abs=0.3)


def test_a_repeated_token_is_left_out_or_counted_as_zero():
    corner = np.array([[0.0, 0], [1, 0], [1, 1]])
    repeated = np.vstack([corner, corner[-1:]])
    assert curvature(repeated) == pytest.approx(math.pi / 2)
    assert curvature(repeated, "released") == pytest.approx(math.pi / 4)


def test_no_angle_at_all():
    pauses = np.array([[0.0, 0], [1, 0], [1, 0], [2, 0], [2, 0]])  # every triple has a zero-length step
    with pytest.raises(UndefinedMetric, match="angle"):
        curvature(pauses)
    assert curvature(pauses, "released") == 0.0
    for variant in ("paper", "released"):
        with pytest.raises(UndefinedMetric, match="angle"):
            curvature(np.ones((5, 3)), variant)


def test_invariances():
    tokens = gaussian(12, 6)
    for variant in ("paper", "released"):
        value = curvature(tokens, variant)
        assert curvature(tokens[::-1], variant) == pytest.approx(value, rel=1e-12)
        assert curvature(3.0 + tokens @ rotation(6), variant) == pytest.approx(value, rel=1e-10)
        assert curvature(tokens * 1e-200, variant) == pytest.approx(value, rel=1e-12)
        assert curvature(tokens * 1e200, variant) == pytest.approx(value, rel=1e-12)
        assert curvature(tokens.astype(np.float32), variant) == pytest.approx(value, rel=1e-5)
        assert curvature(tokens[np.argsort(tokens[:, 0])], variant) != pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("name", sorted(set(DEFINED) - {"n=2", "d=1", "duplicated rows"}))
def test_hard_inputs_are_in_bounds(name):
    assert 0 < curvature(DEFINED[name]) < math.pi
    assert 0 < curvature(DEFINED[name], "released") < math.pi / 2


@pytest.mark.parametrize("name", [*UNDEFINED, "n=2"])
def test_undefined_inputs_are_named(name):
    with pytest.raises(UndefinedMetric):
        curvature({**UNDEFINED, **DEFINED}[name])


def test_unknown_variant():
    with pytest.raises(ConfigError, match="released"):
        curvature(gaussian(5, 3), "absolute")


@pytest.mark.parametrize("case", ["tokens_T_lt_D", "tokens_T_gt_D", "tokens_short"])
def test_parity_with_the_authors(case):
    """`released` is their 2026 form. `curvature_2024` is the mean angle between neighbouring TOKENS, not between steps:
    another quantity, which no figure of the paper shows and this project leaves out. The test pins that it is that.
    """
    inputs, expected = parity()
    prompts = [centre_unit(prompt) for prompt in inputs[case]]
    values = [curvature(prompt, "released") for prompt in prompts]
    np.testing.assert_allclose(values, expected[case]["curvature_fork2026"]["raw"], rtol=1e-6)
    between_tokens = [np.arccos((p[1:] * p[:-1]).sum(axis=1)).mean() for p in prompts]
    np.testing.assert_allclose(between_tokens, expected[case]["curvature_2024"]["raw"], rtol=1e-6)
