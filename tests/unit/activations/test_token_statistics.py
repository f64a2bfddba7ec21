"""Token statistics against slow references, sample by sample and recipe by recipe."""

import math

import numpy as np
import pytest
import torch
from layerwise.activations.token_statistics import statistics, token_norms
from torch import Tensor

from tests import slow
from tests.builders import masks_of

RECIPES = ["raw", "centre_unit", "centre_unit_skip_first", "unit", "unit_skip_first"]
LENGTHS = (7, 9, 3, 2, 1, 4)


def batch(width: int = 6, padding: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    states = torch.randn(len(LENGTHS), max(LENGTHS), width) + 0.5
    states[:, 0] *= 50  # a first token of huge norm, as language models have it
    states = torch.cat([states, torch.randn(len(LENGTHS), padding, width) * 1e3], dim=1)
    return states, torch.arange(states.shape[1]) < torch.tensor(LENGTHS)[:, None]


def collect(states: Tensor, mask: Tensor) -> dict[str, np.ndarray]:
    return {name: values.numpy() for name, values in statistics(states, masks_of(mask), RECIPES, "centre_unit").items()}


def kept(name: str, values: np.ndarray, row: int, width: int) -> np.ndarray:
    return values[row, : min(LENGTHS[row], width)] if name.endswith("spectrum") else values[row]


@pytest.mark.parametrize("width", [4, 6, 32])  # more tokens than dimensions, about as many, fewer
def test_statistics_equal_a_loop_over_tokens(width: int) -> None:
    states, mask = batch(width)
    found = collect(states, mask)
    assert set(found) == {
        "tokens/norm",
        "tokens/cosine",
        "tokens/centre_unit/entropy_clamped",
        *(f"tokens/{recipe}/{kind}" for recipe in RECIPES for kind in ("spectrum", "turning_angle")),
    }
    for row, length in enumerate(LENGTHS):
        tokens = states[row, :length].double().numpy()
        for recipe in RECIPES:
            spectrum = kept("spectrum", found[f"tokens/{recipe}/spectrum"], row, width)
            np.testing.assert_allclose(spectrum, slow.spectrum(tokens, recipe), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found[f"tokens/{recipe}/turning_angle"][row], slow.angles(tokens, recipe), atol=1e-7)
        clamped = found["tokens/centre_unit/entropy_clamped"][row]
        np.testing.assert_allclose(clamped, slow.clamped_entropy(tokens), rtol=1e-7)
        np.testing.assert_allclose(found["tokens/norm"][row], slow.norms(tokens), rtol=1e-12)
        np.testing.assert_allclose(found["tokens/cosine"][row], slow.cosines(tokens), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("width", [4, 32])
@pytest.mark.parametrize("padding", [1, 40])
def test_padding_changes_nothing(width: int, padding: int) -> None:
    a, b = collect(*batch(width)), collect(*batch(width, padding))
    for name in a:
        for row in range(len(LENGTHS)):
            np.testing.assert_allclose(
                kept(name, a[name], row, width), kept(name, b[name], row, width), rtol=1e-7, atol=1e-9
            )


@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e38])
def test_what_is_padded_cannot_leak(poison: float) -> None:
    states, mask = batch()
    a, b = collect(states, mask), collect(torch.where(mask[..., None], states, poison), mask)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize(("size", "same"), [(1e-6, True), (1e-2, False)])
def test_one_token_repeated_has_no_spread_whatever_the_model_rounds(size: float, same: bool) -> None:
    torch.manual_seed(0)
    states = torch.randn(2, 1, 8).expand(2, 9, 8) * (1 + size * torch.randn(2, 9, 8))
    mask = torch.arange(9) < torch.tensor([9, 6])[:, None]
    found = collect(states, mask)
    for recipe in RECIPES:
        spectrum, angles = found[f"tokens/{recipe}/spectrum"], found[f"tokens/{recipe}/turning_angle"]
        if recipe.startswith("centre"):
            assert np.isnan(spectrum).all() == same  # undefined, as at layer 0, where the tokens are equal to the bit
        else:
            np.testing.assert_allclose(spectrum[:, 0], 1.0, atol=1e-3)
        assert np.isnan(angles[:, 0]).all() == same


def test_short_texts_are_undefined_and_not_garbage() -> None:
    found = collect(*batch())
    two, one = LENGTHS.index(2), LENGTHS.index(1)
    for recipe in RECIPES:
        spectrum, angles = found[f"tokens/{recipe}/spectrum"], found[f"tokens/{recipe}/turning_angle"]
        assert np.isnan(spectrum[one]).all()
        assert np.isnan(angles[[one, two]]).all()  # an angle needs two steps
        assert np.isnan(spectrum[two]).all() == recipe.endswith("skip_first")
        assert np.isfinite(spectrum[: LENGTHS.index(2)]).all()
    assert np.isnan(found["tokens/centre_unit/entropy_clamped"][one])
    assert np.isnan(found["tokens/norm"][one, 1])
    assert np.isfinite(found["tokens/norm"][:, 0]).all()


def test_three_tokens_without_the_first_have_a_spectrum_and_no_angle() -> None:
    found, three = collect(*batch()), LENGTHS.index(3)
    assert np.isfinite(found["tokens/unit_skip_first/spectrum"][three]).all()
    assert np.isnan(found["tokens/unit_skip_first/turning_angle"][three]).all()


def test_a_spectrum_is_a_distribution_largest_first() -> None:
    found = collect(*batch(width=4))
    for recipe in RECIPES:
        for row, length in enumerate(LENGTHS):
            values = found[f"tokens/{recipe}/spectrum"][row]
            if length > 3:
                assert values.sum() == pytest.approx(1)
                assert (values >= 0).all()
                assert (np.diff(values) <= 0).all()


def test_equal_tokens_have_no_spread() -> None:
    states = torch.ones(1, 5, 4)
    found = collect(states, torch.ones(1, 5, dtype=torch.bool))
    assert np.isnan(found["tokens/centre_unit/spectrum"]).all()
    assert np.isnan(found["tokens/centre_unit/entropy_clamped"]).all()
    np.testing.assert_allclose(found["tokens/raw/spectrum"], [[1, 0, 0, 0]], atol=1e-15)
    signed, absolute = found["tokens/raw/turning_angle"][0]
    assert np.isnan(signed)  # no step has a direction
    assert absolute == 0  # the authors' form says 0


def test_the_huge_first_token_makes_the_raw_spectrum_and_nothing_else() -> None:
    found = collect(*batch(width=32))
    assert found["tokens/raw/spectrum"][1, 0] > 0.95
    assert found["tokens/unit_skip_first/spectrum"][1, 0] < 0.6


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_scale_of_the_tokens_does_not_matter(scale: float) -> None:
    states, mask = batch()
    a, b = collect(states, mask), collect(states.double() * scale, mask)
    for name in set(a) - {"tokens/norm"}:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_token_that_is_not_finite_makes_its_sample_undefined_and_no_other(poison: float, recipe: str) -> None:
    states, mask = batch()
    clean = collect(states, mask)
    states[1, 4, 2] = poison
    found = collect(states, mask)
    for name in (f"tokens/{recipe}/spectrum", f"tokens/{recipe}/turning_angle", "tokens/centre_unit/entropy_clamped"):
        assert np.isnan(found[name][1]).all()
        np.testing.assert_array_equal(np.delete(found[name], 1, 0), np.delete(clean[name], 1, 0))


def test_no_recipes_give_norms_and_cosines_only() -> None:
    assert set(statistics(batch()[0], masks_of(batch()[1]), [], "centre_unit")) == {"tokens/norm", "tokens/cosine"}


def test_a_zero_token_has_cosine_0_with_every_other() -> None:
    states = torch.tensor([[[0.0, 0.0], [2.0, 0.0], [0.5, 0.0]]])
    found = collect(states, torch.ones(1, 3, dtype=torch.bool))["tokens/cosine"]
    np.testing.assert_allclose(found, [[1 / 3, 1.0]], rtol=1e-12)


def test_the_rest_of_an_images_tokens_is_all_but_the_first() -> None:
    """``skip_first`` leaves the registers of an image out, the share of the class token is of all tokens."""
    states, mask = torch.randn(2, 6, 4), torch.ones(2, 6, dtype=torch.bool)
    content = mask.clone()
    content[:, :3] = False
    found = token_norms(states, {"all": mask, "content": content, "skip_first": content})
    norms = torch.linalg.vector_norm(states.double(), dim=-1)
    torch.testing.assert_close(found[:, 1], norms[:, 3:].median(1).values)
    torch.testing.assert_close(found[:, 2] ** 2, (norms[:, 1:] ** 2).sum(1))
