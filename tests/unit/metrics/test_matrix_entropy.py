"""Matrix-based entropy against a slow reference, its invariances, hard inputs, and the authors' numbers."""

import math

import numpy as np
import pytest
from _metric_inputs import DEFINED, UNDEFINED, centre_unit, gaussian, parity, rotation
from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.dataset_entropy import dataset_entropy
from layerwise.metrics.matrix_entropy import entropy_ceiling, matrix_entropy
from layerwise.metrics.prompt_entropy import prompt_entropy

ALPHAS = {"alpha=1": 1.0, "alpha=2": 2.0, "alpha=0.5": 0.5}


def slow_entropy(rows, alpha):
    """N x N kernel by loops, its eigenvalues, the sum of Eq. 1 term by term."""
    kernel = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows]
    trace = sum(kernel[i][i] for i in range(len(rows)))
    p = [max(value / trace, 0.0) for value in np.linalg.eigvals(np.array(kernel)).real]
    if alpha == 1:
        return -sum(x * math.log(x) for x in p if x > 0)
    return math.log(sum(x**alpha for x in p if x > 1e-14)) / (1 - alpha)


@pytest.mark.parametrize("shape", [(7, 12), (12, 7), (8, 8)])
@pytest.mark.parametrize("alpha", ALPHAS.values())
def test_matches_slow_reference(shape, alpha):
    rows = gaussian(*shape)
    assert matrix_entropy(rows, alpha) == pytest.approx(slow_entropy(rows, alpha), rel=1e-9)


def test_both_metrics_are_this_function():
    rows = gaussian(5, 4)
    assert prompt_entropy(rows) == dataset_entropy(rows) == matrix_entropy(rows)


def test_known_values():
    assert matrix_entropy(np.eye(5)) == pytest.approx(math.log(5))
    assert matrix_entropy(np.eye(5), 2.0) == pytest.approx(math.log(5))
    assert matrix_entropy(np.ones((5, 3))) == 0.0
    assert matrix_entropy(centre_unit(gaussian(2, 9))) == pytest.approx(0.0, abs=1e-12)  # a pair of centred rows: antipodal
    many = matrix_entropy(centre_unit(gaussian(200, 50)))
    assert 0.95 * math.log(50) < many < math.log(50)


@pytest.mark.parametrize("name", DEFINED)
def test_hard_inputs_are_finite_and_in_bounds(name):
    rows = DEFINED[name]
    for prepared in (rows, centre_unit(rows)):
        value = matrix_entropy(prepared)
        assert isinstance(value, float)
        assert 0.0 <= value <= math.log(min(rows.shape)) + 1e-12
        assert math.isfinite(matrix_entropy(prepared, 2.0, "released"))


@pytest.mark.parametrize("name", UNDEFINED)
@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_undefined_inputs_are_named(name, variant, alpha):
    with pytest.raises(UndefinedMetric) as error:
        matrix_entropy(UNDEFINED[name], alpha, variant)
    assert str(error.value)


def test_invariances():
    rows = gaussian(9, 6)
    value = matrix_entropy(rows)
    assert matrix_entropy(rows[::-1]) == pytest.approx(value, rel=1e-12)
    assert matrix_entropy(rows @ rotation(6)) == pytest.approx(value, rel=1e-12)
    assert matrix_entropy(np.hstack([rows, np.zeros((9, 30))])) == pytest.approx(value, rel=1e-12)  # n > d and n < d paths
    for scale in (1e-200, 1e-20, 1e20, 1e200):
        assert matrix_entropy(rows * scale) == pytest.approx(value, rel=1e-10)
        assert matrix_entropy(rows * scale, 2.0, "released") == pytest.approx(matrix_entropy(rows, 2.0, "released"))
    assert matrix_entropy(rows * np.arange(1, 7)) != pytest.approx(value, rel=1e-3)


def test_single_precision_input_gives_nearly_the_same():
    rows = centre_unit(gaussian(20, 16))
    assert matrix_entropy(rows.astype(np.float32)) == pytest.approx(matrix_entropy(rows), rel=1e-6)


def test_higher_alpha_is_never_higher():
    rows = gaussian(9, 6) * np.arange(1, 7)
    values = [matrix_entropy(rows, alpha) for alpha in (0.25, 0.5, 1.0, 2.0, 10.0)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1] + 0.1


def test_ceiling_counts_the_direction_lost_to_centring():
    assert entropy_ceiling(10, 50, centred=True, variant="paper") == pytest.approx(math.log(9))
    assert entropy_ceiling(10, 50, centred=True, variant="released") == pytest.approx(math.log(10))
    assert entropy_ceiling(10, 50, centred=False, variant="paper") == pytest.approx(math.log(10))
    assert entropy_ceiling(10, 5, centred=True, variant="paper") == pytest.approx(math.log(5))
    assert entropy_ceiling(2, 5, centred=True, variant="paper") == 0.0


def test_bad_arguments_are_refused():
    with pytest.raises(ConfigError, match="paper, released"):
        matrix_entropy(np.eye(3), variant="papr")
    for alpha in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigError, match="alpha"):
            matrix_entropy(np.eye(3), alpha)


@pytest.mark.parametrize("case", ["tokens_T_lt_D", "tokens_T_gt_D", "tokens_short"])
@pytest.mark.parametrize("name", ALPHAS)
def test_parity_with_the_authors_prompt_entropy(case, name):
    inputs, expected = parity()
    prompts, alpha = inputs[case], ALPHAS[name]
    released = [matrix_entropy(centre_unit(prompt), alpha, "released") for prompt in prompts]
    paper = [matrix_entropy(centre_unit(prompt), alpha) for prompt in prompts]
    raw = [matrix_entropy(prompt, alpha) for prompt in prompts]
    np.testing.assert_allclose(released, expected[case]["prompt_entropy_reference"][name]["raw"], rtol=1e-6)
    np.testing.assert_allclose(paper, expected[case]["prompt_entropy_paper_centred_unit"][name], rtol=1e-6)
    np.testing.assert_allclose(raw, expected[case]["prompt_entropy_paper_unprocessed"][name], rtol=1e-6)
    n, d = prompts.shape[1:]
    shares = np.array(released) / entropy_ceiling(n, d, centred=True, variant="released")
    np.testing.assert_allclose(shares, expected[case]["prompt_entropy_reference"][name]["maxEntropy"], rtol=1e-6)


@pytest.mark.parametrize("case", ["views_N_lt_D", "views_N_gt_D"])
def test_parity_with_the_authors_dataset_entropy(case):
    inputs, expected = parity()
    values = [dataset_entropy(centre_unit(views[:, 0]), variant="released") for views in inputs[case]]
    np.testing.assert_allclose(values, expected[case]["dataset_entropy_reference_view0"]["raw"], rtol=1e-6)
