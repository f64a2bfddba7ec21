"""The driver: records of every metric from one made-up activation file."""

import json
import math

import numpy as np
import pytest
from _metric_inputs import FakeActivations, centre_unit
from layerwise.errors import ConfigError
from layerwise.metrics.curvature import curvature
from layerwise.metrics.curves import metric_records
from layerwise.metrics.dataset_entropy import dataset_entropy
from layerwise.metrics.dime import dime
from layerwise.metrics.effective_rank import effective_rank
from layerwise.metrics.infonce import infonce
from layerwise.metrics.lidar import lidar
from layerwise.metrics.prompt_entropy import prompt_entropy
from layerwise.metrics.registry import METRICS
from layerwise.metrics.resampling import draw_halves
from scipy import stats

READOUTS = ["mean", "doubled"]
RECIPES = ["raw", "centre_unit", "centre_unit_skip_first"]
QUICK = {"null_draws": 2, "subsamples": 3}
KEYS = ["n_samples", "n_excluded", "null_value", "null_normalized", "split_half", "layers"]


def records_of(metric, activations=None, parameters=QUICK, seed=0, readouts=READOUTS, recipes=RECIPES, progress=None):
    activations = FakeActivations() if activations is None else activations
    return metric_records(metric, activations, readouts, recipes, parameters, seed, progress)


def values(record):
    return [entry["value"] for entry in record["layers"]]


@pytest.mark.parametrize("metric", METRICS)
def test_records_are_complete_json(metric):
    made = records_of(metric)
    assert made == json.loads(json.dumps(made, allow_nan=False))
    own = {key: ["raw"] for key in ("sink_norm_ratio", "sink_variance_share")} | {"anisotropy": ["unit", "unit_skip_first"]}
    levels = [("readout", READOUTS), ("recipe", own.get(metric, RECIPES))]
    wanted = [(k, name) for k, names in levels for name in names if (k == "recipe") in _levels(metric)]
    repeats = 2 if metric == "lidar" else 1  # absolute and relative ridge
    assert [(k, r[k]) for r in made for k in ("readout", "recipe") if k in r] == [w for w in wanted for _ in range(repeats)]
    for record in made:
        assert [key for key in KEYS if key not in record] == []
        assert (record["variant"], record["tap"]) == ("paper", "residual")
        assert record["n_samples"] == 24
        assert record["n_excluded"] == 0
        assert [entry["layer"] for entry in record["layers"]] == [0, 1, 2, 3, 4]
        assert [entry["depth"] for entry in record["layers"]] == [0, 0.25, 0.5, 0.75, 1]
        for entry in record["layers"]:
            assert entry["standard_error"] > 0
            assert (entry["normalized"] is None) == (metric == "intrinsic_dimension")
            assert "undefined" not in entry
        assert isinstance(record["null_value"], float)
        assert -1 <= record["split_half"] <= 1


def _levels(metric):
    """Which of (pooled: False, tokens: True) a metric makes records of."""
    both = {key: [False, True] for key in ("effective_rank", "anisotropy", "top_eigenvalue_share")}
    tokens = {key: [True] for key in ("prompt_entropy", "curvature", "sink_norm_ratio", "sink_variance_share")}
    return (both | tokens).get(metric, [False])


@pytest.mark.parametrize(
    ("metric", "function"),
    [("dataset_entropy", dataset_entropy), ("effective_rank", effective_rank)],
)
def test_pooled_values_are_the_function_of_prepared_vectors(metric, function):
    activations = FakeActivations()
    expected = [function(centre_unit(activations.pooled("mean", layer))) for layer in range(5)]
    record = records_of(metric)[0]
    assert values(record) == pytest.approx(expected, rel=1e-9)
    assert values(records_of(metric)[1]) == pytest.approx(expected, rel=1e-9)  # twice as large, same direction
    top = math.log(8) if metric == "dataset_entropy" else 8
    assert record["layers"][2]["normalized"] == pytest.approx(expected[2] / top)


def test_normalisation_counts_the_direction_lost_to_centring():
    activations = FakeActivations(n=6)
    rank, entropy = records_of("effective_rank", activations)[0], records_of("dataset_entropy", activations)[0]
    released = records_of("dataset_entropy", activations, {**QUICK, "variants": ["released"]})[0]
    for record, top in ((rank, 5), (entropy, math.log(5)), (released, math.log(6))):
        assert record["layers"][1]["normalized"] == pytest.approx(values(record)[1] / top)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_view_values_are_the_function_of_views_prepared_one_by_one(variant):
    activations = FakeActivations()
    views = [centre_unit(activations.views("mean", layer)) for layer in range(5)]
    parameters = {**QUICK, "variants": [variant]}
    pairs = [(v[:, 0], v[:, 1]) for v in views]
    assert values(records_of("dime", parameters=parameters, seed=3)[0]) == pytest.approx(
        [dime(a, b, 10, 3, variant) for a, b in pairs]
    )
    assert values(records_of("infonce", parameters={**parameters, "temperature": 0.3})[0]) == pytest.approx(
        [infonce(a, b, 0.3, variant) for a, b in pairs]
    )
    record = records_of("lidar", parameters={**parameters, "delta": 1e-3, "delta_relative": None})[0]
    assert values(record) == pytest.approx([lidar(v, 1e-3, variant) for v in views])


def test_token_values_are_means_over_samples():
    activations = FakeActivations()
    functions = {"prompt_entropy": prompt_entropy, "effective_rank": effective_rank, "curvature": curvature}
    for metric, function in functions.items():
        for record in records_of(metric, readouts=[]):
            single = [[function(t) for t in activations.prepared(record["recipe"], layer)] for layer in range(5)]
            assert values(record) == pytest.approx([np.mean(s) for s in single], rel=1e-6)
            errors = [entry["standard_error"] for entry in record["layers"]]
            assert errors == pytest.approx([np.std(s, ddof=1) / math.sqrt(24) for s in single], rel=1e-5)


@pytest.mark.parametrize(
    ("recipe", "lost", "dropped"), [("raw", 0, 0), ("centre_unit", 1, 0), ("centre_unit_skip_first", 1, 1)]
)
def test_prompt_entropy_is_normalised_at_each_samples_own_length(recipe, lost, dropped):
    activations = FakeActivations()
    tops = [math.log(min(t - dropped - lost, 8)) for t in activations.n_tokens]
    single = [prompt_entropy(tokens) for tokens in activations.prepared(recipe, 3)]
    (record,) = records_of("prompt_entropy", recipes=[recipe])
    expected = np.mean([s / top for s, top in zip(single, tops, strict=True)])
    assert record["layers"][3]["normalized"] == pytest.approx(expected)
    assert 0 < record["null_normalized"] < 1


def test_released_token_variants_exist_for_the_authors_recipe_alone():
    parameters = {**QUICK, "variants": ["paper", "released"], "alpha": [1.0, 2.0]}
    made = records_of("prompt_entropy", parameters=parameters)
    released = [r for r in made if r["variant"] == "released"]
    assert [(r["recipe"], r["parameters"]) for r in released] == [("centre_unit", {"alpha": 1.0})]
    activations = FakeActivations()
    expected = [np.mean(activations.entropy_clamped(layer)) for layer in range(5)]
    assert values(released[0]) == pytest.approx(expected)
    tops = np.log(np.minimum(activations.n_tokens, 8))
    assert released[0]["layers"][1]["normalized"] == pytest.approx(np.mean(activations.entropy_clamped(1) / tops))
    with pytest.raises(ConfigError, match=r"released.*has no value"):
        records_of("prompt_entropy", parameters=parameters, recipes=["raw"])
    absolute = records_of("curvature", parameters={**QUICK, "variants": ["released"]})
    assert [r["recipe"] for r in absolute] == ["centre_unit"]
    assert absolute[0]["null_value"] == pytest.approx(math.pi / 3, abs=0.1)


def test_the_order_of_layers_does_not_matter():
    forward, backward = FakeActivations(), FakeActivations()
    backward.view_arrays = backward.view_arrays[::-1]
    for metric in ("dime", "lidar", "dataset_entropy"):
        first, second = records_of(metric, forward)[0], records_of(metric, backward)[0]
        assert values(first) == values(second)[::-1]
        errors = [[entry["standard_error"] for entry in r["layers"]] for r in (first, second)]
        assert errors[0] == errors[1][::-1]
        assert first["split_half"] == pytest.approx(second["split_half"])


@pytest.mark.parametrize("metric", METRICS)
def test_equal_seeds_give_equal_records(metric):
    assert records_of(metric, seed=5) == records_of(metric, seed=5)
    assert records_of(metric, seed=5) != records_of(metric, seed=6)


def test_standard_error_of_gram_metrics_is_the_spread_over_halves():
    activations = FakeActivations(n=40)
    parameters = {**QUICK, "subsamples": 4}
    halves = draw_halves(40, 4, seed=2)
    raw = activations.pooled("mean", 1)
    expected = np.std([dataset_entropy(centre_unit(raw[halves.rows(h)])) for h in range(4)], ddof=1)
    record = records_of("dataset_entropy", activations, parameters, seed=2)[0]
    assert record["layers"][1]["standard_error"] == pytest.approx(expected)
    views = centre_unit(activations.views("mean", 1))  # LiDAR keeps the corpus mean
    expected = np.std([lidar(views[halves.rows(h)]) for h in range(4)], ddof=1)
    record = records_of("lidar", activations, parameters, seed=2)[0]
    assert record["layers"][1]["standard_error"] == pytest.approx(expected, rel=1e-7)
    none = records_of("dataset_entropy", activations, {**parameters, "subsamples": 0})[0]
    assert none["layers"][1]["standard_error"] is None
    assert none["split_half"] is not None


def test_split_half_compares_curves_of_disjoint_halves():
    activations = FakeActivations(n=40)
    halves = draw_halves(40, 10, seed=0)
    curves = [
        [dataset_entropy(centre_unit(activations.pooled("mean", layer)[halves.rows(h)])) for layer in range(5)]
        for h in (0, 10)
    ]
    record = records_of("dataset_entropy", activations, {"null_draws": 0})[0]
    assert record["split_half"] == pytest.approx(stats.spearmanr(*curves).statistic)
    assert record["null_value"] is None


def test_constant_curves_have_no_split_half():
    activations = FakeActivations()
    activations.view_arrays = [activations.view_arrays[0]] * 5
    assert records_of("dataset_entropy", activations)[0]["split_half"] is None


def test_broken_pairs_null_of_infonce_and_dime():
    for metric in ("infonce", "dime"):
        record = records_of(metric)[0]
        single = [entry["null_broken_pairs"] for entry in record["layers"]]
        assert record["null_broken_pairs"] == pytest.approx(np.mean(single))
    assert "null_broken_pairs" not in records_of("lidar")[0]


def test_lidar_records_say_whether_the_ridge_decides():
    activations = FakeActivations()
    record, relative = records_of("lidar", activations, readouts=["mean"])
    assert relative["parameters"] == {"delta_relative": 0.01}
    curves = [[lidar(centre_unit(v), delta) for v in activations.view_arrays] for delta in (1e-6, 1e-4, 1e-2)]
    expected = {"0.01": stats.spearmanr(*curves[:2]).statistic, "100": stats.spearmanr(*curves[1:]).statistic}
    assert record["delta_spearman"] == pytest.approx(expected)
    spread = np.ptp(np.log(curves[1]))
    assert record["saturated"] is bool(spread < 0.15)
    activations.view_arrays = [activations.view_arrays[0]] * 5
    assert records_of("lidar", activations)[0]["saturated"] is True


def test_samples_without_a_value_are_left_out_and_counted():
    activations = FakeActivations(n=6, lengths=[1, 2, 3, 6, 7, 8])
    excluded = {"raw": 1, "centre_unit": 2, "centre_unit_skip_first": 3}  # one direction left, or no tokens to compare
    for recipe, count in excluded.items():
        (record,) = records_of("prompt_entropy", activations, recipes=[recipe])
        assert record["n_excluded"] == count
        kept = list(activations.prepared(recipe, 0))[count:]
        assert values(record)[0] == pytest.approx(np.mean([prompt_entropy(tokens) for tokens in kept]))
    (record,) = records_of("curvature", activations, recipes=["raw"])
    assert record["n_excluded"] == 2


def test_nothing_to_average_is_undefined_with_a_reason():
    activations = FakeActivations(n=3, lengths=[1, 1, 2])
    for metric in ("prompt_entropy", "curvature", "effective_rank"):
        (record,) = records_of(metric, activations, recipes=["centre_unit"], readouts=[])
        assert values(record) == [None] * 5
        assert all("none of 3 samples" in entry["undefined"] for entry in record["layers"])
        assert (record["null_value"], record["split_half"], record["n_excluded"]) == (None, None, 3)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 9, 10, 11])
def test_every_number_of_samples_gives_valid_records(metric, n):
    made = records_of(metric, FakeActivations(n=n))
    json.dumps(made, allow_nan=False)
    for record in made:
        for entry in record["layers"]:
            assert (entry["value"] is None) == bool(entry.get("undefined"))
    if n == 1 and "readout" in made[0]:
        assert "1 samples" in made[0]["layers"][0]["undefined"]
    if n >= (10 if metric == "intrinsic_dimension" else 3):
        assert all(isinstance(value, float) for record in made for value in values(record))


def test_too_few_views():
    (record,) = records_of("infonce", FakeActivations(views=1), readouts=["mean"])
    assert "1 views of each sample, infonce needs at least 2" in record["layers"][0]["undefined"]


@pytest.mark.parametrize("metric", ["dataset_entropy", "effective_rank", "infonce", "lidar", "dime"])
def test_a_bad_layer_does_not_hide_the_others(metric):
    activations = FakeActivations()
    for damage, reason in ((np.nan, "1 of 24 rows hold NaN"), (0.1, "")):
        layer = activations.view_arrays[2] = activations.view_arrays[2].copy()
        if reason:
            layer[5] = damage
        else:
            layer[:] = damage  # a dead layer: every vector the same
        for record in records_of(metric, activations, recipes=[]):
            assert [value is None for value in values(record)] == [False, False, True, False, False]
            assert reason in record["layers"][2]["undefined"]


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e200])
def test_the_scale_of_activations_does_not_matter(scale):
    for metric in ("dataset_entropy", "lidar", "infonce", "dime"):
        activations = FakeActivations()
        plain = records_of(metric, activations)[0]
        activations.view_arrays = [layer * scale for layer in activations.view_arrays]
        assert values(records_of(metric, activations)[0]) == pytest.approx(values(plain), rel=1e-9)


def test_hard_widths_and_outliers():
    for metric in METRICS:
        json.dumps(records_of(metric, FakeActivations(width=1)), allow_nan=False)
        activations = FakeActivations()
        activations.view_arrays = [layer * np.r_[1e4, np.ones(7)] for layer in activations.view_arrays]
        assert None not in values(records_of(metric, activations)[0])


def test_progress_counts_every_layer_of_every_source():
    calls = []
    records_of("effective_rank", progress=lambda done, total: calls.append((done, total)))
    assert calls == [(i, 25) for i in range(1, 26)]


def test_impossible_requests_are_refused():
    with pytest.raises(ConfigError, match="allowed are"):
        records_of("dime", parameters={"permutatoins": 3})
    with pytest.raises(ConfigError, match="did you mean lidar"):
        records_of("lidarr")
    with pytest.raises(ConfigError, match="recipe 'norm' is unknown"):
        records_of("curvature", recipes=["norm"])
    with pytest.raises(ConfigError, match="no value"):
        records_of("curvature", recipes=[])
    with pytest.raises(ConfigError, match="seed"):
        records_of("dime", seed=-1)
