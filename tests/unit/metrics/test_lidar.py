"""LiDAR against outer products by loops, its subspace and group shortcuts, ridges, and the authors' numbers."""

import math

import numpy as np
import pytest
from _metric_inputs import centre_unit, gaussian, noisy_views, parity, rotation, with_nan
from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.lidar import annotate, companions, evaluate, lidar, merge, parts, summarise
from layerwise.metrics.spec import Case


def slow_lidar_entropy(views, delta=None, relative=None):
    """S_w and S_b by outer products in full width, the inverse root from an eigendecomposition."""
    n, v, d = views.shape
    means = [sum(sample) / v for sample in views]
    centre = sum(means) / n
    between = sum(np.outer(m - centre, m - centre) for m in means) / n
    within = sum(np.outer(x - m, x - m) for sample, m in zip(views, means, strict=True) for x in sample) / (n * v)
    within = within + (delta if delta is not None else relative * np.trace(within) / d) * np.eye(d)
    values, vectors = np.linalg.eigh(within)
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    p = np.linalg.eigvalsh(root @ between @ root)
    p = p[p > 1e-13 * p.max()] / p.sum()
    return -sum(x * math.log(x) for x in p)


def prepared(n=10, v=4, d=6, noise=0.5, seed=0):
    return centre_unit(noisy_views(n, v, d, noise, seed))


@pytest.mark.parametrize("shape", [(10, 4, 6), (6, 4, 10), (4, 3, 30), (4, 3, 12), (4, 3, 13), (2, 2, 5), (9, 2, 1)])
def test_matches_slow_reference(shape):
    """n >> d, n << d, and n v < d, where the work is done in the span of the samples."""
    views = prepared(*shape)
    entropy = slow_lidar_entropy(views, delta=1e-4)
    assert lidar(views, variant="released") == pytest.approx(entropy, rel=1e-7, abs=1e-9)
    assert lidar(views) == pytest.approx(math.exp(entropy), rel=1e-7)
    relative = math.exp(slow_lidar_entropy(views, relative=0.01))
    assert lidar(views, delta_relative=0.01) == pytest.approx(relative, rel=1e-7)


def test_padding_with_zero_dimensions_changes_nothing():
    views = prepared(8, 3, 6)
    padded = np.concatenate([views, np.zeros((8, 3, 60))], axis=2)
    assert lidar(padded) == pytest.approx(lidar(views), rel=1e-9)


def test_counts_the_directions_that_separate_samples():
    """Three of ten dimensions differ between samples, all ten between views; in pure noise all ten differ."""
    between = np.concatenate([gaussian(200, 3), np.zeros((200, 7))], axis=1)
    views = between[:, None] + 0.05 * gaussian(200, 16, 10, seed=3)
    assert lidar(views, delta=1e-9) == pytest.approx(3.0, abs=0.1)
    assert lidar(gaussian(200, 16, 10), delta=1e-9) > 9.5
    assert lidar(gaussian(5, 16, 10), delta=1e-9) <= 4 + 1e-9


def test_identical_views():
    """S_w = 0: with an absolute ridge LiDAR is the spread of the means alone, with a relative one it is undefined."""
    base = centre_unit(gaussian(9, 5))
    views = np.repeat(base[:, None], 3, axis=1)
    p = np.linalg.svd(base - base.mean(0), compute_uv=False) ** 2
    p = p / p.sum()
    assert lidar(views) == pytest.approx(math.exp(-(p * np.log(p)).sum()))
    with pytest.raises(UndefinedMetric, match="identical"):
        lidar(views, delta_relative=0.01)


def test_invariances():
    views = prepared()
    value, relative = lidar(views), lidar(views, delta_relative=0.01)
    order = np.random.default_rng(0).permutation(10)
    assert lidar(views[order][:, ::-1]) == pytest.approx(value, rel=1e-9)
    assert lidar(views @ rotation(6)) == pytest.approx(value, rel=1e-9)
    assert lidar(views.astype("f4")) == pytest.approx(value, rel=1e-5)
    for scale in (1e-200, 1e-20, 1e20, 1e200):
        assert lidar(views * scale, delta_relative=0.01) == pytest.approx(relative, rel=1e-9)
    assert lidar(views * 1e20, delta=1e-4 * 1e40) == pytest.approx(value, rel=1e-9)
    assert lidar(views * 10) != pytest.approx(value, rel=1e-4)  # an absolute ridge is meant for unit vectors


def test_extreme_scales_with_an_absolute_ridge_reach_its_limits():
    views = prepared(6, 6, 4)
    base = views.mean(axis=1)
    p = np.linalg.svd(base - base.mean(0), compute_uv=False) ** 2
    p = p[p > 1e-12] / p.sum()
    assert lidar(views * 1e-200) == pytest.approx(math.exp(-(p * np.log(p)).sum()), rel=1e-6)
    assert lidar(views * 1e200) == pytest.approx(lidar(views, delta=1e-30), rel=1e-6)
    with pytest.raises(UndefinedMetric, match="singular"):
        lidar(prepared(4, 2, 6) * 1e200)


def test_groups_add_up_to_the_whole_and_to_halves():
    for shape in ((10, 4, 6), (10, 2, 30)):
        views = prepared(*shape)
        groups = [np.array([0, 3]), np.array([1, 2, 4]), np.array([5, 6, 7, 8, 9])]
        states = parts(views, groups)
        case = Case("paper", {"delta": 1e-4})
        whole, half = merge(states), merge(states[:2])
        assert evaluate(whole, case, 0).value == pytest.approx(lidar(views), rel=1e-9)
        assert evaluate(half, case, 0).value == pytest.approx(lidar(views[[0, 1, 2, 3, 4]]), rel=1e-9)
        assert len(whole.within) == min(10 * shape[1], shape[2])  # n v < d: the work is done in the samples' span


def test_evaluate_normalises_by_the_logarithm():
    views = prepared()
    value = evaluate(summarise(views), Case("paper", {"delta": 1e-4}), 0)
    released = evaluate(summarise(views), Case("released", {"delta": 1e-4}), 0)
    assert value.normalized == pytest.approx(math.log(value.value) / math.log(6))
    assert released.value == pytest.approx(math.log(value.value))
    tall = evaluate(summarise(prepared(5, 4, 9)), Case("paper", {"delta": 1e-4}), 0)
    assert tall.normalized == pytest.approx(math.log(tall.value) / math.log(4))


def test_annotate_compares_curves_and_flags_flat_ones():
    case = Case("paper", {"delta": 1e-4})
    assert [c.parameters["delta"] for c in companions(case)] == pytest.approx([1e-6, 1e-2])
    record = {"variant": "paper"}
    annotate(record, [1.0, 2.0, 3.0, None], [[3.0, 2.0, 1.0, 9.0], [1.0, 2.0, 4.0, None]])
    assert record["delta_spearman"] == {"0.01": -1.0, "100": 1.0}
    assert record["saturated"] is False
    for variant, factor in (("paper", math.exp(0.14)), ("released", None)):
        record = {"variant": variant}
        annotate(record, [5.0, 5.0 * factor if factor else 5.14, 5.0], [[1.0] * 3, [1.0] * 3])
        assert record["saturated"] is True
        assert record["delta_spearman"]["0.01"] is None
    annotate(record, [None, None], [[None, None]] * 2)
    assert record["saturated"] is None


@pytest.mark.parametrize(
    "views",
    [
        np.empty((0, 4, 3)),
        gaussian(1, 4, 3),
        gaussian(5, 1, 3),
        gaussian(5, 3),
        np.zeros((5, 4, 3)),
        np.full((5, 4, 3), 0.1),
        np.tile(gaussian(1, 4, 3), (5, 1, 1)),
        with_nan(gaussian(5, 4, 3)),
        np.empty((5, 4, 0)),
    ],
    ids=["n=0", "n=1", "one view", "no view axis", "zero", "constant", "equal samples", "NaN", "d=0"],
)
def test_undefined_inputs_are_named(views):
    with pytest.raises(UndefinedMetric):
        lidar(views)


@pytest.mark.parametrize("scale", [[1e4, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1]], ids=["outlier", "no variance"])
def test_hard_inputs(scale):
    views = noisy_views(12, 4, 6) * scale
    for array in (views, centre_unit(views)):
        assert lidar(array) == pytest.approx(math.exp(slow_lidar_entropy(array, delta=1e-4)), rel=1e-5)


def test_bad_arguments():
    for arguments in ({"delta": 0.0}, {"delta": math.nan}, {"delta_relative": -1.0}):
        with pytest.raises(ConfigError, match=next(iter(arguments))):
            lidar(prepared(), **arguments)
    with pytest.raises(ConfigError, match="paper, released"):
        lidar(prepared(), variant="entropy")


@pytest.mark.parametrize("case", ["lidar_N_lt_D", "lidar_N_gt_D"])
def test_parity_with_the_authors(case):
    """Their scatter matrices are summed in single precision: 1e-4, not 1e-6. Their maxEntropy is over log min(N, D)."""
    inputs, expected = parity()
    reference = expected[case]["lidar_reference"]
    views = [centre_unit(sample) for sample in inputs[case]]
    np.testing.assert_allclose([lidar(v, variant="released") for v in views], reference["raw"], rtol=1e-4)
    np.testing.assert_allclose([math.log(lidar(v)) for v in views], reference["raw"], rtol=1e-4)
    shares = [evaluate(summarise(v), Case("released", {"delta": 1e-4}), 0).normalized for v in views]
    np.testing.assert_allclose(shares, reference["maxEntropy"], rtol=1e-4)
