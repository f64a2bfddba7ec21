"""Scores over depth, best layers, the matrix of correlations, and tasks that have no headline readout."""

import numpy as np
import pandas as pd
import pytest
import synthetic
from layerwise.figures import best_layers, correlation_matrix, depth_profile, gains, model_scores, scores
from looking import all_text, faults, lines, panels

Tables = dict[str, pd.DataFrame]


def with_probe(tables: Tables, model: str = "minilm-l6", layers: int = 7) -> Tables:
    """Add a task that has no readout but its own, as the attention probe writes it."""
    curve = synthetic.score_curve(layers, "probe", "attention")
    cell = {"model": model, "task": "probe", "type": "attention_probe", "protocol": "attention_probe"}
    cell |= {"readout": "attention", "tap": "residual", "baseline": "", "n_items": 300}
    rows = [cell | {"layer": i, "depth": i / (layers - 1), "score": score} for i, score in enumerate(curve)]
    summary = tables["layer_summary"]
    own = summary[(summary["model"] == model) & (summary["readout"] == "mean")].iloc[:1]
    own = own.assign(task="probe", type="attention_probe", protocol="attention_probe", readout="attention")
    return tables | {
        "scores": pd.concat([tables["scores"], pd.DataFrame(rows)], ignore_index=True),
        "layer_summary": pd.concat([summary, own], ignore_index=True),
    }


@pytest.mark.parametrize("readouts", [synthetic.READOUTS, ()])
def test_a_task_without_the_headline_readout_is_drawn_at_its_own(readouts: tuple[str, ...], small: Tables) -> None:
    tables = with_probe(small)
    if not readouts:  # a study of attention probes only
        tables = {
            name: frame[frame["task"] == "probe"] for name, frame in tables.items() if name in ("scores", "layer_summary")
        }
    curve = 100 * synthetic.score_curve(7, "probe", "attention")
    for figure in (scores.draw(tables), model_scores.draw(tables, model="minilm-l6")):
        found = lines(panels(figure)[-1])
        np.testing.assert_allclose(found["attention"][:, 1], curve)
        np.testing.assert_allclose(found["best"], [[curve.argmax() / 6, curve.max()]])
        assert faults(figure) == {}
    profile = depth_profile.draw(tables)
    assert any(np.allclose(lines(axes)["mean over tasks"][:, 1], curve) for axes in panels(profile))
    assert ("probe (attention)" if readouts else "minilm-l6, attention") in all_text(gains.draw(tables))
    assert f"of {3 if readouts else 1}," in all_text(best_layers.draw(tables))


def test_a_mean_over_types_leaves_the_probe_out_and_counts() -> None:
    tables = with_probe(synthetic.build({"minilm-l6": 7}, {f"t{i}": "sts" for i in range(7)}))
    text = all_text(scores.draw(tables))
    assert "mean of 7 of 8 tasks" in text
    assert "mean of 1 tasks" in text


def test_the_twin_is_not_drawn_over_other_tasks() -> None:
    tables = synthetic.build({"m": 5, "m-untrained": 5}, {f"t{i}": "sts" for i in range(7)})
    rows = tables["scores"]
    assert "untrained" in lines(panels(scores.draw(tables))[0])
    tables["scores"] = rows[~((rows["model"] == "m-untrained") & (rows["task"] == "t3"))]
    assert "untrained" not in lines(panels(scores.draw(tables))[0])


def test_the_profile_is_the_mean_over_tasks_with_a_band_of_what_their_levels_leave(study: Tables) -> None:
    figure = depth_profile.draw(study)
    axes = panels(figure)[0]
    curves = 100 * np.array([synthetic.score_curve(31, task, "mean_normed") for task in ("sentiment", "genre")])
    found = lines(axes)
    np.testing.assert_allclose(found["mean over tasks"][:, 1], curves.mean(axis=0))
    np.testing.assert_allclose(found["last layer"][:, 1], curves.mean(axis=0)[-1])
    np.testing.assert_allclose(found["untrained"][:, 1], curves.mean(axis=0) - 10)
    assert len(axes.collections) == 1
    assert len(panels(figure)[1].collections) == 0  # one task: no band
    text = all_text(figure)
    assert "n = 2 tasks" in text
    assert "n = 1 task" in text
    assert "n = 5 tasks" in text


def test_the_band_leaves_the_levels_of_the_tasks_out() -> None:
    tables = synthetic.build({"m": 5}, {"a": "sts", "b": "sts"})
    rows = tables["scores"]
    curve = rows.loc[(rows["task"] == "a") & (rows["baseline"] == ""), "score"].to_numpy()
    rows.loc[(rows["task"] == "b") & (rows["baseline"] == ""), "score"] = curve + 0.3  # the same shape, higher
    box = panels(depth_profile.draw(tables))[0].collections[0].get_paths()[0].get_extents()
    mean = 100 * (synthetic.score_curve(5, "a", "mean_normed") + 0.15)
    assert (box.y0, box.y1) == (pytest.approx(mean.min()), pytest.approx(mean.max()))


def test_profiles_of_all_models_are_over_the_same_tasks() -> None:
    tables = synthetic.build({"m": 5, "n": 7}, {"a": "sts", "b": "sts", "c": "sts"})
    rows = tables["scores"]
    gone = ((rows["model"] == "n") & (rows["task"] == "c")) | (
        (rows["task"] == "a") & (rows["layer"] == 3) & (rows["model"] == "m")
    )
    figure = depth_profile.draw(tables | {"scores": rows[~gone]})
    curve = 100 * synthetic.score_curve(5, "b", "mean_normed")
    np.testing.assert_allclose(lines(panels(figure)[0])["mean over tasks"][:, 1], curve)
    assert "Left out, not scored for all: a, c." in all_text(figure)


def test_best_layers_are_counted_by_depth_with_the_last_apart() -> None:
    rows = pd.DataFrame({"best_layer": [0, 12, 12, 6, 11], "n_layers": 12, "gain_low": [0.01, np.nan, -0.1, -0.1, 0.2]})
    found, chance = best_layers.counts(rows)
    assert found.tolist() == [[1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 2]]
    np.testing.assert_allclose(chance, 5 * np.array([3, 2, 3, 2, 2, 1]) / 13)


def test_the_histogram_says_how_often_the_last_layer_is_best(study: Tables) -> None:
    rows = study["layer_summary"].copy()
    rows.loc[rows["task"] == "lee", "best_layer"] = rows["n_layers"]
    figure = best_layers.draw({"layer_summary": rows})
    text = all_text(figure)
    assert "all models" in text
    assert "last layer: 2 of 10, by chance 0.9" in text
    assert "n = 10 best layers" in text
    assert [axes.get_xlabel() for axes in panels(figure)] == ["depth"] * 3


def test_the_matrix_prints_both_correlations_with_intervals_and_stars(study: Tables) -> None:
    figure = correlation_matrix.draw(study)
    plain, beyond = panels(figure)[:2]
    assert [label.get_text() for label in plain.get_xticklabels()] == [
        "mean\nnormed",
        "mean",
        "mean\nskip\nfirst",
        "weighted\nmean",
    ]
    rows = study["correlations"]
    rows = rows[(rows["model"] == "smollm2-135m") & (rows["layers"] == "all") & (rows["metric_readout"] == "mean")]
    row = rows[(rows["metric"] == "dataset_entropy") & (rows["metric_text"] == "own")].iloc[0]
    for axes, names in (
        (plain, ("spearman", "low", "high")),
        (beyond, ("residual_spearman", "residual_low", "residual_high")),
    ):
        written = [text.get_text() for text in axes.texts]
        value, low, high = (correlation_matrix._number(row[name]) for name in names)
        assert value in written or f"{value}*" in written
        assert f"{low} to {high}" in written
    assert "95 % interval over tasks" in all_text(figure)


def test_the_matrix_has_columns_of_the_study_and_of_the_authors_code(study: Tables) -> None:
    rows = study["correlations"]
    mean = rows[(rows["metric_readout"] == "mean") & (rows["pairing"] == "matched")]
    more = [mean.assign(pairing="study", score_readout="mean_normed")]
    more += [rows[rows["score_readout"] == "mean_normed"].assign(variant="released")]
    figure = correlation_matrix.draw({"correlations": pd.concat([rows, *more])})
    labels = [label.get_text() for label in panels(figure)[0].get_xticklabels()]
    assert labels[-2:] == ["study:\nmean /\nnormed", "authors'\ncode"]
    assert "No interval" not in all_text(figure)
    none = rows.assign(low=np.nan, high=np.nan, residual_low=np.nan, residual_high=np.nan)
    assert "No interval: fewer than 8 tasks" in all_text(correlation_matrix.draw({"correlations": none}))


def test_gains_say_what_a_mean_leaves_out(study: Tables) -> None:
    rows = study["layer_summary"].assign(flag="")
    rows.loc[rows["task"] == "all", "flag"] = "left out, not scored by all that are compared: genre"
    text = all_text(gains.draw({"layer_summary": rows}))
    assert "minilm-l6: genre; smollm2-135m: genre" in text
    assert "intervals is for itself" in text
