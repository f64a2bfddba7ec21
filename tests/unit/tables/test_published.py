"""The study's published numbers come out of its files, in both forms."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import ConfigError, FileError
from layerwise.tables.published import COMPARISON, TABLES, compare, published_tables
from layerwise.tables.published_files import Published, read_published
from published_inputs import published_folder, small_metrics, small_scores, write_csv, write_tree
from table_inputs import score_rows

Tables = dict[str, pd.DataFrame]

# Table 2 of the study, and on the same 29 tasks what it does not show
PYTHIA_410M = {
    "min-dime": 48.5,
    "min-infonce": 46.2,
    "min-dataset_entropy": 48.1,
    "last": 45.0,
    "random": 47.3,
    "middle": 48.2,
    "oracle": 52.4,
    "other_tasks": 51.55,
}
# n_tasks; Spearman of the mean curves, and with depth and depth^2 partialled out; within-task, other-task, its p-value
CORRELATIONS = {
    "dime": (29, -0.59, 0.38, -0.50, -0.51, 0.93),
    "infonce": (29, 0.62, -0.06, 0.50, 0.51, 0.99),
    "dataset_entropy": (29, -0.64, None, -0.51, -0.52, 0.96),
    "lidar": (29, -0.59, None, -0.48, -0.48, 0.22),
    "curvature": (29, 0.69, -0.13, 0.54, 0.54, 0.66),
    "prompt_entropy": (24, -0.57, None, -0.45, -0.45, 0.34),
}

SCORES = {"STS12": [0.1, 0.5, 0.4, 0.2, 0.3], "SICK-R": [0.2, 0.1, 0.6, 0.3, 0.4]}
METRIC = {"STS12": [3.0, 1.0, 2.0, 5.0, 4.0], "SICK-R": [2.0, 3.0, 4.0, 1.0, 5.0]}


@pytest.fixture(scope="module")
def study() -> Published:
    return read_published(published_folder())


@pytest.fixture(scope="module")
def tables(study: Published) -> Tables:
    return published_tables(study)[0]


def of(table: pd.DataFrame, size: str = "410m", revision: str = "main") -> pd.DataFrame:
    return table[(table["size"] == size) & (table["revision"] == revision)]


def test_best_and_last_layer_of_table_2(tables: Tables) -> None:
    row = of(tables["published_summary"]).iloc[0]
    assert (row["n_tasks"], row["best_layer"]) == (32, 17)
    assert (round(row["best"], 1), round(row["last"], 1)) == (52.0, 45.5)
    assert list(tables["published_summary"]["revision"]) == ["main", "step1", "step4000", "step32000", "main"]
    small = of(tables["published_summary"], "14m").iloc[0]
    assert (small["best_layer"], round(small["best"], 1), round(small["last"], 1)) == (0, 38.2, 33.0)


def test_selection_of_table_2_and_what_it_hides(tables: Tables) -> None:
    rows = of(tables["published_selection"]).set_index("selector")
    assert set(rows.index) == set(PYTHIA_410M)
    assert set(rows["n_tasks"]) == {29}
    for selector, score in PYTHIA_410M.items():
        assert rows.loc[selector, "score"] == pytest.approx(score, abs=0.05), selector


@pytest.mark.parametrize("metric", CORRELATIONS)
def test_correlations(tables: Tables, metric: str) -> None:
    n_tasks, spearman, partial, within, other, p = CORRELATIONS[metric]
    row = of(tables["published_correlations"]).set_index("metric").loc[metric]
    assert row["n_tasks"] == n_tasks
    assert row["spearman"] == pytest.approx(spearman, abs=0.0051)
    assert row["within_task"] == pytest.approx(within, abs=0.0065)
    assert row["other_task"] == pytest.approx(other, abs=0.0065)
    assert row["p_task"] == pytest.approx(p, abs=0.04)
    if partial is not None:
        assert row["partial_spearman"] == pytest.approx(partial, abs=0.0051)


def test_mean_curve_over_layers(tables: Tables) -> None:
    rows = of(tables["published_layers"])
    assert list(rows["layer"]) == [*range(25)]
    assert rows["depth"].iloc[[0, 12, 24]].tolist() == [0, 0.5, 1]
    assert rows["score"].iloc[[0, 12, 17, 24]].round(1).tolist() == [43.2, 48.9, 52.0, 45.5]


def test_the_released_tree_gives_the_same_tables(study: Published, tables: Tables, tmp_path: Path) -> None:
    pick = [frame[(frame["size"] == "14m") | (frame["revision"] == "main")] for frame in (study.scores, study.metrics)]
    write_tree(tmp_path / "experiments" / "results", *pick)
    found, notes = published_tables(read_published(tmp_path))
    for name in TABLES:
        wanted = tables[name][tables[name]["revision"] == "main"].reset_index(drop=True)
        pd.testing.assert_frame_equal(found[name], wanted, check_dtype=False)
    assert notes == []


def test_a_missing_value_is_counted_and_said(study: Published) -> None:
    _, notes = published_tables(study)
    assert notes == [
        "Pythia/410m/step32000: 1 metric values are missing, so 1 of 169 metric curves are left out."
    ]  # the study's own file lacks it


def small(folder: Path, form: str) -> Path:
    scores = small_scores(SCORES)
    metrics = pd.concat([small_metrics(METRIC, name) for name in ("dime", "infonce", "entropy_dataset")])
    return (write_csv if form == "csv" else write_tree)(folder, scores, metrics)


@pytest.mark.parametrize("form", ["csv", "tree"])
def test_every_number_by_hand(tmp_path: Path, form: str) -> None:
    tables, notes = published_tables(read_published(small(tmp_path, form)))
    assert notes == []
    assert {name: tuple(table.columns) for name, table in tables.items()} == TABLES
    row = tables["published_summary"].iloc[0].to_dict()
    wanted = {"family": "Pythia", "size": "410m", "revision": "main", "n_tasks": 2, "best_layer": 2, "best": 50, "last": 35}
    assert row == wanted
    rows = tables["published_selection"].set_index("selector")
    by_hand = {"last": 35, "middle": 50, "random": 31, "oracle": 55, "other_tasks": 25}
    by_hand |= {f"min-{metric}": 40 for metric in ("dime", "infonce", "dataset_entropy")}
    assert rows["score"].to_dict() == pytest.approx(by_hand)
    assert set(rows["n_tasks"]) == {2}
    assert tables["published_layers"]["score"].tolist() == pytest.approx([15, 30, 50, 25, 35])
    within = tables["published_correlations"].set_index("metric").loc["dime"]
    assert within["n_tasks"] == 2
    assert np.isnan(within["p_task"])  # 2 tasks


def test_the_first_subset_and_the_test_split_count(tmp_path: Path) -> None:
    first = small_scores(SCORES)
    second = first.assign(subset_order=1, subset="other", main_score=0.99)
    train = small_metrics({name: curve[::-1] for name, curve in METRIC.items()}).assign(split="train")
    metrics = pd.concat([small_metrics(METRIC), train])
    wanted, _ = published_tables(read_published(write_csv(tmp_path / "a", first, small_metrics(METRIC))))
    for form, writer in (("csv", write_csv), ("tree", write_tree)):
        found, _ = published_tables(read_published(writer(tmp_path / form, pd.concat([second, first]), metrics)))
        for name in TABLES:
            pd.testing.assert_frame_equal(found[name], wanted[name], check_dtype=False)


def test_tasks_without_every_layer_are_left_out(tmp_path: Path) -> None:
    curves = {task: [0.1, 0.2, 0.3, 0.2] for task in ("STS12", "STS13", "STS14", "STS15")}
    scores = small_scores(curves)
    gap = (scores["task"] == "STS12") & (scores["layer"] == 1)
    tables, notes = published_tables(read_published(write_csv(tmp_path, scores[~gap])))
    assert tables["published_summary"].iloc[0][["n_tasks", "best_layer"]].tolist() == [3, 2]
    assert notes[0] == "There are no metric values, so nothing is selected by a metric."
    assert notes[1] == "Pythia/410m/main: 1 of 16 scores are missing, at layers 1; 1 of 4 tasks are left out."
    assert set(tables["published_selection"]["selector"]) == {"last", "middle", "random", "oracle", "other_tasks"}


def test_layers_that_most_tasks_lack_are_left_out_and_keep_their_numbers(tmp_path: Path) -> None:
    scores = small_scores({task: [0.1, 0.2, 0.2, 0.9, 0.4, 0.3, 0.2] for task in ("STS12", "SICK-R")})
    metrics = small_metrics({task: [1.0, 2, 3, 0, 4, 5, 6] for task in ("STS12", "SICK-R")})
    gap = (scores["layer"] == 3) & (scores["task"] == "STS12")
    tables, notes = published_tables(read_published(write_csv(tmp_path, scores[~gap], metrics)))
    row = tables["published_summary"].iloc[0]
    assert (row["best_layer"], row["best"], row["last"], row["n_tasks"]) == (4, 40, 20, 2)
    assert tables["published_layers"]["layer"].tolist() == [0, 1, 2, 4, 5, 6]
    assert tables["published_layers"]["depth"].iloc[3] == pytest.approx(4 / 6)
    selection = tables["published_selection"].set_index("selector")["score"]
    assert "middle" not in selection  # layer 3 is not there
    assert selection["min-dime"] == 10
    assert tables["published_correlations"].empty  # depth has a hole
    assert notes == ["Pythia/410m/main: 1 of 14 scores are missing, at layers 3; layers 3 are left out."]


def test_a_last_layer_without_scores_is_no_last_layer(tmp_path: Path) -> None:
    metrics = small_metrics({task: [*curve, 9.0] for task, curve in METRIC.items()})
    tables, notes = published_tables(read_published(write_csv(tmp_path, small_scores(SCORES), metrics)))
    assert np.isnan(tables["published_summary"].iloc[0]["last"])
    assert "last" not in set(tables["published_selection"]["selector"])
    assert "layers 5 are left out" in notes[0]


def test_comparison_with_our_scores() -> None:
    published = Published(small_scores(SCORES), small_metrics(METRIC))
    ours = pd.concat([score_rows([0.2] * 5, "STS12"), score_rows([0.5] * 5, "STS12", readout="mean_normed")])
    ours = pd.concat([ours, score_rows([0.3] * 5, "other"), score_rows([0.4] * 5, "STS12", model="n")])
    table, notes = compare(published, ours, {"m": "Pythia/410m/main"})
    assert tuple(table.columns) == COMPARISON
    assert (len(table), notes) == (10, [])
    row = table[(table["readout"] == "mean") & (table["layer"] == 1)].iloc[0]
    assert row.to_dict() == dict(zip(COMPARISON, ("m", "STS12", 1, 50, 20, -30, "mean", "mteb"), strict=True))
    assert len(compare(published, ours, {})[0]) == 0
    nothing, notes = compare(published, ours[ours["task"] == "other"], {"m": "Pythia/410m/main"})
    assert (len(nothing), notes) == (0, ["m and Pythia/410m/main have no task in common."])


def test_comparison_refuses_what_is_not_the_same_model() -> None:
    published = Published(small_scores(SCORES), small_metrics(METRIC))
    ours = score_rows([0.2] * 6, "STS12")
    with pytest.raises(FileError, match="m has 5 layers and Pythia/410m/main has 4"):
        compare(published, ours, {"m": "Pythia/410m/main"})
    with pytest.raises(ConfigError, match="no scores of 'Pythia/1b/main'; write one of Pythia/410m/main"):
        compare(published, ours, {"m": "Pythia/1b/main"})
    with pytest.raises(ConfigError, match="no scores of 'x'; write one of m"):
        compare(published, ours, {"x": "Pythia/410m/main"})
