"""Scores of weighted samples against scores of the samples written out in full."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from layerwise.errors import FileError
from layerwise.tables import outcomes
from layerwise.tables.collect import item_store
from layerwise.tables.outcomes import layer_scores
from numpy.typing import NDArray
from scipy import stats
from table_inputs import task_record

Array = NDArray[np.float64]


def slow_average_precision(gold: Array, values: Array) -> float:
    total, area, previous = (gold > 0).sum(), 0.0, 0
    for threshold in sorted(set(values), reverse=True):
        chosen = values >= threshold
        hits = (gold[chosen] > 0).sum()
        area += (hits - previous) / total * hits / chosen.sum()
        previous = hits
    return area


def slow_v_measure(gold: Array, clusters: Array) -> float:
    def entropy(labels: list[object]) -> float:
        return -sum(c / len(labels) * np.log(c / len(labels)) for c in Counter(labels).values())

    h_gold, h_cluster = entropy(list(gold)), entropy(list(clusters))
    conditional = entropy(list(zip(gold, clusters, strict=True)))
    homogeneity = 1 - (conditional - h_cluster) / h_gold
    completeness = 1 - (conditional - h_gold) / h_cluster
    return 2 * homogeneity * completeness / (homogeneity + completeness)


SLOW: dict[str, Callable[[Array, Array], float]] = {
    "accuracy": lambda gold, values: float(np.mean(values)),
    "spearman": lambda gold, values: stats.spearmanr(gold, values).statistic,
    "average_precision": slow_average_precision,
    "v_measure": slow_v_measure,
}


@pytest.mark.parametrize("score", SLOW)
@pytest.mark.parametrize("levels", [3, 1000])
def test_scores_equal_those_of_the_sample_written_out(score: str, levels: int) -> None:
    rng = np.random.default_rng(0)
    n = 60
    gold = rng.integers(0, 2 if score == "average_precision" else 4, n).astype(float)
    values = np.round(rng.random((5, n)) * levels) if score != "accuracy" else rng.integers(0, 2, (5, n)).astype(float)
    if score == "v_measure":
        values = values % 5
    weights = rng.integers(0, 3, (7, n))
    found = layer_scores(score, gold, values, weights)
    for s, weight in enumerate(weights):
        rows = np.repeat(np.arange(n), weight)
        wanted = [SLOW[score](gold[rows], row[rows]) for row in values]
        np.testing.assert_allclose(found[s], wanted, rtol=1e-9, atol=1e-12)


def test_average_precision_and_v_measure_equal_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    gold, values = rng.integers(0, 2, 200).astype(float), np.round(rng.random((1, 200)), 1)
    everything = np.ones((1, 200))
    wanted = metrics.average_precision_score(gold, values[0])
    assert layer_scores("average_precision", gold, values, everything)[0, 0] == pytest.approx(wanted)
    values = np.round(10 * values)
    wanted = metrics.v_measure_score(gold.astype(int), values[0].astype(int))
    assert layer_scores("v_measure", gold, values, everything)[0, 0] == pytest.approx(wanted)


def test_ranks_are_taken_inside_the_subset() -> None:
    # ranks of the full set restricted to the subset would give another correlation
    rng = np.random.default_rng(2)
    gold, values = rng.random(400) ** 8, rng.random((1, 400))
    subset = np.arange(400) < 30
    wanted = stats.spearmanr(gold[subset], values[0, subset]).statistic
    carried_over = np.corrcoef(stats.rankdata(gold)[subset], stats.rankdata(values[0])[subset])[0, 1]
    found = layer_scores("spearman", gold, values, subset[None].astype(int))[0, 0]
    assert found == pytest.approx(wanted)
    assert abs(found - carried_over) > 0.005


def test_scores_that_do_not_exist_are_nan() -> None:
    ones = np.ones((1, 4))
    assert np.isnan(layer_scores("spearman", [1, 2, 3, 4], [[5, 5, 5, 5]], ones)).all()
    assert np.isnan(layer_scores("spearman", [1, 1, 1, 1], [[1, 2, 3, 4]], ones)).all()
    assert np.isnan(layer_scores("average_precision", [0, 0, 0, 0], [[1, 2, 3, 4]], ones)).all()
    for score in SLOW:
        assert np.isnan(layer_scores(score, [0, 1, 1, 0], [[1, 0, 1, 0]], np.zeros((1, 4)))).all(), score
    assert layer_scores("v_measure", [1, 1, 1, 1], [[2, 2, 2, 2]], ones)[0, 0] == 1
    assert layer_scores("v_measure", [1, 1, 1, 1], [[1, 1, 2, 2]], ones)[0, 0] == 0


@pytest.mark.parametrize("score", SLOW)
def test_blocks_do_not_change_the_scores(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    gold, values, weights = rng.integers(0, 2, 30), rng.integers(0, 2, (3, 30)), rng.integers(0, 2, (11, 30))
    whole = layer_scores(score, gold, values, weights)
    monkeypatch.setattr(outcomes, "_CELLS", 90)
    np.testing.assert_array_equal(layer_scores(score, gold, values, weights), whole)


@pytest.mark.parametrize(
    ("kind", "task_type", "gold", "score"),
    [
        ("correct", "classification", ["a", "b", "a"], "accuracy"),
        ("cluster", "clustering", ["a", "b", "a"], "v_measure"),
        ("similarity", "sts", [0.5, 2.0, 5.0], "spearman"),
        ("similarity", "pair_classification", [0, 1, 1], "average_precision"),
    ],
)
def test_items_are_read_from_task_files(
    write: Callable[..., Path], kind: str, task_type: str, gold: list[object], score: str
) -> None:
    items = {"protocol": "mteb", "kind": kind, "gold": gold, "readouts": {"mean": [[0, 1, 1], [1, 1, 0]]}}
    store = item_store([write(task_record({"mean": [0.1, 0.2]}, type=task_type, items=items))])
    found = store["m", "t"]
    assert (found.score, found.n, found.protocol) == (score, 3, "mteb")
    assert found.scores("mean", np.ones((1, 3))).shape == (1, 2)
    assert list(store) == [("m", "t")]


def test_items_that_do_not_fit_are_refused(write: Callable[..., Path]) -> None:
    def store(**items: object) -> object:
        base = {"protocol": "mteb", "kind": "correct", "gold": [0, 1], "readouts": {"mean": [[0, 1], [1, 1]]}}
        return item_store([write(task_record({"mean": [0.1, 0.2]}, items=base | items))])["m", "t"]  # type: ignore[index]

    store()
    with pytest.raises(FileError, match="are not 2 layers x 2 items"):
        store(readouts={"mean": [[0, 1]]})
    with pytest.raises(FileError, match="are not 2 layers x 2 items"):
        store(readouts={"mean": [[0, 1], [1]]})
    with pytest.raises(FileError, match="'rank' outcomes of a 'sts' task"):
        store(kind="rank")


def test_tasks_without_items_are_absent_not_empty(write: Callable[..., Path]) -> None:
    path = write(task_record({"mean": [0.1, 0.2]}))
    store = item_store([path])
    assert store.get(("m", "t")) is None
    assert store.get(("m", "u")) is None
    with pytest.raises(FileError, match="both score model 'm' on task 't'"):
        item_store([path, path])
    moved = path.with_name("other.json")
    path.rename(moved)
    with pytest.raises(FileError, match="holds model 'm' and task 't'"):
        item_store([moved])["m", "other"]
