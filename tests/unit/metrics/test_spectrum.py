"""The shared algebra: preparation, spectra, entropies."""

import math

import numpy as np
import pytest
from _metric_inputs import gaussian
from layerwise import spectrum
from layerwise.errors import UndefinedMetric


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1.0, 1e20, 1e200])
def test_centre_unit_matches_loops_at_every_scale(scale):
    rows = gaussian(7, 4)
    centred = [[x - sum(column) / 7 for x, column in zip(row, rows.T, strict=True)] for row in rows]
    expected = [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in centred]
    np.testing.assert_allclose(spectrum.centre_unit(rows * scale), expected, rtol=1e-12, atol=1e-14)


def test_each_view_is_centred_on_its_own_mean():
    views = gaussian(6, 3, 4) + np.arange(3)[None, :, None] * 100
    prepared = spectrum.centre_unit(views)
    for view in range(3):
        np.testing.assert_allclose(prepared[:, view], spectrum.centre_unit(views[:, view]), atol=1e-12)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e20, 1e-200])
def test_copies_of_one_vector_become_zero_not_rounding_noise(value):
    """The mean of 1000 times 0.1 is not 0.1; without a tolerance the difference would be scaled to unit vectors."""
    assert not spectrum.centre_unit(np.full((1000, 5), value)).any()


def test_small_real_differences_survive_centring():
    rows = (1.0 + np.float32(1e-6) * gaussian(50, 5)).astype(np.float32)
    np.testing.assert_allclose(np.linalg.norm(spectrum.centre_unit(rows), axis=1), 1.0)


def test_unit_handles_rows_of_very_different_size_and_keeps_zeros():
    rows = np.array([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(spectrum.unit(rows), [[0.6, 0.8], [0.6, 0.8], [0, 0], [0.6, 0.8]])


def test_nan_is_not_hidden():
    assert np.isnan(spectrum.unit(np.array([[np.nan, 1.0]]))).any()
    with pytest.raises(UndefinedMetric, match="1 of 3 rows"):
        spectrum.checked(np.array([[1.0], [np.nan], [2.0]]))


@pytest.mark.parametrize("shape", [(5, 40), (40, 5), (9, 9)])
def test_gram_and_covariance_have_one_spectrum(shape):
    rows = gaussian(*shape)
    values = np.linalg.svd(rows, compute_uv=False)[::-1] ** 2
    np.testing.assert_allclose(spectrum.gram_spectrum(rows), values / values.sum(), rtol=1e-9)


def test_rank_deficient_spectrum_has_exact_zeros():
    assert (spectrum.gram_spectrum(gaussian(30, 3) @ gaussian(3, 40)) > 0).sum() == 3


def test_stacked_matrices_are_normalised_one_by_one():
    matrices = np.stack([np.eye(3), 5 * np.diag([1.0, 2, 2])])
    np.testing.assert_allclose(spectrum.normalised_eigenvalues(matrices), [[1 / 3] * 3, [0.2, 0.4, 0.4]])


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0, 2.0, 3.0, 1000.0])
def test_renyi_entropy_matches_loops(alpha):
    p = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    if alpha == 1:
        expected = -sum(x * math.log(x) for x in p if x > 0)
    elif alpha == 1000:
        expected = 1000 / 999 * math.log(2)  # 0.5^1000 alone matters, and the plain sum underflows for p < 1e-3
    else:
        expected = math.log(sum(x**alpha for x in p if x > 0)) / (1 - alpha)
    assert spectrum.renyi_entropy(p, alpha) == pytest.approx(expected, rel=1e-12)
    assert spectrum.renyi_entropy(np.full(1000, 1e-3), alpha) == pytest.approx(math.log(1000))


def test_renyi_entropy_is_continuous_at_one_and_keeps_nan():
    p = np.array([[0.7, 0.2, 0.1], [np.nan] * 3])
    np.testing.assert_allclose(spectrum.renyi_entropy(p, 1.0), spectrum.renyi_entropy(p, 1 + 1e-6), rtol=1e-5)
    for alpha in (0.5, 1.0, 2.0):
        assert np.isnan(spectrum.renyi_entropy(p, alpha)).tolist() == [False, True]


def test_alpha_must_be_positive():
    with pytest.raises(ValueError, match="alpha"):
        spectrum.renyi_entropy(np.array([1.0]), 0.0)
