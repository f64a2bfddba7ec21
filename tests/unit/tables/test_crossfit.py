"""The cross-fitted gain: no gain where there is none, all of it where there is one, and an interval that covers."""

import time

import numpy as np
import pytest
from layerwise.tables.crossfit import (
    SPLITS,
    HalfScores,
    cross_fitted_gain,
    half_scores,
    mean_half_scores,
    split_gains,
)
from layerwise.tables.curves import best_share
from layerwise.tables.outcomes import TaskItems, layer_scores
from layerwise.tables.resampling import subsets
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


def correct(rng: np.random.Generator, rates: Array, n: int, neighbour: float) -> TaskItems:
    """0/1 outcomes with the given rate per layer; easy items are easy for all layers, neighbouring layers are alike."""
    walk = rng.standard_normal((len(rates), n))
    for layer in range(1, len(rates)):
        walk[layer] = neighbour * walk[layer - 1] + np.sqrt(1 - neighbour**2) * walk[layer]
    latent = np.sqrt(0.5) * rng.standard_normal(n) + np.sqrt(0.5) * walk
    right = (latent < stats.norm.ppf(rates)[:, None]).astype(float)
    return TaskItems("mteb", "accuracy", np.zeros(n), {"mean": right})


def quick_gain(items: TaskItems, rng: np.random.Generator) -> float:
    first = subsets(items.n, items.n // 2, SPLITS, rng)
    halves = np.stack([items.scores("mean", first), items.scores("mean", 1 - first)])
    return float(split_gains(halves).mean())


@pytest.mark.parametrize("neighbour", [0.0, 0.9])
def test_equal_layers_gain_nothing(neighbour: float) -> None:
    rng, rates = np.random.default_rng(int(10 * neighbour)), np.full(31, 0.7)
    tasks = [correct(rng, rates, 700, neighbour) for _ in range(300)]
    gains = [quick_gain(items, rng) for items in tasks]
    naive = [items.scores("mean", np.ones((1, items.n)))[0] for items in tasks]
    assert np.mean(gains) == pytest.approx(0, abs=0.003)
    assert np.mean([curve.max() - curve[-1] for curve in naive]) > 0.02  # what the best of 31 equal layers seems to gain


def test_equal_layers_gain_nothing_in_rank_correlation() -> None:
    rng, gains = np.random.default_rng(3), []
    for _ in range(40):
        gold = np.round(rng.standard_normal(150), 1)
        similar = gold + 1.5 * rng.standard_normal((9, 150))
        first = subsets(150, 75, 50, rng)
        gains.append(split_gains(np.stack([layer_scores("spearman", gold, similar, w) for w in (first, 1 - first)])).mean())
    assert np.mean(gains) == pytest.approx(0, abs=2.5 * np.std(gains) / np.sqrt(40))


def test_a_real_gain_is_found() -> None:
    rng = np.random.default_rng(4)
    rates = np.where(np.arange(13) == 6, 0.8, 0.6)
    found = [cross_fitted_gain(half_scores(correct(rng, rates, 700, 0.5), "mean", 0, "t")) for _ in range(10)]
    assert np.mean([gain for gain, _, _ in found]) == pytest.approx(0.2, abs=0.02)
    assert all(low > 0.1 for _, low, _ in found)


# rates of 13 layers: equal, a smooth bump, and one layer that only some splits find (the hardest case)
SHAPES = {
    "equal": np.full(13, 0.6),
    "bump": 0.66 - 0.2 * (np.linspace(0, 1, 13) - 0.6) ** 2,
    "one": np.where(np.arange(13) == 6, 0.66, 0.6),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_interval_covers_the_expected_gain(shape: str) -> None:
    rng, rates = np.random.default_rng(5), SHAPES[shape]
    intervals, truths = [], []
    for _ in range(400):
        items = correct(rng, rates, 300, 0.7)
        halves = half_scores(items, "mean", 0, "t")
        assert halves is not None
        intervals.append(cross_fitted_gain(halves))
        truths.append((best_share(halves.splits) @ rates).mean() - rates[-1])
    truth = np.mean(truths)  # the expected score, on new items, of a layer chosen on half as many items
    covered = np.mean([low <= truth <= high for _, low, high in intervals])
    assert covered >= 0.93
    assert np.mean([gain for gain, _, _ in intervals]) == pytest.approx(truth, abs=0.006)
    width = np.mean([high - low for _, low, high in intervals])
    assert width < 1.4 * 2 * 1.96 * np.std([gain for gain, _, _ in intervals])


def test_no_copy_of_an_item_is_on_both_sides_of_a_split() -> None:
    # outcomes that identify the item: a copy on the other side would tell each resample what it is scored on
    rng = np.random.default_rng(6)
    gains = []
    for _ in range(30):
        items = TaskItems("mteb", "accuracy", np.zeros(40), {"mean": rng.integers(0, 2, (200, 40)).astype(float)})
        halves = half_scores(items, "mean", 0, "t")
        assert halves is not None
        gains.append(split_gains(halves.resampled).mean())
    assert np.mean(gains) < 0.03


def test_ties_share_the_choice() -> None:
    halves = np.array([[[1.0, 1.0, 0.0]], [[0.4, 0.2, 0.1]]])
    # chosen on the first half: layers 0 and 1, half each; on the second: layer 0
    assert split_gains(halves)[0] == pytest.approx(((0.3 + 0.1) / 2 + 1.0) / 2)


def test_layers_without_a_score_are_not_chosen() -> None:
    halves = np.array([[[np.nan, 0.5, 0.4]], [[0.9, 0.6, 0.5]]])
    assert np.isnan(split_gains(halves)[0])  # the second half chooses layer 0, which the first cannot score
    halves = np.array([[[np.nan, 0.5, 0.4]], [[0.1, 0.6, 0.5]]])
    assert split_gains(halves)[0] == pytest.approx(0.1)
    nothing = HalfScores(np.full((2, 3, 4), np.nan), np.full((2, 5, 2, 4), np.nan))
    assert np.isnan(cross_fitted_gain(nothing)).all()


def test_halves_depend_on_seed_and_task_only() -> None:
    rng = np.random.default_rng(7)
    items = correct(rng, np.full(5, 0.6), 100, 0.5)
    one, two = (half_scores(items, "mean", 0, "t") for _ in range(2))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.splits, two.splits)
    for other in (half_scores(items, "mean", 1, "t"), half_scores(items, "mean", 0, "u")):
        assert other is not None
        assert (other.splits != one.splits).any()
    assert half_scores(items, "last", 0, "t") is None
    few = TaskItems("mteb", "accuracy", np.zeros(7), {"mean": np.ones((5, 7))})
    assert half_scores(few, "mean", 0, "t") is None


def test_mean_over_tasks_chooses_one_layer_for_all() -> None:
    shape = (2, 1, 1, 3)
    one = HalfScores(np.array([[[0.9, 0.5, 0.6]]] * 2), np.zeros(shape))
    two = HalfScores(np.array([[[0.1, 0.8, 0.6]]] * 2), np.zeros(shape))
    assert split_gains(mean_half_scores([one, two]).splits)[0] == pytest.approx(0.05)  # layer 1, not each task's own best


def test_a_large_rank_correlation_task_takes_seconds() -> None:
    rng = np.random.default_rng(8)
    gold = np.round(5 * rng.random(1225), 1)
    items = TaskItems("mteb", "spearman", gold, {"mean": gold + rng.standard_normal((31, 1225))})
    start = time.process_time()
    first = subsets(1225, 612, SPLITS, rng)
    split_gains(np.stack([items.scores("mean", first), items.scores("mean", 1 - first)]))
    assert time.process_time() - start < 5
