"""layer_summary: every number from curves small enough to check by hand, and which tasks a mean may use."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from layerwise.tables.closing import closing_table
from layerwise.tables.curves import metric_curves, primary_protocol
from layerwise.tables.outcomes import TaskItems
from layerwise.tables.summary import COLUMNS, layer_summary
from table_inputs import canonical, metric_rows, score_rows


def one(frame: pd.DataFrame, **keys: object) -> pd.Series:
    for key, value in keys.items():
        frame = frame[frame[key] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


@pytest.fixture
def scores() -> pd.DataFrame:
    return pd.concat(
        [
            score_rows([0.1, 0.5, 0.4, 0.2, 0.3], "a"),
            score_rows([0.2, 0.1, 0.6, 0.3, 0.7], "b"),
            score_rows([0.9, 0.1, 0.1, 0.1, 0.1], "only-mean"),
            score_rows([0.1, 0.2, 0.3, 0.2, 0.1], "a", readout="last"),
            score_rows([0.1, 0.2, 0.3, 0.2, 0.1], "b", readout="last"),
        ],
        ignore_index=True,
    )


def test_rows_of_a_task(scores: pd.DataFrame) -> None:
    table = layer_summary(scores)
    assert tuple(table.columns) == COLUMNS
    row = one(table, task="a", readout="mean")
    assert (row["last"], row["best"], row["best_layer"], row["best_depth"]) == (0.3, 0.5, 1, 0.25)
    assert (row["oracle"], row["tasks_won_by_last"], row["n_layers"], row["n_tasks"]) == (0.5, 0, 4, 1)
    assert row["gain"] == pytest.approx(0.2)
    assert np.isnan(row["gain_cross_fitted"])
    assert one(table, task="b", readout="mean")["tasks_won_by_last"] == 1


def test_the_mean_uses_the_tasks_that_all_readouts_share(scores: pd.DataFrame) -> None:
    row = one(layer_summary(scores), task="all", readout="mean", protocol="primary")
    assert row["n_tasks"] == 2  # "only-mean" would have made layer 0 the best
    assert (row["best_layer"], row["best"], row["last"]) == (2, pytest.approx(0.5), pytest.approx(0.5))
    assert row["oracle"] == pytest.approx(0.6)
    assert row["tasks_won_by_last"] == 1
    assert row["type"] == "sts"


def test_a_gap_takes_the_task_from_everybody(scores: pd.DataFrame) -> None:
    scores.loc[(scores["task"] == "b") & (scores["readout"] == "last") & (scores["layer"] == 3), "score"] = np.nan
    table = layer_summary(scores)
    assert set(table.loc[table["task"] == "all", "n_tasks"]) == {1}
    assert table[(table["task"] == "b") & (table["readout"] == "last")].empty


def test_a_mean_that_leaves_tasks_out_says_so(scores: pd.DataFrame) -> None:
    table = layer_summary(scores)
    few = "fewer than 8 layers"
    note = f"{few}; left out, not scored by all that are compared: only-mean"
    assert one(table, task="all", readout="mean", protocol="primary")["flag"] == note
    assert one(table, task="all", readout="last", protocol="primary")["flag"] == few
    assert one(table, task="a", readout="last")["flag"] == few
    assert set(layer_summary(score_rows(np.arange(9.0), "a"))["flag"]) == {""}


def test_no_mean_over_unequal_task_sets() -> None:
    # m and n share b, n and o share c, so all are compared; but no task is common to the three
    pairs = {"m": "ab", "n": "bc", "o": "cd"}
    frames = [score_rows([0.1, 0.5, 0.3], task, model=model) for model, tasks in pairs.items() for task in tasks]
    table = layer_summary(pd.concat(frames))
    whole = table[(table["task"] == "all") & (table["protocol"] == "primary")]
    assert list(whole["n_tasks"]) == [0, 0, 0]
    assert whole[["best", "last", "oracle", "gain", "best_layer"]].isna().all(axis=None)
    assert whole["flag"].iloc[0].endswith("left out, not scored by all that are compared: a, b")
    assert "all (no common task)" in closing_table(table)


def test_models_that_share_no_task_do_not_empty_each_others_mean(scores: pd.DataFrame) -> None:
    images = score_rows([0.1, 0.2, 0.3], "cifar", model="vit", type="image_classification")
    table = layer_summary(pd.concat([scores, images], ignore_index=True))
    assert one(table, model="vit", task="all", protocol="primary")["n_tasks"] == 1
    assert one(table, model="m", task="all", readout="mean", protocol="primary")["n_tasks"] == 2


def test_order_of_rows_does_not_matter(scores: pd.DataFrame) -> None:
    shuffled = scores.sample(frac=1, random_state=3)
    assert canonical(layer_summary(shuffled)) == canonical(layer_summary(scores))


def test_primary_protocols() -> None:
    assert primary_protocol(["mteb", "standardised"]) == "standardised"
    assert primary_protocol(["mteb", "other"]) == "mteb"
    assert primary_protocol(["linear", "knn"]) == "knn"


def test_primary_takes_each_task_at_its_own_protocol() -> None:
    kind = {"type": "classification"}
    frame = pd.concat(
        [
            score_rows([0.1, 0.2, 0.3], "c", **kind),
            score_rows([0.8, 0.7, 0.6], "c", protocol="standardised", **kind),
            score_rows([0.2, 0.3, 0.4], "s"),
        ]
    )
    table = layer_summary(frame)
    assert one(table, task="all", protocol="primary")["last"] == pytest.approx(0.5)
    assert one(table, task="all", protocol="mteb")["last"] == pytest.approx(0.35)
    assert one(table, task="all", protocol="standardised")["n_tasks"] == 1
    assert "primary" not in set(table.loc[table["task"] != "all", "protocol"])


def test_best_baseline_is_of_the_same_protocol_and_covers_the_tasks(scores: pd.DataFrame) -> None:
    base = [("a", "tfidf", 0.4, "mteb"), ("a", "majority", 0.2, "mteb"), ("b", "majority", 0.5, "mteb")]
    base += [("a", "text_length", 0.9, "standardised")]
    rows = [
        {"model": "", "task": t, "type": "sts", "protocol": p, "readout": "", "score": s, "baseline": b}
        for t, b, s, p in base
    ]
    table = layer_summary(pd.concat([scores, pd.DataFrame(rows)], ignore_index=True))
    assert tuple(one(table, task="a", readout="mean")[["best_baseline", "baseline_score"]]) == ("tfidf", 0.4)
    whole = one(table, task="all", readout="mean", protocol="primary")
    assert tuple(whole[["best_baseline", "baseline_score"]]) == ("majority", pytest.approx(0.35))
    assert one(table, task="only-mean")["best_baseline"] == ""


def items(best: int, n: int = 200, seed: int = 0) -> TaskItems:
    rng = np.random.default_rng(seed)
    rate = np.where(np.arange(5) == best, 0.9, 0.5)
    right = (rng.random((5, n)) < rate[:, None]).astype(float)
    return TaskItems("mteb", "accuracy", np.zeros(n), {"mean": right})


def curves_of(store: dict[tuple[str, str], TaskItems]) -> pd.DataFrame:
    return pd.concat(
        [score_rows(v.readouts["mean"].mean(axis=1), task, type="classification") for (_, task), v in store.items()]
    )


def test_gain_of_items() -> None:
    store = {("m", "a"): items(1), ("m", "b"): items(1, seed=1)}
    table = layer_summary(curves_of(store), store)
    for task in ("a", "b", "all"):
        row = one(table, task=task, protocol="mteb")
        assert row["gain_cross_fitted"] == pytest.approx(0.4, abs=0.08)
        assert row["gain_low"] < row["gain_cross_fitted"] < row["gain_high"]
        assert row["gain_unit"] == "items"
        assert row["n_items"] == (400 if task == "all" else 200)
    widths = table.set_index(["task", "protocol"]).eval("gain_high - gain_low")
    assert widths["all", "mteb"] < min(widths["a", "mteb"], widths["b", "mteb"])


def test_outcomes_of_another_protocol_give_no_gain() -> None:
    store = {("m", "a"): items(1)}
    frame = curves_of(store)
    frame = pd.concat([frame, frame.assign(protocol="standardised")])
    table = layer_summary(frame, store)
    assert one(table, task="a", protocol="mteb")["gain_unit"] == "items"
    assert np.isnan(one(table, task="a", protocol="standardised")["gain_cross_fitted"])
    assert np.isnan(one(table, task="all", protocol="primary")["gain_cross_fitted"])  # primary is standardised here


def test_tasks_without_outcomes_are_cross_fitted_over_tasks() -> None:
    store = {("m", f"t{i}"): items(1, seed=i) for i in range(9)}
    frame = curves_of(store)
    del store["m", "t0"]
    row = one(layer_summary(frame, store), task="all", protocol="mteb")
    assert row["gain_unit"] == "tasks"
    assert row["gain_cross_fitted"] == pytest.approx(0.4, abs=0.08)
    few = frame[frame["task"].isin(["t0", "t1"])]
    assert one(layer_summary(few, store), task="all", protocol="mteb")["gain_unit"] == ""


def test_closing_table() -> None:
    store = {("m", "a"): items(1), ("m", "b"): items(1, seed=1)}
    frame = curves_of(store).replace({"model": {"m": "a-model-with-quite-a-long-name"}})
    store = {("a-model-with-quite-a-long-name", task): value for (_, task), value in store.items()}
    base = {"model": "", "task": "a", "type": "classification", "protocol": "mteb", "readout": "", "baseline": "tfidf"}
    frame = pd.concat([frame, pd.DataFrame([base | {"score": 0.555}])])
    text = closing_table(layer_summary(frame, store))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert "readout 'mean'" in lines[0]
    assert len(lines) == 6
    assert "1/4" in lines[3]
    assert "tfidf 55.5" in lines[3]
    assert "[+" in lines[3]
    assert "all (2 tasks)" in lines[5]
    again = pd.read_csv(StringIO(layer_summary(frame, store).to_csv(index=False)))
    assert closing_table(again) == text
    assert closing_table(layer_summary(frame), "mean").count("+") == 0


def test_a_task_without_the_headline_readout_is_shown_at_its_own() -> None:
    frames = [score_rows([0.1, 0.5, 0.3], "a", readout=readout) for readout in ("mean", "mean_normed")]
    probe = {"readout": "attention", "protocol": "attention_probe", "type": "attention_probe"}
    frames += [score_rows([0.1, 0.2, 0.9], "probe", **probe), score_rows([0.3, 0.2, 0.1], "probe", model="n", **probe)]
    text = closing_table(layer_summary(pd.concat(frames)), "mean_normed")
    lines = [line.split()[:2] for line in text.splitlines()[3:]]
    assert lines == [["m", "a"], ["m", "probe"], ["m", "all"], ["n", "probe"], ["n", "all"]]
    probes = [line.split()[1:6] for line in text.splitlines() if "probe" in line]
    assert probes == [["probe", "(attention)", "2/2", "90.0", "90.0"], ["probe", "(attention)", "0/2", "30.0", "10.0"]]


def test_the_closing_table_says_what_a_mean_leaves_out(scores: pd.DataFrame) -> None:
    lines = closing_table(layer_summary(scores), "mean").splitlines()
    assert lines[-1] == "m, all: left out, not scored by all that are compared: only-mean"
    assert lines[-2].startswith("m                    all (2 tasks)")


def test_empty_summary_is_still_a_table() -> None:
    empty = layer_summary(score_rows([0.1, 0.2], "a").iloc[:0])
    assert tuple(empty.columns) == COLUMNS
    assert empty.empty
    assert len(closing_table(empty).splitlines()) == 3


def test_metrics_of_one_task_on_several_datasets_use_the_sample() -> None:
    datasets = ("t", "t~sample~views", "t~sample")
    curves = metric_curves(pd.concat([metric_rows([k] * 3, "t", dataset=name) for k, name in enumerate(datasets)]))
    (found,) = curves.values()
    assert found.own.loc["t"].tolist() == [2, 2, 2]
