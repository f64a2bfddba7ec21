"""Figures of dots: gains, correlations, selectors, and metric against score."""

import numpy as np
import pandas as pd
import pytest
from layerwise.figures import correlations, gains, metric_vs_score, selection
from looking import all_text, lines, panels
from matplotlib.colors import to_hex

Tables = dict[str, pd.DataFrame]


def beside(axes: object) -> list[str]:
    return [text.get_text() for text in axes.texts]  # type: ignore[attr-defined]


def test_gains_have_a_zero_line_and_the_cross_fitted_gain(study: Tables) -> None:
    figure = gains.draw(study)
    axes = panels(figure)[0]
    np.testing.assert_allclose(lines(axes)["zero"][:, 0], 0)
    assert axes.get_xlabel() == "gain (points)"
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "sentiment",
        "genre",
        "book",
        "next-verse",
        "lee",
        "all",
    ]
    rows = study["layer_summary"]
    rows = rows[(rows["model"] == "smollm2-135m") & (rows["readout"] == "mean_normed")]
    dots = [float(line.get_xdata()[0]) for line in axes.lines if line.get_label() == "cross-fitted gain"]
    assert dots == pytest.approx(list(100 * rows["gain_cross_fitted"]))
    assert [text for text in beside(axes) if text.isdigit()] == [str(layer) for layer in rows["best_layer"]]


def test_gains_say_how_all_was_split(study: Tables) -> None:
    assert "halves of the tasks" not in all_text(gains.draw(study))
    rows = study["layer_summary"].assign(gain_unit="tasks")
    assert "halves of the tasks" in all_text(gains.draw({"layer_summary": rows}))


def test_correlations_print_both_coefficients_and_p(study: Tables) -> None:
    axes = panels(correlations.draw(study))[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[:4] == [
        "prompt entropy: raw",
        "prompt entropy: centre_unit",
        "prompt entropy: centre_unit_skip_first",
        "dataset entropy",
    ]
    assert "effective rank: pooled" in names
    assert len(names) == 3 * 3 + 5
    rows = study["correlations"]
    rows = rows[(rows["model"] == "smollm2-135m") & (rows["layers"] == "all") & (rows["metric"] == "dataset_entropy")]
    row = rows[(rows["score_readout"] == "mean_normed") & (rows["metric_text"] == "own")].iloc[0]
    for label, column, offset in (("raw", "spearman", -0.12), ("beyond depth", "residual_spearman", 0.12)):
        dots = {
            round(float(line.get_ydata()[0] - offset)): float(line.get_xdata()[0])
            for line in axes.lines
            if line.get_label() == label
        }
        assert dots[3] == pytest.approx(row[column])
    assert f"{row['q_task']:.3f}".removeprefix("0") in beside(axes)
    np.testing.assert_allclose(lines(axes)["zero"][:, 0], 0)


def test_correlations_of_the_study_pairing(study: Tables) -> None:
    rows = study["correlations"]
    rows = rows.assign(pairing=rows["pairing"].replace("matched", "study"))
    assert "metrics mean_normed" in all_text(correlations.draw({"correlations": rows}, pairing="study"))


def test_selectors_are_sorted_and_told_apart(study: Tables) -> None:
    axes = panels(selection.draw(study))[0]
    dots = [line for line in axes.lines if len(line.get_xdata()) == 1]
    found = [float(line.get_xdata()[0]) for line in sorted(dots, key=lambda line: float(line.get_ydata()[0]))]
    assert found == sorted(found, reverse=True)
    names = {label.get_text(): to_hex(label.get_color()) for label in axes.get_yticklabels()}
    kinds = [names[name] for name in ("oracle", "128 labels", "last", "max LiDAR, theory")]
    assert len(set(kinds)) == 4
    assert names["random"] == names["middle"] == names["last"]
    assert names["other tasks"] == names["16 labels"]
    np.testing.assert_allclose(lines(axes)["last layer"][:, 0], 58.0)
    assert "5 tasks" in all_text(selection.draw(study))


def test_a_selector_without_a_pick_says_why(study: Tables) -> None:
    assert "no pick: saturated" in all_text(selection.draw(study))


def test_the_studys_direction_is_read_on_its_own_variant(study: Tables) -> None:
    rows = study["layer_selection"]
    theirs = rows[(rows["metric"] == "curvature") & (rows["recipe"] == "centre_unit")].assign(
        variant="released", score=0.123
    )
    figure = selection.draw({"layer_selection": pd.concat([rows, theirs])})
    axes = panels(figure)[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    scores = {
        round(float(line.get_ydata()[0])): float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata()) == 1
    }
    assert scores[names.index("min curvature, study")] == pytest.approx(12.3)
    assert scores[names.index("max curvature, theory")] > 50


def test_metric_against_score_has_a_point_per_layer(study: Tables) -> None:
    axes = panels(metric_vs_score.draw(study))[0]
    assert len(axes.collections[0].get_offsets()) == 31
    np.testing.assert_allclose(axes.collections[0].get_array(), np.arange(31) / 30)
    assert axes.get_xlabel() == "share of maximum"
    assert axes.get_ylabel() == "mean score (points)"
    rows = study["correlations"]
    rows = rows[(rows["model"] == "smollm2-135m") & (rows["metric"] == "prompt_entropy") & (rows["layers"] == "all")]
    row = rows[(rows["recipe"] == "centre_unit_skip_first") & (rows["metric_text"] == "own")].iloc[0]
    written = f"\u03c1 {row['spearman']:+.2f}, beyond depth {row['residual_spearman']:+.2f}".replace("-", "\u2212")
    assert written in beside(axes)
    assert "prompt entropy, n = 31" in beside(axes)


def test_metric_against_score_means_the_tasks_own_texts(study: Tables) -> None:
    axes = panels(metric_vs_score.draw(study))[0]
    rows = study["metrics"]
    rows = rows[(rows["metric"] == "prompt_entropy") & (rows["variant"] == "paper") & (rows["model"] == "smollm2-135m")]
    rows = rows[(rows["recipe"] == "centre_unit_skip_first") & (rows["task"] != "")]
    expected = rows.groupby("layer")["normalized"].mean()
    np.testing.assert_allclose(axes.collections[0].get_offsets()[:, 0], expected)


def test_metric_against_score_uses_a_corpus_where_tasks_have_no_texts(study: Tables) -> None:
    rows = study["metrics"]
    figure = metric_vs_score.draw(study | {"metrics": rows[rows["task"] == ""]})
    assert "metric on lee" in all_text(figure)
