"""Linear CKA: against a slow reference, its invariances, what it gives for unrelated vectors, and degenerate input."""

from types import SimpleNamespace

import numpy as np
import pytest
from layerwise.errors import UndefinedMetric
from layerwise.metrics import layer_similarity
from layerwise.metrics.layer_similarity import similarity_records
from layerwise.metrics.linear_cka import linear_cka
from layerwise.metrics.resampling import draw_subset


def vectors(n: int = 30, width: int = 7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, width)) @ rng.standard_normal((width, width)) + 3.0 * rng.standard_normal(width)


def related(x: np.ndarray, width: int = 5, noise: float = 0.7, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return x @ rng.standard_normal((x.shape[1], width)) + noise * rng.standard_normal((len(x), width))


def slow(x: np.ndarray, y: np.ndarray) -> float:
    """Kornblith et al. (2019), eq. 3 and 4: HSIC of the N x N kernels with the centring matrix."""
    n = len(x)
    h = np.eye(n) - np.ones((n, n)) / n

    def hsic(k: np.ndarray, m: np.ndarray) -> float:
        return float(np.trace(k @ h @ m @ h)) / (n - 1) ** 2

    k, m = x @ x.T, y @ y.T
    return hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))


def slow_unbiased(x: np.ndarray, y: np.ndarray) -> float:
    """Song et al. (2012), eq. 5: HSIC_1, sums over kernels whose diagonals are zero, written out."""
    n = len(x)

    def hsic(k: np.ndarray, m: np.ndarray) -> float:
        k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
        first = sum(k[i, j] * m[i, j] for i in range(n) for j in range(n))
        second = k.sum() * m.sum() / ((n - 1) * (n - 2))
        third = 2 / (n - 2) * sum(k[:, j].sum() * m[j].sum() for j in range(n))
        return float(first + second - third) / (n * (n - 3))

    k, m = x @ x.T, y @ y.T
    return hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))


@pytest.mark.parametrize("shape", [(30, 7), (6, 40), (4, 3)])
def test_it_is_the_definition(shape: tuple[int, int]) -> None:
    x = vectors(*shape)
    y = related(x)
    assert linear_cka(x, y) == pytest.approx(slow(x, y), abs=1e-12)
    assert linear_cka(x, y, debiased=True) == pytest.approx(slow_unbiased(x, y), abs=1e-10)


@pytest.mark.parametrize("debiased", [False, True])
def test_rotation_scale_shift_and_order_change_nothing(debiased: bool) -> None:
    x = vectors()
    y = related(x)
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((7, 7)))[0]
    expected = linear_cka(x, y, debiased)
    for other in (x @ turn, 1e-3 * x, -x, x + 100.0, np.hstack([x, np.zeros((30, 2))])):
        assert linear_cka(other, y, debiased) == pytest.approx(expected, abs=1e-9)
    assert linear_cka(y, x, debiased) == pytest.approx(expected, abs=1e-12)
    order = np.random.default_rng(3).permutation(30)
    assert linear_cka(x[order], y[order], debiased) == pytest.approx(expected, abs=1e-12)
    assert linear_cka(x, 5 * x @ turn - 1, debiased) == pytest.approx(1.0, abs=1e-9)
    assert linear_cka(x, x @ np.diag([9, 1, 1, 1, 1, 1, 0.1]), debiased) < 0.99  # no invariance to stretching


@pytest.mark.parametrize("factor", [1e200, 1e-200, 1e-30])
def test_extreme_scales_stay_within_float64(factor: float) -> None:
    x = vectors()
    assert linear_cka(x * factor, related(x)) == pytest.approx(linear_cka(x, related(x)), abs=1e-9)


def test_unrelated_vectors_have_a_floor_only_with_bias() -> None:
    n, width = 200, 100
    drawn = [np.random.default_rng(seed).standard_normal((2, n, width)) for seed in range(5)]
    assert np.mean([linear_cka(x, y) for x, y in drawn]) == pytest.approx(width / (n + width), abs=0.02)
    assert abs(np.mean([linear_cka(x, y, debiased=True) for x, y in drawn])) < 0.01


@pytest.mark.parametrize("debiased", [False, True])
def test_degenerate_input_is_undefined(debiased: bool) -> None:
    x = vectors()
    constant = np.tile(np.random.default_rng(0).standard_normal(4) * 1e6, (30, 1))
    for first, second, reason in (
        (x, constant, "all vectors are equal"),
        (np.zeros((30, 4)), x, "all vectors are equal"),
        (x, np.where(np.arange(30)[:, None] == 3, np.nan, x), "1 of 30 rows hold NaN"),
        (x[:1], x[:1], "1 samples"),
        (x, x[:20], "30 samples in one set and 20 in the other"),
        (x[:, 0], x, r"an \(N, D\) array is needed"),
    ):
        with pytest.raises(UndefinedMetric, match=reason):
            linear_cka(first, second, debiased)
    if debiased:
        with pytest.raises(UndefinedMetric, match="3 samples"):
            linear_cka(x[:3], x[:3], debiased)


def model(layers: list[np.ndarray]) -> SimpleNamespace:
    made = SimpleNamespace(n_layers=len(layers) - 1, n_samples=len(layers[0]))
    made.pooled = lambda readout, layer: layers[layer] * len(readout)
    made.among = lambda samples: model([rows[samples] for rows in layers])
    return made


def test_layers_are_compared_with_the_one_before_and_with_the_last_checkpoint() -> None:
    x = vectors()
    own, final = [x, related(x), np.ones((30, 3))], [x, related(x, seed=5), x]
    (record,) = similarity_records(model(own), model(final), ["mean"], 0)
    first, second, third = record["layers"]
    assert (record["readout"], record["n_samples"]) == ("mean", 30)
    assert [layer["depth"] for layer in record["layers"]] == [0.0, 0.5, 1.0]
    assert first["layer_change"] is None
    assert "undefined" not in first
    assert first["stability"] == pytest.approx(1.0)
    assert second["layer_change"] == pytest.approx(1 - slow(x, own[1]))
    assert second["layer_change_debiased"] == pytest.approx(1 - slow_unbiased(x, own[1]))
    assert second["stability"] == pytest.approx(slow(own[1], final[1]))
    assert second["stability_debiased"] == pytest.approx(slow_unbiased(own[1], final[1]))
    assert [third[key] for key in ("stability", "layer_change")] == [None, None]
    assert third["undefined"] == "all vectors are equal"


def test_progress_counts_readouts_and_layers() -> None:
    x, seen = vectors(), []
    made = model([x, related(x)])
    similarity_records(made, made, ["a", "b"], 0, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_of_very_many_samples_a_subsample_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_similarity, "MOST_COMPARED", 20)
    x = vectors()
    layers = [x, related(x)]
    (record,) = similarity_records(model(layers), model(layers[::-1]), ["mean"], 3)
    assert (record["n_available"], record["n_samples"]) == (30, 20)
    chosen = draw_subset(30, 20, 3)
    assert record["layers"][1]["stability"] == pytest.approx(slow(layers[1][chosen], x[chosen]))
