"""The study's numbers from the study's own curves: our statistics mean the same thing."""

import numpy as np
import pandas as pd
import pytest
from layerwise.tables.correlation import correlations
from layerwise.tables.selection import layer_selection

Tables = tuple[pd.DataFrame, pd.DataFrame]

# within-task, other-task Spearman and the task-permutation p-value
TASK_SPECIFIC = {
    "dime": (-0.50, -0.51, 0.93),
    "infonce": (0.50, 0.51, 0.99),
    "dataset_entropy": (-0.51, -0.52, 0.96),
    "lidar": (-0.48, -0.48, 0.22),
    "curvature": (0.54, 0.54, 0.66),
    "prompt_entropy": (-0.45, -0.45, 0.34),
}

# dCor, Spearman, Kendall of the mean curves (PAPER.md 3.3)
MEAN_CURVES = {
    "prompt_entropy": (0.815, -0.57, -0.39, 24),
    "dataset_entropy": (0.808, -0.64, -0.43, 29),
    "curvature": (0.865, 0.69, 0.49, 29),
    "infonce": (0.843, 0.62, 0.42, 29),
    "lidar": (0.756, -0.59, -0.37, 29),
    "dime": (0.862, -0.59, -0.39, 29),
}


@pytest.fixture(scope="module")
def table(published: Tables) -> pd.DataFrame:
    rows = correlations(*published)
    rows = rows[(rows["protocol"] == "mteb") & (rows["layers"] == "all") & (rows["metric_text"] == "own")]
    return rows.set_index("metric")


@pytest.mark.parametrize("metric", TASK_SPECIFIC)
def test_task_specific_correlations(table: pd.DataFrame, metric: str) -> None:
    within, other, p = TASK_SPECIFIC[metric]
    row = table.loc[metric]
    assert row["within_task"] == pytest.approx(within, abs=0.0065)
    assert row["other_task"] == pytest.approx(other, abs=0.0065)
    assert row["p_task"] == pytest.approx(p, abs=0.04)  # 2,000 relabellings: standard error .011 at .34


@pytest.mark.parametrize("metric", MEAN_CURVES)
def test_correlations_of_mean_curves(table: pd.DataFrame, metric: str) -> None:
    dcor, spearman, kendall, n_tasks = MEAN_CURVES[metric]
    row = table.loc[metric]
    assert row["n_tasks"] == n_tasks
    assert row["dcor"] == pytest.approx(dcor, abs=0.0006)
    assert row["spearman"] == pytest.approx(spearman, abs=0.0051)
    assert row["kendall"] == pytest.approx(kendall, abs=0.0051)
    assert row["low"] < row["spearman"] < row["high"]


@pytest.mark.parametrize(("metric", "expected"), [("dime", 0.38), ("infonce", -0.06), ("curvature", -0.13)])
def test_depth_explains_the_relation(table: pd.DataFrame, metric: str, expected: float) -> None:
    assert table.loc[metric, "partial_spearman"] == pytest.approx(expected, abs=0.0051)


def test_label_free_selection_is_worth_what_the_middle_layer_is(published: Tables) -> None:
    metrics, scores = published
    directions = {name: {"released": {"theory": "max", "study": "min"}} for name in ("dime", "infonce", "dataset_entropy")}
    table = layer_selection(metrics, scores, None, directions)
    table = table[table["protocol"] == "mteb"].set_index("selector")
    expected = {"min_dime": 48.5, "min_infonce": 46.2, "min_dataset_entropy": 48.1, "max_infonce": 48.1, "last": 45.0}
    expected |= {"random": 47.3, "middle": 48.2, "oracle": 52.4, "other_tasks": 51.55}
    for selector, score in expected.items():
        assert 100 * table.loc[selector, "score"] == pytest.approx(score, abs=0.051), selector
        assert table.loc[selector, "n_tasks"] == 29
    assert table.loc["middle", "picked_layer"] == 12
    assert table.loc["oracle", "regret"] == 0
    gap = table.loc["min_dime", "score"] - table.loc["last", "score"]
    assert table.loc["min_dime", "gain_over_last"] == pytest.approx(gap)
    assert table.loc["min_dime", "gain_low"] < gap < table.loc["min_dime", "gain_high"]


def test_a_metric_on_fewer_tasks_narrows_all_selectors(published: Tables) -> None:
    metrics, scores = published
    directions = {name: {"released": {"theory": None, "study": "min"}} for name in ("dime", "prompt_entropy")}
    table = layer_selection(metrics, scores, None, directions)
    table = table[table["protocol"] == "mteb"]
    defined = table[table["undefined"] == ""].set_index("selector")
    assert set(defined["n_tasks"]) == {24}
    assert 100 * defined.loc["min_prompt_entropy", "score"] == pytest.approx(44.4, abs=0.051)
    assert 100 * defined.loc["last", "score"] == pytest.approx(41.4, abs=0.051)
    assert np.isnan(table.loc[table["selector"] == "labels_16", "score"]).all()
