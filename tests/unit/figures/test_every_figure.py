"""What holds for every figure: it draws, nothing is cut off or overlaps, and it says what is missing."""

import numpy as np
import pandas as pd
import pytest
import synthetic
from layerwise.errors import FileError
from layerwise.figures.registry import OF_ALL_MODELS, load_figure, resolve
from looking import all_text, faults, panels
from matplotlib.figure import Figure

NAMES = [
    *(name for name in OF_ALL_MODELS if name != "taps"),  # these tables have none: test_taps_figure
    "scores~minilm-l6",
    "metrics~minilm-l6",
    "metric_prompt_entropy",
    "metric_effective_rank",
    "metric_lidar",
    "metric_dime",
]
ALONE = {"valley", "sink", "released"}  # drawn from metrics only


def draw(name: str, tables: dict[str, pd.DataFrame]) -> Figure:
    figure, options = resolve(name)
    return load_figure(figure).draw(tables, **options)


@pytest.mark.parametrize("name", NAMES)
def test_study_is_legible(name: str, study: dict[str, pd.DataFrame]) -> None:
    figure = draw(name, study)
    assert figure.get_figwidth() == 7.0
    assert faults(figure) == {}
    assert "n" in all_text(figure)
    assert "?" in figure.texts[0].get_text()


@pytest.mark.parametrize("name", NAMES)
def test_one_small_model_with_gaps(name: str, small: dict[str, pd.DataFrame]) -> None:
    tables = {key: frame.copy() for key, frame in small.items()}
    tables["metrics"].loc[tables["metrics"]["layer"].isin([0, 3]), ["value", "normalized", "se"]] = np.nan
    tables["scores"].loc[tables["scores"]["layer"].isin([0, 3]), "score"] = np.nan
    tables["layer_summary"].loc[::2, ["gain_cross_fitted", "gain_low", "gain_high"]] = np.nan
    tables["correlations"].loc[::2, ["spearman", "residual_spearman", "q_task"]] = np.nan
    tables["correlations"].loc[::2, "undefined"] = "a constant curve has no rank correlation with anything"
    tables["layer_selection"].loc[::3, ["score", "picked_layer"]] = np.nan
    figure = draw(name, tables)
    assert panels(figure)
    assert faults(figure) == {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tables", [{}, {name: pd.DataFrame() for name in synthetic.build({}, {})}])
def test_empty_tables_give_a_sentence(name: str, tables: dict[str, pd.DataFrame]) -> None:
    figure = draw(name, tables)
    assert panels(figure) == []
    (sentence,) = (text.get_text() for axes in figure.axes for text in axes.texts)
    assert sentence.startswith("There is n")
    assert sentence.endswith(".")
    assert faults(figure) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_study_without_tasks(name: str) -> None:
    tables = synthetic.build({"minilm-l6": 7}, {})
    empty = dict.fromkeys(("scores", "layer_costs", "layer_summary", "correlations", "layer_selection"), pd.DataFrame())
    figure = draw(name, tables | empty)
    assert bool(panels(figure)) == (
        (name.startswith(("metric_", "metrics~")) and name != "metric_vs_score") or name in ALONE
    )


@pytest.mark.parametrize("name", ["scores", "depth_profile", "best_layers", "metric_curvature", "correlations"])
def test_seven_models(name: str) -> None:
    models = {f"pythia-{size}m@step{size * 1000}": 4 for size in range(7)}
    figure = draw(name, synthetic.build(models, {"genre": "classification"}))
    assert all(model.split("@")[0] in all_text(figure) for model in models)
    assert faults(figure) == {}


def test_more_models_than_fit_are_counted() -> None:
    models = {f"model-{index:02d}": 3 for index in range(14)}
    figure = draw("valley", synthetic.build(models, {}))
    assert "Drawn: 12 of 14 models" in all_text(figure)


@pytest.mark.parametrize("name", ["scores", "gains", "score_vs_cost", "metric_vs_score", "selection"])
def test_thirty_two_tasks(name: str) -> None:
    tasks = {
        f"Task-number-{i}": ["Classification", "Clustering", "Reranking", "PairClassification"][i % 4] for i in range(32)
    }
    figure = draw(name, synthetic.build({"bert-base-uncased": 5}, tasks))
    assert "32 tasks" in all_text(figure)
    assert faults(figure) == {}


def test_long_names_are_cut() -> None:
    models = {"an-organisation-" + "very-" * 14 + "long-name": 4}
    tasks = {"a-task-" + "with-" * 12 + "a-name": "classification"}
    tables = synthetic.build(models, tasks)
    for name in [*OF_ALL_MODELS, "metric_prompt_entropy"]:
        figure = draw(name, tables)
        assert faults(figure) == {}, name


def test_a_table_that_lacks_columns_is_refused(study: dict[str, pd.DataFrame]) -> None:
    with pytest.raises(FileError, match=r"scores.csv lacks the columns readout"):
        draw("scores", {"scores": study["scores"].drop(columns="readout")})
