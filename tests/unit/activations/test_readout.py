"""Readouts against a loop over tokens: every norm, choice of tokens and pool."""

import itertools
import math

import numpy as np
import pytest
import torch
from layerwise.activations.readout import normed, pool, token_weights
from torch import Tensor, nn

from tests import slow
from tests.builders import masks_of

LENGTHS = (7, 5, 2, 1, 3)
NORMS, TOKENS, POOLS = ("none", "final", "rms"), ("all", "content", "skip_first"), ("mean", "weighted_mean", "last", "first")


def batch(seed: int = 0, padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """States, mask and content: special tokens at both ends, and a sample of special tokens only."""
    torch.manual_seed(seed)
    states = torch.randn(len(LENGTHS), max(LENGTHS), 6)
    states = torch.cat([states, torch.randn(len(LENGTHS), padding, 6) * 1e3], dim=1)
    mask = torch.arange(states.shape[1]) < torch.tensor(LENGTHS)[:, None]
    content = mask.clone()
    content[:, 0] = False
    for row, length in enumerate(LENGTHS):
        content[row, length - 1] = False
    return states, mask, content


def final_norm() -> nn.Module:
    torch.manual_seed(1)
    norm = nn.LayerNorm(6)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


def read(
    states: Tensor, mask: Tensor, content: Tensor, norm: str, tokens: str, pooling: str, module: nn.Module | None
) -> Tensor:
    with torch.inference_mode():
        return pool(normed(states, norm, module), token_weights(tokens, pooling, masks_of(mask, content)))


@pytest.mark.parametrize(("norm", "tokens", "pooling"), list(itertools.product(NORMS, TOKENS, POOLS)))
@pytest.mark.parametrize("module", [final_norm(), None], ids=["norm", "no norm"])
def test_a_readout_equals_a_loop_over_tokens(norm: str, tokens: str, pooling: str, module: nn.Module | None) -> None:
    states, mask, content = batch()
    found = read(states, mask, content, norm, tokens, pooling, module)
    assert found.dtype == torch.float32

    def apply(rows: np.ndarray) -> np.ndarray:
        return module.double()(torch.from_numpy(rows)).detach().numpy()

    for row, length in enumerate(LENGTHS):
        expected = slow.vector(states[row, :length], content[row, :length], norm, tokens, pooling, apply if module else None)
        np.testing.assert_allclose(found[row], expected, rtol=1e-5, atol=1e-6)
    if module:
        module.float()


def test_the_readouts_differ_from_each_other() -> None:
    """Else the comparison above could not tell them apart."""
    states, mask, content = batch()
    found = [read(states, mask, content, *what, final_norm())[0] for what in itertools.product(NORMS, TOKENS, POOLS)]
    same = [(a, b) for a, b in itertools.combinations(range(len(found)), 2) if torch.allclose(found[a], found[b], atol=1e-4)]
    names = list(itertools.product(NORMS, TOKENS, POOLS))
    allowed = ({"last", "first"}, {"all", "skip_first"}, {"content", "skip_first"})
    for a, b in same:  # only the last token of two choices, and the first one after the first
        assert names[a][0] == names[b][0]
        assert {names[a][2], names[b][2]} <= allowed[0]
        assert {names[a][1], names[b][1]} in allowed[1:]


def test_a_single_token_serves_where_nothing_else_is_left() -> None:
    states, mask, content = batch()
    for pooling in POOLS:
        for tokens in ("skip_first", "content"):
            torch.testing.assert_close(read(states, mask, content, "none", tokens, pooling, None)[3], states[3, 0])
    two = read(states, mask, content, "none", "content", "mean", None)[2]  # two special tokens: both of them
    torch.testing.assert_close(two, states[2, :2].mean(0))


@pytest.mark.parametrize("padding", [1, 30])
def test_padding_changes_nothing(padding: int) -> None:
    for what in itertools.product(NORMS, TOKENS, POOLS):
        a, b = (read(*batch(padding=p), *what, final_norm()) for p in (0, padding))
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_what_is_padded_cannot_leak(poison: float) -> None:
    states, mask, content = batch()
    poisoned = torch.where(mask[..., None], states, poison)
    for what in itertools.product(NORMS, TOKENS, POOLS):
        found = read(poisoned, mask, content, *what, final_norm())
        torch.testing.assert_close(found, read(states, mask, content, *what, final_norm()), rtol=0, atol=0)


def test_a_real_token_that_is_not_finite_shows() -> None:
    states, mask, content = batch()
    states[0, 3, 2] = math.nan
    assert read(states, mask, content, "none", "all", "mean", None)[0].isnan().any()
    assert read(states, mask, content, "none", "all", "mean", None)[1:].isfinite().all()


def test_weights_sum_to_one() -> None:
    _, mask, content = batch()
    for tokens, pooling in itertools.product(TOKENS, POOLS):
        weights = token_weights(tokens, pooling, masks_of(mask, content))
        torch.testing.assert_close(weights.sum(1), torch.ones(len(LENGTHS), dtype=torch.float64))
        assert not weights[~mask].any()


def test_zero_tokens_have_a_zero_rms() -> None:
    assert not normed(torch.zeros(1, 2, 4), "rms", None).any()


def test_the_final_norm_runs_in_the_models_dtype() -> None:
    states, norm = torch.randn(2, 3, 6).bfloat16(), final_norm().bfloat16()
    with torch.inference_mode():
        torch.testing.assert_close(normed(states, "final", norm), norm(states).float(), rtol=0, atol=0)
    assert normed(states, "rms", norm).dtype == torch.float32
