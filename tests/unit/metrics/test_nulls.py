"""Gaussian nulls: the known limits, one draw for all readouts, and interpolation over token counts."""

import math

import numpy as np
import pytest
from layerwise.metrics import nulls as nulls_module
from layerwise.metrics.nulls import Nulls
from layerwise.metrics.registry import load_metric
from layerwise.metrics.spec import Case

PLAIN = {
    "dataset_entropy": Case("paper", {"alpha": 1.0}),
    "effective_rank": Case("paper", {}),
    "infonce": Case("paper", {"temperature": 0.1}),
    "lidar": Case("paper", {"delta": 1e-4}),
    "dime": Case("paper", {"permutations": 10}),
}


def test_curvature_nulls_are_the_two_known_angles():
    cases = [Case("paper"), Case("released")]
    nulls = Nulls(load_metric("curvature"), 20, 0)
    (signed, share), (absolute, _) = nulls.tokens("centre_unit", np.array([20, 40]), 512, cases)
    assert signed == pytest.approx(2 * math.pi / 3, abs=0.01)
    assert share == pytest.approx(2 / 3, abs=0.005)
    assert absolute == pytest.approx(math.pi / 3, abs=0.01)


def test_pooled_nulls():
    values = {name: Nulls(load_metric(name), 20, 0).pooled((60, 2, 40), [case])[0] for name, case in PLAIN.items()}
    assert 0.9 < values["dataset_entropy"][1] < 1.0
    assert 30 < values["effective_rank"][0] < 40
    assert values["infonce"][0] > math.log(60)  # unrelated views: no better than chance
    assert values["infonce"][1] < 0
    assert 0.7 < values["lidar"][1] < 1.0
    assert abs(values["dime"][0]) < 2e-3


def test_seeded_and_computed_once():
    module, case = load_metric("dataset_entropy"), PLAIN["dataset_entropy"]
    first = Nulls(module, 5, 3)
    assert first.pooled((20, 1, 8), [case]) is first.pooled((20, 1, 8), [case])
    assert first.pooled((20, 1, 8), [case]) == Nulls(module, 5, 3).pooled((20, 1, 8), [case])
    assert first.pooled((20, 1, 8), [case]) != Nulls(module, 5, 4).pooled((20, 1, 8), [case])
    assert Nulls(module, 0, 3).pooled((20, 1, 8), [case]) == [(None, None)]


@pytest.mark.parametrize("metric", ["prompt_entropy", "effective_rank", "curvature"])
@pytest.mark.parametrize("recipe", ["raw", "centre_unit"])
def test_interpolated_lengths_agree_with_all_of_them(metric, recipe, monkeypatch):
    cases = [Case("paper", {"alpha": 1.0})]
    sizes = np.concatenate([np.arange(3, 80), [5, 5, 40]])
    short = Nulls(load_metric(metric), 12, 0)
    value, share = short.tokens(recipe, sizes, 24, cases)[0]
    assert len(short._tokens) < 40
    monkeypatch.setattr(nulls_module, "_MOST_LENGTHS", 1000)
    exact = Nulls(load_metric(metric), 12, 0)
    full_value, full_share = exact.tokens(recipe, sizes, 24, cases)[0]
    assert len(exact._tokens) == 77
    assert value == pytest.approx(full_value, rel=5e-3)
    assert share == pytest.approx(full_share, rel=5e-3)


def test_samples_are_weighted_by_their_own_length():
    cases, nulls = [Case("paper", {"alpha": 1.0})], Nulls(load_metric("prompt_entropy"), 5, 0)
    short, long, mixed = (
        nulls.tokens("centre_unit", np.array(sizes), 16, cases)[0][0] for sizes in ([4], [12], [4, 12, 12, 1])
    )
    assert mixed == pytest.approx((short + 2 * long) / 3)


def test_variants_of_one_recipe_do_not_leak_into_another():
    """`released` prompt entropy exists for one recipe only, so recipes have different lists of cases."""
    paper, released = Case("paper", {"alpha": 1.0}), Case("released", {"alpha": 1.0})
    nulls, sizes = Nulls(load_metric("prompt_entropy"), 5, 0), np.array([9])
    both = nulls.tokens("centre_unit", sizes, 16, [released, paper])
    alone = nulls.tokens("centre_unit_skip_first", sizes, 16, [paper])
    assert alone[0] == both[1]
    assert both[0][0] > both[1][0]
