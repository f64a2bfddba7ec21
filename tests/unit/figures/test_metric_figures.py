"""Figures over depth: the right lines, nulls, marks, units and gaps."""

import math

import numpy as np
import pandas as pd
import pytest
import synthetic
from layerwise.errors import FileError
from layerwise.figures import metric, reading, released, scores, valley
from looking import all_text, lines, panels

Tables = dict[str, pd.DataFrame]


def changed(tables: Tables, name: str, frame: pd.DataFrame) -> Tables:
    return tables | {name: frame}


def test_scores_has_a_line_per_readout_and_marks_best_and_last(study: Tables) -> None:
    axes = panels(scores.draw(study))[0]
    found = lines(axes)
    assert set(synthetic.READOUTS) | {"untrained", "best", "last", "tfidf", "majority"} == set(found)
    curve = 100 * synthetic.score_curve(31, "sentiment", "mean_normed")
    np.testing.assert_allclose(found["mean_normed"][:, 1], curve)
    np.testing.assert_allclose(found["mean_normed"][:, 0], np.arange(31) / 30)
    np.testing.assert_allclose(found["last"], [[1.0, curve[-1]]])
    np.testing.assert_allclose(found["best"], [[curve.argmax() / 30, curve.max()]])
    assert str(curve.argmax()) in [text.get_text() for text in axes.texts]
    np.testing.assert_allclose(found["tfidf"][:, 1], 78.0)


def test_scores_marks_the_readout_that_is_asked_for(study: Tables) -> None:
    axes = panels(scores.draw(study, headline_readout="mean"))[0]
    assert lines(axes)["last"][0, 1] == pytest.approx(100 * synthetic.score_curve(31, "sentiment", "mean")[-1])


def test_scores_draws_classification_standardised(study: Tables) -> None:
    rows = study["scores"].copy()
    rows.loc[rows["protocol"] == "mteb", "score"] *= 0.5
    found = lines(panels(scores.draw(changed(study, "scores", rows)))[0])
    assert found["mean"][0, 1] == pytest.approx(100 * synthetic.score_curve(31, "sentiment", "mean")[0])
    assert "standardised (sentiment, genre), mteb (book, next-verse, lee)" in all_text(scores.draw(study))


def test_equal_readouts_are_drawn_once(small: Tables) -> None:
    rows = small["scores"].copy()
    mean = rows[rows["readout"] == "mean"]["score"].to_numpy()
    rows.loc[rows["readout"] == "mean_normed", "score"] = mean
    figure = scores.draw(changed(small, "scores", rows))
    found = lines(panels(figure)[0])
    assert "mean = mean_normed" in found
    assert "mean" not in found
    assert found["last"][0, 1] == pytest.approx(found["mean = mean_normed"][-1, 1])


def test_scores_shares_the_y_axis_of_a_task_between_models(study: Tables) -> None:
    axes = panels(scores.draw(study))
    assert axes[0].get_ylim() == axes[5].get_ylim()
    assert axes[0].get_ylim() != axes[2].get_ylim()


def test_many_tasks_become_means_over_complete_tasks() -> None:
    tasks = {f"t{i}": "Clustering" if i < 5 else "STS" for i in range(8)}
    tables = synthetic.build({"bert": 5}, tasks)
    rows = tables["scores"]
    rows.loc[(rows["task"] == "t0") & (rows["layer"] == 2) & (rows["readout"] == "mean"), "score"] = np.nan
    figure = scores.draw(tables)
    assert "mean of 4 of 5 tasks" in all_text(figure)
    found = lines(panels(figure)[0])
    expected = np.mean([synthetic.score_curve(5, f"t{i}", "mean") for i in range(1, 5)], axis=0)
    np.testing.assert_allclose(found["mean"][:, 1], 100 * expected)


@pytest.mark.parametrize(
    ("name", "unit", "column"),
    [
        ("prompt_entropy", "share of maximum", "normalized"),
        ("curvature", "radians", "value"),
        ("lidar", "directions", "value"),
        ("infonce", "nats", "value"),
    ],
)
def test_metric_draws_values_null_and_unit(study: Tables, name: str, unit: str, column: str) -> None:
    axes = panels(metric.draw(study, metric=name))[0]
    assert axes.get_ylabel() == unit
    rows = study["metrics"]
    rows = rows[(rows["metric"] == name) & (rows["variant"] == "paper") & (rows["model"] == "smollm2-135m")]
    rows = rows[rows["dataset"] == ("verses~views" if name in synthetic.VIEWED else "lee")]
    null = "null_normalized" if column == "normalized" else "null_value"
    found = lines(axes)
    np.testing.assert_allclose(found["null"][:, 1], rows[null].iloc[0])
    for line, part in rows.groupby("recipe" if name in synthetic.TOKEN else "readout"):
        np.testing.assert_allclose(found[str(line)][:, 1], part[column])
    low, high = axes.get_ylim()
    assert low < rows[null].iloc[0] < high


def test_nulls_that_differ_are_drawn_each(small: Tables) -> None:
    rows = small["metrics"].copy()
    rows.loc[rows["recipe"] == "raw", "null_normalized"] *= 0.8
    axes = panels(metric.draw(changed(small, "metrics", rows), metric="prompt_entropy"))[0]
    heights = sorted({round(float(line.get_ydata()[0]), 3) for line in axes.lines if line.get_label() == "null"})
    assert heights == [round(0.8 * 4.6 / 4.7, 3), round(4.6 / 4.7, 3)]


def test_broken_pairs_and_saturation_are_shown(study: Tables) -> None:
    dime = panels(metric.draw(study, metric="dime"))[0]
    np.testing.assert_allclose(lines(dime)["broken pairs"][:, 1], 0.0)
    figure = metric.draw(study, metric="lidar")
    trained, saturated = panels(figure)
    assert {line.get_alpha() for line in saturated.lines if line.get_label() in synthetic.READOUTS} == {0.35}
    assert {line.get_alpha() for line in trained.lines if line.get_label() in synthetic.READOUTS} == {1.0}
    assert "saturated" in all_text(figure)


def test_effective_rank_has_a_row_per_level(study: Tables) -> None:
    text = all_text(metric.draw(study, metric="effective_rank"))
    assert "layers 0 to 30, pooled" in text
    assert "layers 0 to 30, token level" in text


def test_band_is_one_standard_error_of_the_drawn_value(small: Tables) -> None:
    axes = panels(metric.draw(small, metric="prompt_entropy"))[0]
    rows = small["metrics"]
    rows = rows[(rows["metric"] == "prompt_entropy") & (rows["dataset"] == "lee") & (rows["recipe"] == "raw")]
    rows = rows[rows["variant"] == "paper"]
    band = axes.collections[0].get_paths()[0].get_extents()
    assert band.y1 == pytest.approx((rows["normalized"] * 1.03).max())
    assert band.y0 == pytest.approx((rows["normalized"] * 0.97).min())


def test_an_undefined_or_absent_layer_is_a_gap(small: Tables) -> None:
    rows = small["metrics"].copy()
    rows.loc[rows["layer"] == 2, ["value", "normalized"]] = np.nan
    rows = rows[rows["layer"] != 4]
    found = lines(panels(metric.draw(changed(small, "metrics", rows), metric="curvature"))[0])
    assert list(np.flatnonzero(np.isnan(found["raw"][:, 1]))) == [2, 4]
    np.testing.assert_allclose(found["raw"][:, 0], np.arange(7) / 6)


def test_two_values_for_one_layer_are_refused(small: Tables) -> None:
    rows = pd.concat([small["metrics"], small["metrics"]])
    with pytest.raises(FileError, match="two rows"):
        metric.draw(changed(small, "metrics", rows), metric="curvature")


def test_alpha_one_is_drawn_of_several(small: Tables) -> None:
    rows = small["metrics"]
    other = rows.assign(parameters='{"alpha":0.5}', value=99.0, normalized=99.0)
    figure = metric.draw(changed(small, "metrics", pd.concat([other, rows])), metric="prompt_entropy")
    assert lines(panels(figure)[0])["raw"][:, 1].max() < 1
    assert "alpha = 1" in all_text(figure)


def test_valley_states_what_the_first_token_does(study: Tables) -> None:
    figure = valley.draw(study)
    first, second = panels(figure)
    found = lines(first)
    assert set(synthetic.RECIPES) | {"untrained", "null", "gap"} == set(found)
    gap = found["centre_unit_skip_first"][:, 1] - found["centre_unit"][:, 1]
    layer = int(np.argmax(np.abs(gap)))
    low, high = found["centre_unit"][layer, 1], found["centre_unit_skip_first"][layer, 1]
    np.testing.assert_allclose(found["gap"], [[layer / 30, low], [layer / 30, high]])
    assert f"layer {layer}: {low:.2f} to {high:.2f}" in all_text(figure)
    assert "untrained" not in lines(second)
    assert "on lee" in all_text(figure)


def test_valley_falls_back_to_a_corpus_it_has(small: Tables) -> None:
    rows = small["metrics"]
    assert "on verses," in all_text(valley.draw(changed(small, "metrics", rows[rows["dataset"] != "lee"])))


def test_released_draws_both_variants_on_one_scale(study: Tables) -> None:
    axes = panels(released.draw(study))
    assert all({"paper", "released", "null"} <= set(lines(panel)) for panel in axes)
    curvature = axes[3]
    nulls = sorted(float(line.get_ydata()[0]) for line in curvature.lines if line.get_label() == "null")
    assert nulls == pytest.approx([math.pi - 2.094, 2.094])
    lidar = lines(axes[5])
    np.testing.assert_allclose(lidar["paper"][:, 1], lidar["released"][:, 1], rtol=0.01)


def test_released_takes_the_corpus_it_is_told(study: Tables) -> None:
    text = all_text(released.draw(study, dataset="lee"))
    assert "lee, n = 50" in text
    assert "verses, n = 300" not in text
    assert "verses~views, n = 300" in text
    assert "verses, n = 300" in all_text(released.draw(study))


def test_over_tasks_averages_the_same_tasks_at_every_layer() -> None:
    frame = pd.DataFrame(
        {
            "model": "m",
            "task": ["a", "a", "a", "b", "b", "b", "c", "c", "c"],
            "layer": [0.0, 1, 2] * 3,
            "depth": [0.0, 0.5, 1] * 3,
            "score": [np.nan, 1, 2, np.nan, 3, 4, np.nan, np.nan, 100],
        }
    )
    mean, tasks = reading.over_tasks(frame, "score")
    assert tasks == ["a", "b"]
    assert list(mean["layer"]) == [1, 2]
    assert list(mean["score"]) == [2, 3]
    assert list(mean["depth"]) == [0.5, 1]
