"""Long tables: keys, order, and every contradiction between files."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.records import write_record
from layerwise.tables.collect import metrics_table, missing_table, scores_table, without_outcomes
from layerwise.tables.frames import METRIC_COLUMNS, SCORE_COLUMNS, read_long
from table_inputs import metric_record, task_record

Write = Callable[..., Path]


def test_metric_rows_carry_the_record(write: Write) -> None:
    record = metric_record([0.1, None, 0.3], task="t", saturated=True, null_broken_pairs=0.2)
    table = metrics_table([write(record)])
    assert tuple(table.columns) == METRIC_COLUMNS
    assert list(table["layer"]) == [0, 1, 2]
    assert list(table["depth"]) == [0, 0.5, 1]
    assert list(table["undefined"]) == ["", "all vectors are zero", ""]
    assert np.isnan(table["value"][1])
    first = table.iloc[0]
    assert first["parameters"] == '{"a":2,"b":1}'
    assert (first["task"], first["readout"], first["recipe"], first["tap"]) == ("t", "mean", "", "residual")
    assert (first["n"], first["n_excluded"], first["se"], first["split_half"]) == (50, 0, 0.01, 0.9)
    assert (first["null_value"], first["null_normalized"], first["null_broken_pairs"]) == (1.0, 0.5, 0.2)
    assert first["saturated"]


def test_a_recipe_is_not_a_readout(write: Write) -> None:
    table = metrics_table([write(metric_record([1, 2], recipe="raw"))])
    assert set(table["recipe"]) == {"raw"}
    assert set(table["readout"]) == {""}
    both = metric_record([1, 2])
    both["records"][0]["recipe"] = "raw"
    with pytest.raises(FileError, match="either a readout or a recipe"):
        metrics_table([write(both)])


def test_shuffled_files_give_identical_tables(write: Write) -> None:
    rng = np.random.default_rng(0)
    metrics = [write(metric_record(rng.random(5), dataset=f"d{i}", metric=m)) for i in range(4) for m in "abc"]
    tasks = [write(task_record({"mean": rng.random(5), "last": rng.random(5)}, task=f"t{i}")) for i in range(4)]
    wanted = metrics_table(metrics), scores_table(tasks)
    for paths in (metrics, tasks):
        random.Random(1).shuffle(paths)
    pd.testing.assert_frame_equal(metrics_table(metrics), wanted[0])
    pd.testing.assert_frame_equal(scores_table(tasks), wanted[1])


def test_layers_are_ordered_by_number_not_by_place(write: Write) -> None:
    record = metric_record(np.arange(12.0))
    record["records"][0]["layers"].reverse()
    table = metrics_table([write(record)])
    assert list(table["layer"]) == list(range(12))
    assert list(table["value"]) == list(range(12))


def test_two_records_for_one_cell_are_refused(write: Write) -> None:
    record = metric_record([1, 2, 3])
    record["records"] *= 2
    with pytest.raises(FileError, match=r"two records for one cell \(model m, dataset d, metric dime, .*layer 0\)"):
        metrics_table([write(record)])
    one, two = write(metric_record([1, 2, 3])), write(metric_record([4, 5, 6]), folder="copy-of-")
    with pytest.raises(FileError, match=r"copy-of-dime.json and .*dime.json"):
        metrics_table([one, two])
    with pytest.raises(FileError, match="two records for one cell"):
        scores_table([write(task_record({"mean": [1, 2]})), write(task_record({"mean": [1, 2]}), folder="copy-of-")])


def _drop(record: dict[str, Any], layer: int) -> dict[str, Any]:
    layers = record["records"][0]["layers"]
    record["records"][0]["layers"] = [cell for cell in layers if cell["layer"] != layer]
    return record


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (_drop(metric_record([1, 2, 3, 4]), 1), r"has layers 0, 2-3, 0-3 expected"),
        (_drop(metric_record([1, 2, 3, 4]), 3), r"has layers 0-2, 0-3 expected"),
        (metric_record([1, 2, 3, 4], n_layers=2), r"has layers 0-3, 0-2 expected"),
        (metric_record([1, 2, 3], layers=[]), r"has layers none"),
        (metric_record([1, 2, 3], layers=None), r"layers is not a list of objects"),
        (metric_record([1, 2, 3], layers=[{"layer": 0}]), r"lacks depth"),
        (metric_record([1, 2, 3], records={}), r"records is not a list"),
        (metric_record([1, 2, 3], parameters="alpha"), r"."),
    ],
)
def test_wrong_layers_are_refused(write: Write, record: dict[str, Any], message: str) -> None:
    if message == ".":
        assert set(metrics_table([write(record)])["parameters"]) == {'"alpha"'}
        return
    with pytest.raises(FileError, match=message):
        metrics_table([write(record)])


def test_a_missing_last_layer_of_a_task_shows_in_the_depths(write: Write) -> None:
    record = task_record({"mean": [1, 2, 3, 4]})
    record["readouts"]["mean"].pop()
    with pytest.raises(FileError, match=r"layer 1 of 2 depth 0.33.*missing or misnumbered"):
        scores_table([write(record)])


def test_two_layer_counts_of_one_model_are_refused(write: Write) -> None:
    paths = [write(metric_record([1, 2, 3])), write(metric_record([1, 2, 3, 4], dataset="e"))]
    with pytest.raises(FileError, match=r"model 'm' has 2 layers in .* and 3 in"):
        metrics_table(paths)
    assert len(metrics_table([paths[0], write(metric_record([1, 2, 3, 4], dataset="e", model="n"))])) == 7


@pytest.mark.parametrize(
    "changes",
    [
        {"data_revision": "2"},
        {"dataset_digest": "xyz"},
        {"type": "clustering"},
        {"provenance": {"versions": {"mteb": "2.1"}}},
    ],
)
def test_two_versions_of_one_task_stop_the_table(write: Write, changes: dict[str, Any]) -> None:
    first = task_record({"mean": [1, 2]}, provenance={"versions": {"mteb": "2.0"}})
    paths = [
        write(first),
        write(task_record({"mean": [1, 2]}, model="n") | {"provenance": first["provenance"]} | changes),
    ]
    with pytest.raises(FileError, match=r"task 't' has two values of .* in .*m/t.json and .* in .*n/t.json"):
        scores_table(paths)


def test_score_rows(write: Write) -> None:
    record = task_record({"mean": [0.1, 0.2]}, type="classification")
    record["readouts"]["mean"][1] |= {"scores": {"mteb": 0.2, "standardised": None}, "n_not_converged": 3}
    record["items"] = {"protocol": "mteb", "kind": "correct", "gold": [0, 1, 0], "readouts": {}}
    baselines = {"task": "t", "type": "classification", "main_score": "accuracy"}
    baselines["baselines"] = [{"baseline": "tfidf", "protocol": "mteb", "score": 0.5}]
    table = scores_table([write(record)], [write(baselines)])
    assert tuple(table.columns) == SCORE_COLUMNS
    rows = table.set_index(["protocol", "readout", "layer"]).sort_index()
    assert rows.loc[("mteb", "mean", 1), "n_not_converged"] == 3
    assert np.isnan(rows.loc[("standardised", "mean", 1), "score"])
    assert pd.isna(rows.loc[("standardised", "mean", 1), "n_not_converged"])
    assert rows.loc[("mteb", "mean", 0), "n_items"] == 3
    base = table[table["baseline"] == "tfidf"].iloc[0]
    assert (base["model"], base["readout"], base["score"]) == ("", "", 0.5)
    assert pd.isna(base["layer"])


def test_main_score_and_mteb_score_must_agree(write: Write) -> None:
    record = task_record({"mean": [0.1, 0.2]})
    record["readouts"]["mean"][1]["main_score"] = 0.3
    with pytest.raises(FileError, match=r"main score 0.3 but mteb score 0.2"):
        scores_table([write(record)])


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1}', '{"schema_version": 9}', '{"model": NaN}', "[1]"])
def test_damaged_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    for read in (metrics_table, scores_table):
        with pytest.raises(FileError, match=r"x\.json"):
            read([path])


@pytest.mark.parametrize("readouts", [[], {"mean": {"0": 1}}, {"mean": [{"layer": "0", "depth": 0, "main_score": 1}]}, 3])
def test_misbuilt_files_are_refused(write: Write, readouts: Any) -> None:
    with pytest.raises(FileError, match=r"t\.json"):
        scores_table([write(task_record({}) | {"readouts": readouts})])


def test_no_files_give_empty_tables() -> None:
    metrics, scores = metrics_table([]), scores_table([])
    assert (len(metrics), len(scores)) == (0, 0)
    assert tuple(metrics.columns) == METRIC_COLUMNS
    assert missing_table(metrics, scores).empty


def test_tables_survive_csv(write: Write, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    record = metric_record([*rng.random(7), None], saturated=True, model="1e3", dataset="NA")
    metrics = metrics_table([write(record)])
    scores = scores_table([write(task_record({"nan": rng.random(8)}, model="1e3", task="007"))])
    paths = []
    for name, table in (("metrics", metrics), ("scores", scores)):
        paths.append(tmp_path / f"{name}.csv")
        table.to_csv(paths[-1], index=False)
    for again, table in zip(read_long(*paths), (metrics, scores), strict=True):
        pd.testing.assert_frame_equal(again, table, check_exact=True)
    paths[0].write_text("model,layer\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"metrics.csv lacks the columns dataset, task"):
        read_long(*paths)
    paths[0].unlink()
    with pytest.raises(FileError, match=r"metrics.csv is not a readable table"):
        read_long(*paths)


def test_missing_cells_stay_missing_and_are_listed(write: Write) -> None:
    metrics = metrics_table([write(metric_record([None, 1, None, None, 2]))])
    record = task_record({"mean": [0.1, 0.2, 0.3, 0.4, 0.5]})
    record["readouts"]["mean"][2] |= {"main_score": None, "scores": {"mteb": None}}
    scores = scores_table([write(record)])
    expected = [
        {"stage": "metrics", "model": "m", "dataset": "d", "task": "", "metric": "dime", "reason": ""},
        {"stage": "metrics", "model": "m", "dataset": "d", "task": "", "metric": "lidar", "reason": ""},
        {"stage": "metrics", "model": "m", "dataset": "lee", "task": "", "metric": "dime", "reason": "one view"},
        {"stage": "tasks", "model": "m", "dataset": "", "task": "t", "metric": "", "reason": ""},
        {"stage": "tasks", "model": "n", "dataset": "", "task": "t", "metric": "", "reason": ""},
    ]
    table = missing_table(metrics, scores, expected)
    found = set(zip(table["model"], table["dataset"], table["metric"], table["task"], table["layers"], strict=True))
    assert found == {
        ("m", "d", "lidar", "", ""),
        ("m", "lee", "dime", "", ""),
        ("n", "", "", "t", ""),
        ("m", "d", "dime", "", "0, 2-3"),
        ("m", "", "", "t", "2"),
    }
    reasons = dict(zip(zip(table["dataset"], table["metric"], strict=True), table["reason"], strict=True))
    assert reasons["lee", "dime"] == "one view"
    assert "not there" in reasons["d", "lidar"]
    assert reasons["d", "dime"] == "all vectors are zero"
    with pytest.raises(ValueError, match="'figures'"):
        missing_table(metrics, scores, [{"stage": "figures"}])


def benchmark_record(path: Path, task: str, revision: str, **changes: Any) -> Path:
    layers = [{"layer": i, "depth": float(i), "main_score": 0.5} for i in range(2)]
    facts = {"local": False, "task": "STS12", "revision": revision}
    record = {"model": "m", "task": task, "type": "sts", "main_score": "cosine_spearman", "readouts": {"mean": layers}}
    write_record(path, record | {"benchmark": facts, "items": None, "items_absent": "no items"} | changes)
    return path


def test_two_revisions_of_one_task_of_mteb_are_refused(tmp_path: Path) -> None:
    first = benchmark_record(tmp_path / "a.json", "a", "r1")
    second = benchmark_record(tmp_path / "b.json", "b", "r2")
    with pytest.raises(
        FileError, match=r"mteb's STS12 is scored at two revisions: r1 as task 'a' .* r2 as task 'b' in .*; keep"
    ):
        scores_table([first, second])
    assert len(scores_table([first, benchmark_record(tmp_path / "c.json", "c", "r1")])) == 4


def test_a_task_without_outcomes_says_why_it_has_no_gain(tmp_path: Path) -> None:
    gaps = without_outcomes([benchmark_record(tmp_path / "a.json", "a", "r1")])
    assert gaps == [{"model": "m", "task": "a", "reason": "no cross-fitted gain: no items"}]
    nothing = metrics_table([]), scores_table([])
    rows = missing_table(*nothing, gaps=gaps).to_dict("records")
    assert [(row["stage"], row["task"], row["reason"]) for row in rows] == [("tasks", "a", "no cross-fitted gain: no items")]
