"""Figures of one model, the names of figure files, and what the report says of them."""

import numpy as np
import pandas as pd
import pytest
import synthetic
from layerwise.errors import ConfigError
from layerwise.figures import model_metrics, model_scores
from layerwise.figures.registry import FIGURES, OF_ALL_MODELS, load_figure, resolve
from layerwise.figures.report import subject
from layerwise.metrics.registry import METRICS
from looking import all_text, faults, lines, panels

Tables = dict[str, pd.DataFrame]
SMOL, TWIN = "smollm2-135m", "smollm2-135m-untrained"
OPTIONS = {"twin": TWIN, "dataset": "lee"}


def test_names_of_files_name_one_figure() -> None:
    assert resolve("scores") == ("scores", {})
    assert resolve("metric_dime") == ("metric", {"metric": "dime"})
    assert resolve("metric_vs_score") == ("metric_vs_score", {})
    assert resolve("scores~vs_score") == ("model_scores", {"model": "vs_score"})
    assert resolve("metrics~m@step1.5_a-b") == ("model_metrics", {"model": "m@step1.5_a-b"})
    assert resolve("metrics~x") == ("model_metrics", {"model": "x"})
    assert all(load_figure(name).QUESTION for name in FIGURES)
    assert not {f"metric_{name}" for name in METRICS} & set(OF_ALL_MODELS)


@pytest.mark.parametrize(
    "name", ["metric", "metric_", "bars", "scores~", "metrics", "gains~m", "metric_a~b", "model_scores"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"no figure .*metric_NAME.*scores~NAME"):
        resolve(name)


def test_scores_of_one_model_have_a_panel_per_task_with_its_n(study: Tables) -> None:
    figure = model_scores.draw(study, model=SMOL, twin=TWIN)
    axes, text = panels(figure), all_text(figure)
    assert len(axes) == 5
    assert "sentiment: classification" in text
    assert "standardised, n = 700" in text
    found = lines(axes[0])
    assert set(synthetic.READOUTS) | {"untrained", "best", "last", "tfidf", "majority"} == set(found)
    np.testing.assert_allclose(found["mean"][:, 1], 100 * synthetic.score_curve(31, "sentiment", "mean"))
    twin = 100 * (synthetic.score_curve(31, "sentiment", "mean_normed") - 0.1)
    np.testing.assert_allclose(found["untrained"][:, 1], twin)
    widths = {str(line.get_label()): line.get_linewidth() for line in axes[0].lines}
    assert widths["mean_normed"] > widths["mean"] > widths["tfidf"]
    assert faults(figure) == {}


def test_another_model_is_not_drawn(study: Tables) -> None:
    figure = model_scores.draw(study, model="minilm-l6")
    assert "untrained" not in all_text(figure)
    assert len(lines(panels(figure)[0])["mean"]) == 7


@pytest.mark.parametrize("count", [1, 2, 4, 7, 40])
def test_any_number_of_tasks_is_legible(count: int) -> None:
    tables = synthetic.build({"m": 4}, {f"task-{i}": "sts" for i in range(count)})
    figure = model_scores.draw(tables, model="m")
    assert len(panels(figure)) == min(count, model_scores.TASKS)
    assert ("Drawn: 36 of 40 tasks" in all_text(figure)) == (count == 40)
    assert faults(figure) == {}


def test_metrics_of_one_model_have_a_panel_per_metric_and_level(study: Tables) -> None:
    figure = model_metrics.draw(study, model=SMOL, **OPTIONS)
    axes, text = panels(figure), all_text(figure)
    assert len(axes) == len(synthetic.TOKEN) + len(synthetic.SINKS) + len(synthetic.POOLED)
    assert "Token level: one line per recipe" in text
    assert "lee, n = 50" in text
    assert "verses~views, n = 300" in text
    assert set(synthetic.RECIPES) | {"untrained", "null"} == set(lines(axes[0]))
    assert set(synthetic.READOUTS) | {"untrained", "null"} == set(lines(axes[len(synthetic.TOKEN) + len(synthetic.SINKS)]))
    dime = lines(axes[-1])
    assert "broken pairs" in dime
    assert faults(figure) == {}


def test_a_corpus_that_a_metric_lacks_is_replaced(study: Tables) -> None:
    text = all_text(model_metrics.draw(study, model=SMOL, dataset="verses"))
    assert "verses, n = 300" in text
    assert "lee," not in text
    assert "saturated" in all_text(model_metrics.draw(study, model="minilm-l6", dataset="verses"))


def test_a_model_without_rows_gives_a_sentence(study: Tables) -> None:
    for module in (model_scores, model_metrics):
        figure = module.draw(study, model="nobody")
        assert panels(figure) == []
        assert any("'nobody'" in text.get_text() for axes in figure.axes for text in axes.texts)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("scores", "scores of every layer, n = 700 test items"),
        (f"scores~{SMOL}", "scores on every task, n = 700 test items"),
        (f"metrics~{SMOL}", "metrics, n = 50 to 300 samples"),
        ("metric_dime", "DiME, n = 300 samples"),
        ("valley", "compression valley, n = 50 samples"),
        ("correlations", "correlation of metrics and scores, n = 7 to 31 layers, n = 5 tasks"),
        ("selection", "layers picked without labels, n = 5 tasks"),
    ],
)
def test_the_report_says_n(name: str, expected: str, study: Tables) -> None:
    assert subject(name, study, OPTIONS) == expected


@pytest.mark.parametrize("name", [*OF_ALL_MODELS, "metric_dime", "scores~m", "metrics~m"])
def test_the_report_names_figures_of_empty_tables_without_n(name: str) -> None:
    assert "n =" not in subject(name, {}, OPTIONS)
