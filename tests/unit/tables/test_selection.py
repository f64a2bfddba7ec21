"""layer_selection: picks, directions, baselines, labels, and the set of tasks that all are judged on."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.tables.outcomes import TaskItems
from layerwise.tables.registry import TABLES, load_table
from layerwise.tables.selection import COLUMNS, _paired_gain, layer_selection
from scipy import stats
from table_inputs import canonical, metric_rows, score_rows, tables

BOTH = {"dime": {"paper": {"theory": "max", "study": "min"}}}


def one(frame: pd.DataFrame, selector: str, **keys: object) -> pd.Series:
    for key, value in {"selector": selector, "protocol": "mteb", **keys}.items():
        frame = frame[frame[key] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def small() -> tuple[pd.DataFrame, pd.DataFrame]:
    metrics = {"a": [3, 1, 2, 5, 4], "b": [2, 3, 4, 1, 5]}
    scores = {"a": [0.1, 0.5, 0.4, 0.2, 0.3], "b": [0.2, 0.1, 0.6, 0.3, 0.4]}
    return tables(metrics, scores)  # type: ignore[return-value]


def test_every_selector_by_hand() -> None:
    table = layer_selection(*small(), None, BOTH)
    assert tuple(table.columns) == COLUMNS
    expected = {
        "max_dime": (0.2 + 0.4) / 2,
        "min_dime": (0.5 + 0.3) / 2,
        "last": 0.35,
        "middle": 0.5,
        "random": (0.3 + 0.32) / 2,
        "oracle": 0.55,
        "other_tasks": (0.4 + 0.1) / 2,  # a follows b's best layer 2, b follows a's best layer 1
    }
    for selector, score in expected.items():
        row = one(table, selector)
        assert row["score"] == pytest.approx(score), selector
        assert row["regret"] == pytest.approx(0.55 - score), selector
        assert row["gain_over_last"] == pytest.approx(score - 0.35), selector
        assert np.isnan(row["gain_low"])
        assert row["n_tasks"] == 2
    assert one(table, "middle")["picked_layer"] == 2
    assert one(table, "middle")["picked_depth"] == 0.5
    assert pd.isna(one(table, "random")["picked_layer"])
    assert one(table, "max_dime")["direction"] == "theory"
    assert one(table, "min_dime")["direction"] == "study"
    assert one(table, "max_dime")["metric_text"] == "own"
    assert "no other model" in one(table, "other_models")["undefined"]
    assert "0 of 2 tasks" in one(table, "labels_16")["undefined"]


def test_order_of_rows_does_not_matter() -> None:
    metrics, scores = small()
    wanted = canonical(layer_selection(metrics, scores, None, BOTH))
    shuffled = (frame.sample(frac=1, random_state=2) for frame in (metrics, scores))
    assert canonical(layer_selection(*shuffled, None, BOTH)) == wanted


def test_same_direction_twice_makes_two_rows_and_none_says_so() -> None:
    ends = {"dime": {"theory": "max", "study": "max"}, "infonce": {"theory": None, "study": "min"}}
    directions = {metric: {"paper": both} for metric, both in ends.items()}
    metrics, scores = small()
    metrics = pd.concat([metrics, metrics.assign(metric="infonce")])
    table = layer_selection(metrics, scores, None, directions)
    rows = table[(table["selector"] == "max_dime") & (table["protocol"] == "mteb")]
    assert list(rows["direction"]) == ["theory", "study"]
    assert one(table, "infonce")["undefined"] == "the theory names no direction for infonce"
    assert one(table, "min_infonce")["undefined"] == ""


def test_pooled_metrics_select_for_their_own_readout_and_recipes_for_all() -> None:
    curve = [1.0, 2, 3, 4, 5]
    metrics = pd.concat([metric_rows(curve, "a"), metric_rows(curve, "a", metric="curvature", readout="", recipe="raw")])
    scores = pd.concat([score_rows(curve, "a"), score_rows(curve, "a", readout="last")])
    ends = {"theory": "max", "study": "min"}
    table = layer_selection(metrics, scores, None, {"dime": {"paper": ends}, "curvature": {"paper": ends}})
    table = table[(table["protocol"] == "mteb") & (table["direction"] == "theory")]
    found = set(table[["readout", "metric", "recipe"]].itertuples(index=False, name=None))
    assert found == {("mean", "dime", ""), ("mean", "curvature", "raw"), ("last", "curvature", "raw")}


def test_saturated_curves_are_not_selectable() -> None:
    metrics, scores = small()
    table = layer_selection(metrics.assign(saturated=True), scores, None, BOTH)
    row = one(table, "max_dime")
    assert row["undefined"] == "own curves on 0 of 2 tasks, 75% needed (2 saturated)"
    assert pd.isna(row["score"])
    assert one(table, "last")["n_tasks"] == 2  # the others are not affected


def test_a_metric_without_own_curves_reads_the_corpus() -> None:
    _, scores = small()
    metrics = pd.concat([metric_rows([1, 9, 3, 0, 2]), metric_rows([5, 4, 3, 2, 1], "a")])
    row = one(layer_selection(metrics, scores, None, BOTH, corpora=["corpus"]), "max_dime")
    assert (row["metric_text"], row["picked_layer"], row["score"]) == ("corpus", 1, pytest.approx(0.3))
    row = one(layer_selection(metrics, scores, None, BOTH, corpora=["lee"]), "max_dime")
    assert row["undefined"] == "own curves on 1 of 2 tasks, 75% needed, and none on lee"
    dull = metrics.assign(saturated=metrics["dataset"] == "corpus")
    assert "saturated on corpus" in one(layer_selection(dull, scores, None, BOTH, ["corpus"]), "max_dime")["undefined"]


def test_all_selectors_are_judged_on_the_tasks_they_share() -> None:
    rng = np.random.default_rng(0)
    scores = {f"t{i}": rng.random(5) for i in range(8)}
    metrics = {name: rng.random(5) for name in [*scores][:6]}
    table = layer_selection(*tables(metrics, scores), None, BOTH)
    defined = table[(table["undefined"] == "") & (table["protocol"] == "mteb")]
    assert set(defined["n_tasks"]) == {6}
    mean = np.mean([scores[name][-1] for name in metrics])
    assert one(table, "last")["score"] == pytest.approx(mean)


def test_undefined_layers_are_not_picked_and_nan_curves_do_not_raise() -> None:
    metrics, scores = small()
    metrics.loc[(metrics["task"] == "a") & (metrics["layer"] == 3), "value"] = np.nan
    row = one(layer_selection(metrics, scores, None, BOTH), "max_dime")
    assert row["score"] == pytest.approx((0.3 + 0.4) / 2)  # a: layer 4 instead of 3
    metrics["value"] = np.nan
    assert "0 of 2 tasks" in one(layer_selection(metrics, scores, None, BOTH), "max_dime")["undefined"]


def test_a_constant_metric_picks_nothing_and_says_why() -> None:
    metrics, scores = small()
    row = one(layer_selection(metrics.assign(value=1.0), scores, None, BOTH), "max_dime")
    assert row["undefined"] == "own curves on 0 of 2 tasks, 75% needed (2 constant)"
    assert pd.isna(row["score"])
    curve = metric_rows([2.0, np.nan, 2, 2, 2])
    row = one(layer_selection(curve, scores, None, BOTH, ["corpus"]), "max_dime")
    assert row["undefined"] == "constant on corpus: it is the same at every layer"


def test_few_layers_and_left_out_tasks_are_flagged() -> None:
    metrics, scores = small()
    assert set(layer_selection(metrics, scores, None, BOTH)["flag"]) == {"fewer than 8 layers"}
    rng = np.random.default_rng(3)
    curves = {f"t{i}": rng.random(9) for i in range(8)}
    every = tables(curves, curves)
    assert set(layer_selection(*every, None, BOTH)["flag"]) == {""}
    part = tables({name: curves[name] for name in [*curves][:6]}, curves)
    table = layer_selection(*part, None, BOTH)
    assert table["flag"].str.startswith("2 of 8 tasks left out").all()
    assert set(table.loc[table["undefined"] == "", "n_tasks"]) == {6}


def test_means_over_others_say_over_how_many() -> None:
    metrics, scores = small()
    more = [score_rows(np.arange(5.0), task, model=model) for task in "ab" for model in ("n", "o")]
    table = layer_selection(metrics, pd.concat([scores, *more]), None, BOTH)
    assert one(table, "other_models", model="m")["n_others"] == 2
    assert one(table, "other_tasks", model="m")["n_others"] == 1
    assert pd.isna(one(table, "last", model="m")["n_others"])
    # a model without task b is no other model of a mean over a and b
    table = layer_selection(metrics, pd.concat([scores, *more[1:]]), None, BOTH)
    assert one(table, "other_models", model="m")["n_others"] == 1


def test_paired_tests_are_corrected_within_one_readout_and_protocol() -> None:
    rng = np.random.default_rng(4)
    scores = {f"t{i}": np.r_[rng.random(8), 0.2] for i in range(10)}
    metrics = {name: rng.random(9) for name in scores}
    table = layer_selection(*tables(metrics, scores), None, BOTH)
    assert one(table, "oracle")["p_gain"] < 1e-4
    assert pd.isna(one(table, "last")["p_gain"])
    row = one(table, "max_dime")
    picked = [scores[name][np.argmax(metrics[name])] - scores[name][-1] for name in scores]
    assert row["p_gain"] == pytest.approx(stats.ttest_1samp(picked, 0).pvalue)
    tested = table[table["p_gain"].notna() & (table["protocol"] == "mteb")]
    np.testing.assert_allclose(tested["q_gain"], stats.false_discovery_control(tested["p_gain"]))
    assert one(layer_selection(*small(), None, BOTH), "oracle").isna()["p_gain"]


@pytest.mark.parametrize("tasks", [8, 20])
def test_the_paired_interval_covers_the_mean_gain(tasks: int) -> None:
    rng, covered = np.random.default_rng(5), []
    for _ in range(2000):
        result = _paired_gain(0.02 + 0.03 * rng.standard_normal(tasks))
        covered.append(result["gain_low"] <= 0.02 <= result["gain_high"])
    assert np.mean(covered) >= 0.93


def test_interval_is_the_paired_t_interval() -> None:
    rng = np.random.default_rng(1)
    scores = {f"t{i}": rng.random(6) for i in range(12)}
    row = one(layer_selection(*tables(scores, scores), None, BOTH), "max_dime")
    gains = [curve.max() - curve[-1] for curve in scores.values()]
    wanted = stats.ttest_1samp(gains, 0).confidence_interval(0.95)
    assert (row["gain_low"], row["gain_high"]) == (pytest.approx(wanted.low), pytest.approx(wanted.high))
    assert row["regret"] == pytest.approx(0)


def test_other_models_are_compared_by_depth() -> None:
    metrics, scores = small()
    longer = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.1, 0.1]  # layer 6 of 8 = layer 3 of 4
    other = [score_rows(longer, task, model="n") for task in "ab"]
    table = layer_selection(metrics, pd.concat([scores, *other]), None, BOTH)
    row = one(table, "other_models", model="m")
    assert (row["picked_layer"], row["picked_depth"], row["score"]) == (3, 0.75, pytest.approx(0.25))
    revision = [frame.assign(model="m@step1") for frame in other]
    row = one(layer_selection(metrics, pd.concat([scores, *revision]), None, BOTH), "other_models", model="m")
    assert "no other model" in row["undefined"]


def labelled(n: int, best: float, tasks: str = "ab") -> tuple[pd.DataFrame, Mapping[tuple[str, str], TaskItems]]:
    rng = np.random.default_rng(2)
    rate = np.where(np.arange(5) == 2, best, 0.5)
    store = {
        ("m", task): TaskItems("mteb", "accuracy", np.zeros(n), {"mean": (rng.random((5, n)) < rate[:, None]).astype(float)})
        for task in tasks
    }
    scores = pd.concat([score_rows(v.readouts["mean"].mean(axis=1), task) for (_, task), v in store.items()])
    return scores, store


def test_labels_approach_the_best_layer() -> None:
    scores, store = labelled(600, 0.8)
    metrics, _ = small()
    table = layer_selection(metrics, scores, store, BOTH)
    found = [one(table, f"labels_{size}")["score"] for size in (16, 32, 64, 128)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(one(table, "oracle")["score"], abs=0.005)
    assert one(table, "random")["score"] < found[0] < found[-1]
    assert one(table, "labels_128")["picked_layer"] == 2


def test_labels_of_equal_layers_are_worth_nothing() -> None:
    # scored on all 40 items, the 16 it was chosen on included, the choice would seem to gain 6 points
    scores, store = labelled(40, 0.5, tasks="abcdefghijklmnopqrst")
    table = layer_selection(metric_rows(np.arange(5.0)), scores, store, BOTH, corpora=["corpus"])
    assert one(table, "labels_16")["score"] == pytest.approx(one(table, "random")["score"], abs=0.02)


def test_labels_need_twice_as_many_items_and_their_own_protocol() -> None:
    scores, store = labelled(100, 0.8)
    metrics, _ = small()
    table = layer_selection(metrics, scores, store, BOTH)
    assert one(table, "labels_32")["undefined"] == ""
    assert one(table, "labels_64")["undefined"] == "128 items with outcomes in 0 of 2 tasks, 75% needed"
    table = layer_selection(metrics, scores.assign(protocol="standardised"), store, BOTH)
    row = table[(table["selector"] == "labels_16") & (table["protocol"] == "standardised")].iloc[0]
    assert "in 0 of 2 tasks" in row["undefined"]


def test_layer_counts_must_agree() -> None:
    metrics, _ = small()
    with pytest.raises(FileError, match="4 layers in its metrics and 5"):
        layer_selection(metrics, score_rows(np.arange(6.0), "a"), None, BOTH)


def test_no_scores_give_an_empty_table() -> None:
    metrics, scores = small()
    table = layer_selection(metrics, scores.iloc[:0], None, BOTH)
    assert table.empty
    assert tuple(table.columns) == COLUMNS


def test_every_registered_table_is_built_from_the_same_arguments() -> None:
    metrics, scores = small()
    for name in TABLES:
        table = load_table(name).build(metrics, scores, {}, seed=0, directions=BOTH, corpora=[])
        assert not table.empty, name
