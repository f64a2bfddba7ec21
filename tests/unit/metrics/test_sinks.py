"""The account of the compression valley: first token, top eigenvalue, mean cosine and intrinsic dimension."""

import math

import numpy as np
import pytest
from _metric_inputs import DEFINED, UNDEFINED, FakeActivations, gaussian, rotation
from layerwise.errors import UndefinedMetric
from layerwise.metrics.anisotropy import anisotropy
from layerwise.metrics.curves import metric_records
from layerwise.metrics.intrinsic_dimension import intrinsic_dimension
from layerwise.metrics.registry import load_metric
from layerwise.metrics.sink_norm_ratio import sink_norm_ratio
from layerwise.metrics.sink_variance_share import sink_variance_share
from layerwise.metrics.top_eigenvalue_share import top_eigenvalue_share

from tests import slow

RECIPES = ["raw", "centre_unit", "centre_unit_skip_first"]
QUICK = {"null_draws": 3, "subsamples": 3}


def slow_ratio(tokens):
    norms = [math.sqrt(sum(x * x for x in token)) for token in tokens]
    rest = sorted(norms[1:])
    return norms[0] / rest[(len(rest) - 1) // 2]


def slow_share(tokens):
    squares = [sum(x * x for x in token) for token in tokens]
    return squares[0] / sum(squares)


def slow_top(rows):
    sigma = np.linalg.svd(rows, compute_uv=False)
    return sigma[0] ** 2 / sum(s**2 for s in sigma)


def slow_dimension(rows):
    """The paper's recipe, one row at a time, with the fit left to numpy."""
    ratios = []
    for i, row in enumerate(rows):
        near = sorted(math.dist(row, other) for j, other in enumerate(rows) if j != i)
        ratios.append(near[1] / near[0])
    kept = sorted(ratios)[: int(0.9 * len(rows))]
    x = np.array([[math.log(mu)] for mu in kept])
    y = np.array([-math.log(1 - i / len(rows)) for i in range(1, len(kept) + 1)])
    return np.linalg.lstsq(x, y, rcond=None)[0][0]


REFERENCES = {
    sink_norm_ratio: slow_ratio,
    sink_variance_share: slow_share,
    top_eigenvalue_share: slow_top,
    anisotropy: slow.mean_cosine,
    intrinsic_dimension: slow_dimension,
}
EVERY = pytest.mark.parametrize("metric", REFERENCES, ids=lambda metric: metric.__name__)


@EVERY
@pytest.mark.parametrize("shape", [(12, 20), (30, 5), (40, 3)])
def test_matches_slow_reference(metric, shape):
    rows = gaussian(*shape) + 0.5
    assert metric(rows) == pytest.approx(REFERENCES[metric](rows), rel=1e-9)
    assert metric(rows.astype(np.float32)) == pytest.approx(metric(rows), rel=1e-4)


@EVERY
def test_invariances(metric):
    rows = gaussian(20, 6) + 0.3
    turned = np.vstack([rows[:1], rows[:0:-1]])  # the first token stays the first
    value = metric(rows)
    assert metric(turned @ rotation(6)) == pytest.approx(value, rel=1e-9)
    for scale in (1e-3, 1e200, 1e-200):
        assert metric(rows * scale) == pytest.approx(value, rel=1e-9)
    assert metric(np.hstack([rows, np.zeros((20, 4))])) == pytest.approx(value, rel=1e-9)


@EVERY
@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_inputs_are_named(metric, name):
    with pytest.raises(UndefinedMetric):
        metric(UNDEFINED[name])


@EVERY
@pytest.mark.parametrize("name", DEFINED)
def test_hard_inputs_are_in_bounds(metric, name):
    low, high = load_metric(metric.__name__).SPEC.bounds
    rows = DEFINED[name]
    if metric is intrinsic_dimension and (len(rows) < 10 or name == "duplicated rows"):
        with pytest.raises(UndefinedMetric, match=r"at least 10 needed|10 of 10 vectors occur more than once"):
            metric(rows)
    else:
        assert low <= metric(rows) <= (math.inf if high is None else high + 1e-12)


def test_a_first_token_like_a_sink():
    tokens = gaussian(30, 8)
    tokens[0] *= 1000
    assert sink_norm_ratio(tokens) > 500
    assert sink_variance_share(tokens) > 0.999
    assert top_eigenvalue_share(tokens) >= sink_variance_share(tokens)
    assert abs(anisotropy(tokens)) < 0.1  # the length of a token does not turn it


def test_known_values():
    assert sink_variance_share(np.ones((5, 3))) == pytest.approx(0.2)
    assert sink_norm_ratio(np.ones((5, 3))) == pytest.approx(1.0)
    assert anisotropy(np.ones((5, 3))) == pytest.approx(1.0)
    assert anisotropy(np.array([[1.0, 0], [-1, 0]])) == pytest.approx(-1.0)
    assert anisotropy(np.eye(4)) == pytest.approx(0.0)
    assert anisotropy(np.array([[0.0, 0], [1, 0], [2, 0]])) == pytest.approx(1 / 3)  # a zero row has cosine 0
    assert top_eigenvalue_share(np.eye(4)) == pytest.approx(0.25)
    with pytest.raises(UndefinedMetric, match="median norm of the tokens after the first is 0"):
        sink_norm_ratio(np.vstack([np.ones((1, 3)), np.zeros((4, 3))]))


@pytest.mark.parametrize(
    ("shape", "seed", "expected"),
    [((200, 3, 10), 1, 2.9140643383411557), ((500, 8, 8), 2, 7.689955104953992), ((60, 2, 5), 3, 2.0823290409214867)],
)
def test_intrinsic_dimension_equals_scikit_dimension(shape, seed, expected):
    """Values of skdim.id.TwoNN().fit(X).dimension_, version 0.5.0."""
    n, latent, width = shape
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, latent)) @ rng.standard_normal((latent, width))
    assert intrinsic_dimension(rows) == pytest.approx(expected, rel=1e-9)


def test_intrinsic_dimension_sees_the_sheet_and_not_its_mean():
    """One direction of huge mean, as of a sink, must not eat the digits of the distances."""
    sheet = gaussian(300, 2) @ gaussian(2, 40, seed=1)
    assert intrinsic_dimension(sheet + 1e5) == pytest.approx(intrinsic_dimension(sheet), rel=1e-4)
    assert 1.6 < intrinsic_dimension(sheet) < 2.4
    assert intrinsic_dimension(sheet + 3.0) == pytest.approx(intrinsic_dimension(sheet), rel=1e-9)


def test_a_single_duplicate_leaves_no_value():
    rows = gaussian(30, 4)
    rows[7] = rows[3]
    with pytest.raises(
        UndefinedMetric, match="2 of 30 vectors occur more than once: the nearest neighbour is at distance 0"
    ):
        intrinsic_dimension(rows)


def test_a_lattice_has_no_slope():
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 2), axis=-1).reshape(-1, 2)
    with pytest.raises(UndefinedMetric, match="two nearest neighbours at one distance"):
        intrinsic_dimension(grid)


def records(metric, activations, **changes):
    given = {"readouts": ["mean"], "recipes": RECIPES} | changes
    return metric_records(metric, activations, given["readouts"], given["recipes"], QUICK, 0)


@pytest.mark.parametrize(
    ("name", "function"), [("sink_norm_ratio", sink_norm_ratio), ("sink_variance_share", sink_variance_share)]
)
def test_first_token_records_are_means_over_samples_of_raw_tokens(name, function):
    activations = FakeActivations(lengths=[1, *range(4, 27)])
    (record,) = records(name, activations)
    assert (record["recipe"], record["n_excluded"]) == ("raw", 1)
    for entry, tokens in zip(record["layers"], activations.tokens, strict=True):
        single = [function(rows) for rows in tokens if len(rows) > 1]
        assert entry["value"] == entry["normalized"] == pytest.approx(np.mean(single), rel=1e-9)
        assert entry["standard_error"] == pytest.approx(np.std(single, ddof=1) / math.sqrt(23), rel=1e-9)
    assert records(name, activations, recipes=["centre_unit"])[0]["layers"] == record["layers"]  # of its own recipe


def test_nulls_are_those_of_random_tokens():
    activations = FakeActivations(n=30, width=32, lengths=[20] * 30)
    nulls = {name: records(name, activations)[-1]["null_value"] for name in ("sink_norm_ratio", "sink_variance_share")}
    assert nulls["sink_norm_ratio"] == pytest.approx(1.0, abs=0.15)
    assert nulls["sink_variance_share"] == pytest.approx(1 / 20, rel=0.2)
    for record in records("anisotropy", activations):
        assert abs(record["null_value"]) < 0.01
    pooled = records("top_eigenvalue_share", activations)[0]
    assert 1 / 30 < pooled["null_value"] < 0.2


def test_anisotropy_is_of_vectors_that_are_not_centred():
    activations = FakeActivations()
    activations.view_arrays = [views + 3.0 for views in activations.view_arrays]
    pooled, tokens, without_first = records("anisotropy", activations)
    assert [entry["value"] for entry in pooled["layers"]] == pytest.approx(
        [slow.mean_cosine(views[:, 0]) for views in activations.view_arrays], rel=1e-9
    )
    assert pooled["layers"][0]["value"] > 0.5
    for record, first in ((tokens, 0), (without_first, 1)):
        assert [entry["value"] for entry in record["layers"]] == pytest.approx(
            [np.mean([slow.mean_cosine(rows[first:]) for rows in layer]) for layer in activations.tokens], rel=1e-9
        )


def test_top_eigenvalue_share_of_readouts_is_not_centred_and_of_tokens_as_prepared():
    activations = FakeActivations()
    pooled, *tokens = records("top_eigenvalue_share", activations)
    assert [entry["value"] for entry in pooled["layers"]] == pytest.approx(
        [slow_top(views[:, 0]) for views in activations.view_arrays], rel=1e-9
    )
    for record in tokens:
        prepared = [list(activations.prepared(record["recipe"], layer)) for layer in range(5)]
        assert [entry["value"] for entry in record["layers"]] == pytest.approx(
            [np.mean([slow_top(rows) for rows in layer]) for layer in prepared], rel=1e-6
        )
