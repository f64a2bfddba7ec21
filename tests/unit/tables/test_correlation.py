"""Which curves are paired, over which tasks, and what the task-permutation test finds (its size: test_simulations)."""

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.tables.correlation import COLUMNS, correlations
from layerwise.tables.pair_statistics import task_permutation
from numpy.typing import NDArray
from scipy import stats
from table_inputs import canonical, metric_rows, score_rows, tables

Array = NDArray[np.float64]


def walks(rng: np.random.Generator, tasks: int, layers: int, profile: float = 1.0) -> Array:
    """Smooth curves: one depth profile for all tasks and a random walk of each task's own."""
    shared = np.cumsum(rng.standard_normal(layers))
    return profile * shared + np.cumsum(rng.standard_normal((tasks, layers)), axis=1)


def named(curves: Array, prefix: str = "t") -> dict[str, Array]:
    return {f"{prefix}{i}": curve for i, curve in enumerate(curves)}


def one(frame: pd.DataFrame, **keys: object) -> pd.Series:
    for key, value in keys.items():
        frame = frame[frame[key] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def test_task_permutation_finds_a_task_specific_relation() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(50):
        metric = walks(rng, 8, 25)
        found.append(task_permutation(metric, metric + walks(rng, 8, 25, profile=3), rng))
    assert np.mean([result["p_task"] <= 0.05 for result in found]) > 0.6
    assert np.mean([result["within_task"] - result["other_task"] for result in found]) > 0.1


def test_task_permutation_equals_a_loop() -> None:
    rng = np.random.default_rng(1)
    metric, score = rng.random((2, 5, 9))
    rho = np.array([[stats.spearmanr(m, s).statistic for s in score] for m in metric])
    result = task_permutation(metric, score, rng)
    assert result["within_task"] == pytest.approx(np.mean(np.diag(rho)))
    assert result["other_task"] == pytest.approx(np.mean(rho[~np.eye(5, dtype=bool)]))
    assert result["p_task"] * 120 == pytest.approx(round(result["p_task"] * 120))
    assert np.isnan(task_permutation(metric[:4], score[:4], rng)["p_task"])
    assert np.isnan(task_permutation(metric[:1], score[:1], rng)["other_task"])


def test_curves_are_means_over_the_common_tasks_only() -> None:
    rng = np.random.default_rng(2)
    metric, score = rng.random((2, 6, 10))
    frames = tables(named(metric[:5]), named(score))
    table = correlations(*frames)
    assert tuple(table.columns) == COLUMNS
    row = one(table, protocol="mteb", layers="all")
    assert (row["n_tasks"], row["n_layers"], row["pairing"], row["metric_text"]) == (5, 10, "matched", "own")
    wanted = stats.spearmanr(metric[:5].mean(axis=0), score[:5].mean(axis=0)).statistic
    assert row["spearman"] == pytest.approx(wanted)
    inner = one(table, protocol="mteb", layers="inner")
    wanted = stats.spearmanr(metric[:5, 1:-1].mean(axis=0), score[:5, 1:-1].mean(axis=0)).statistic
    assert (inner["n_layers"], inner["spearman"]) == (8, pytest.approx(wanted))
    assert row["flag"] == "no interval below 8 tasks"
    assert np.isnan(row["low"])
    assert 0 < row["p_task"] <= 1


def test_join_is_by_key_not_by_order() -> None:
    rng = np.random.default_rng(3)
    metrics, scores = tables(named(walks(rng, 9, 10)), named(walks(rng, 9, 10)))
    wanted = canonical(correlations(metrics, scores))
    shuffled = (frame.sample(frac=1, random_state=1) for frame in (metrics, scores))
    assert canonical(correlations(*shuffled)) == wanted


def test_adding_a_task_of_another_model_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    metrics, scores = tables(named(walks(rng, 9, 10)), named(walks(rng, 9, 10)))
    more = pd.concat([scores, score_rows(rng.random(7), "t0", model="n")], ignore_index=True)
    assert canonical(correlations(metrics, more)) == canonical(correlations(metrics, scores))


def test_readouts_pair_with_their_own_and_as_in_the_study() -> None:
    rng = np.random.default_rng(5)
    metrics = pd.concat(
        [metric_rows(rng.random(9), "t", readout=readout) for readout in ("mean", "mean_normed", "last")]
        + [metric_rows(rng.random(9), "t", readout="", recipe="raw", metric="curvature")]
    )
    scores = pd.concat([score_rows(rng.random(9), "t", readout=readout) for readout in ("mean", "mean_normed", "first")])
    table = correlations(metrics, scores)
    table = table[(table["protocol"] == "mteb") & (table["layers"] == "all")]
    names = ["metric", "metric_readout", "recipe", "score_readout", "pairing"]
    assert set(table[names].itertuples(index=False, name=None)) == {
        ("dime", "mean", "", "mean", "matched"),
        ("dime", "mean_normed", "", "mean_normed", "matched"),
        ("dime", "mean", "", "mean_normed", "study"),
        ("curvature", "", "raw", "mean", "recipe"),
        ("curvature", "", "raw", "mean_normed", "recipe"),
        ("curvature", "", "raw", "first", "recipe"),
    }


def test_a_corpus_serves_all_tasks_but_not_the_permutation() -> None:
    rng = np.random.default_rng(6)
    _, scores = tables({"t0": np.zeros(9)}, named(walks(rng, 9, 12)))
    curve = rng.random(12)
    metrics = pd.concat([metric_rows(curve), metric_rows(rng.random(12), dataset="lee")])
    table = correlations(metrics, scores)
    row = one(table, protocol="mteb", layers="all", metric_text="corpus")
    mean = scores.groupby("layer")["score"].mean().to_numpy()
    assert row["spearman"] == pytest.approx(stats.spearmanr(curve, mean).statistic)
    assert row["n_tasks"] == 9
    assert row["low"] <= row["spearman"] <= row["high"]
    assert np.isnan([row["within_task"], row["other_task"], row["p_task"]]).all()
    assert "one curve for all tasks" in row["flag"]
    assert set(table["metric_text"]) == {"corpus", "lee"}


def test_constant_and_undefined_curves_are_left_out_with_the_reason() -> None:
    rng = np.random.default_rng(7)
    metric, score = named(rng.random((6, 9))), named(rng.random((6, 9)))
    metric["t0"] = np.where(np.arange(9) == 0, np.nan, metric["t0"])
    metric["t1"] = np.ones(9)
    score["t2"] = np.full(9, np.nan)
    table = correlations(*tables(metric, score))
    row = one(table, protocol="mteb", layers="all")
    assert row["n_tasks"] == 3
    assert "3 of 6 tasks left out" in row["flag"]
    assert "the metric is undefined at some layer" in row["flag"]
    assert np.isfinite(row["spearman"])
    assert one(table, protocol="mteb", layers="inner")["n_tasks"] == 4  # t0 lacks only layer 0


@pytest.mark.parametrize(
    ("metric", "score", "reason"),
    [
        (np.ones(9), np.arange(9.0), "the metric is the same at every layer"),
        (np.full(9, np.nan), np.arange(9.0), "the metric is undefined at some layer"),
        (np.arange(9.0), np.full(9, 0.25), "the score is the same at every layer"),
        (np.arange(3.0), np.arange(3.0), "3 layers, at least 4 needed"),
        (np.arange(2.0), np.arange(2.0), "2 layers, at least 4 needed"),
    ],
)
def test_no_statistic_without_a_reason(metric: Array, score: Array, reason: str) -> None:
    table = correlations(*tables({"t": metric}, {"t": score}))
    row = one(table, protocol="mteb", layers="all")
    assert row["undefined"] == reason
    names = ["spearman", "dcor", "residual_spearman", "partial_spearman", "p_task", "q_task"]
    assert np.isnan([row[name] for name in names]).all()
    assert row["flag"] == ("fewer than 8 layers" if len(metric) < 8 else "")


def test_opposite_tasks_can_cancel_to_a_constant_mean() -> None:
    curve = np.arange(9.0)
    table = correlations(*tables({"t0": curve, "t1": -curve}, {"t0": curve, "t1": curve}))
    assert one(table, protocol="mteb", layers="all")["undefined"] == "the mean metric is the same at every layer"


def test_intervals_are_of_both_correlations_from_eight_tasks_on() -> None:
    rng = np.random.default_rng(10)
    metric, score = walks(rng, 12, 20), walks(rng, 12, 20)
    row = one(correlations(*tables(named(metric), named(score))), protocol="mteb", layers="all")
    assert row["low"] < row["spearman"] < row["high"]
    assert row["residual_low"] < row["residual_spearman"] < row["residual_high"]
    few = one(correlations(*tables(named(metric[:7]), named(score[:7]))), protocol="mteb", layers="all")
    assert np.isnan([few["low"], few["high"], few["residual_low"], few["residual_high"]]).all()
    assert few["flag"] == "no interval below 8 tasks"


def test_q_task_counts_all_tests_of_one_model_protocol_and_choice_of_layers() -> None:
    rng = np.random.default_rng(11)
    names = [f"metric{i}" for i in range(6)]
    _, scores = tables(named(walks(rng, 1, 10)), named(walks(rng, 6, 10)))
    metrics = pd.concat([metric_rows(c, t, metric=m) for m in names for t, c in named(walks(rng, 6, 10)).items()])
    table = correlations(metrics, scores)
    for _, rows in table.groupby(["protocol", "layers"]):
        assert len(rows) == 6
        np.testing.assert_allclose(rows["q_task"], stats.false_discovery_control(rows["p_task"]))
    other = pd.concat([scores, scores.assign(model="n")]), pd.concat([metrics, metrics.assign(model="n")])
    again = correlations(other[1], other[0])
    assert canonical(again[again["model"] == "m"].reset_index(drop=True)) == canonical(table)


def test_flags() -> None:
    rng = np.random.default_rng(8)
    metrics, scores = tables(named(rng.random((3, 7))), named(rng.random((3, 7))))
    row = one(correlations(metrics.assign(saturated=metrics["task"] == "t1"), scores), protocol="mteb", layers="all")
    assert "fewer than 8 layers" in row["flag"]
    assert "no p_task below 5 tasks" in row["flag"]
    assert "saturated on t1" in row["flag"]


def test_entropies_are_averaged_normalised() -> None:
    # one task with ten times the value (more samples) would otherwise decide the mean curve
    metrics = pd.concat(
        [
            metric_rows([1, 2, 3, 4, 5], "t0", metric="dataset_entropy").assign(value=[10.0, 20, 30, 40, 50]),
            metric_rows([9, 7, 5, 3, 1], "t1", metric="dataset_entropy"),
        ]
    )
    scores = pd.concat([score_rows(np.arange(5.0), task) for task in ("t0", "t1")])
    assert one(correlations(metrics, scores), protocol="mteb", layers="all")["spearman"] == pytest.approx(-1)


def test_primary_mixes_the_protocols_of_the_types() -> None:
    rng = np.random.default_rng(9)
    curves = rng.random((3, 9))
    metrics, scores = tables(named(rng.random((2, 9))), {"t0": curves[0]})
    kind = {"type": "classification"}
    extra = [score_rows(curves[1], "t1", **kind), score_rows(curves[2], "t1", protocol="standardised", **kind)]
    table = correlations(metrics, pd.concat([scores, *extra]))
    assert set(table["protocol"]) == {"mteb", "standardised", "primary"}
    mean = metrics.groupby("layer")["value"].mean().to_numpy()
    wanted = stats.spearmanr(mean, curves[[0, 2]].mean(axis=0)).statistic
    assert one(table, protocol="primary", layers="all")["spearman"] == pytest.approx(wanted)
    assert one(table, protocol="standardised", layers="all")["n_tasks"] == 1


def test_layer_counts_of_metrics_and_scores_must_agree() -> None:
    with pytest.raises(FileError, match=r"model 'm' has 8 layers in its metrics and 9 in its task scores"):
        correlations(*tables({"t": np.arange(9.0)}, {"t": np.arange(10.0)}))


def test_nothing_in_common_gives_an_empty_table() -> None:
    table = correlations(*tables({"t": np.arange(9.0)}, {"u": np.arange(9.0)}))
    assert table.empty
    assert tuple(table.columns) == COLUMNS
