"""Scores against cost: what is drawn of which model, the marked layers, and models without a known cost."""

import numpy as np
import pandas as pd
import pytest
import synthetic
from layerwise.figures import score_vs_cost
from looking import all_text, faults, lines, panels


def test_points_are_flops_and_points_of_the_layers_from_one_on(study: dict[str, pd.DataFrame]) -> None:
    figure = score_vs_cost.draw(study)
    assert len(panels(figure)) == 5
    drawn = lines(panels(figure)[0])
    assert set(drawn) == {"smollm2-135m", "minilm-l6", "best", "last"}  # no untrained twin
    own = synthetic.score_curve(31, "sentiment", "mean_normed")
    np.testing.assert_allclose(drawn["smollm2-135m"], np.c_[1.5e8 * np.arange(1, 31), 100 * own[1:]])
    np.testing.assert_allclose(drawn["last"][0], [1.5e8 * 6, 100 * synthetic.score_curve(7, "sentiment", "mean_normed")[-1]])
    best = 1 + int(own[1:].argmax())
    assert f"{best}: {100 * best / 30:.0f} %" in all_text(figure)


def test_models_that_share_no_task_stand_in_rows_of_their_own(study: dict[str, pd.DataFrame]) -> None:
    other = synthetic.build({"dinov2-s": 13}, {"quadrant": "image_classification"})
    figure = score_vs_cost.draw({name: pd.concat([study[name], other[name]]) for name in ("scores", "layer_costs")})
    assert len(panels(figure)) == 6
    assert faults(figure) == {}
    shades = {line.get_color() for panel in panels(figure) for line in panel.lines if line.get_label() == "dinov2-s"}
    rest = {line.get_color() for panel in panels(figure) for line in panel.lines if line.get_label() == "minilm-l6"}
    assert len(shades) == len(rest) == 1
    assert shades != rest


def test_many_tasks_are_means_over_those_that_have_every_layer() -> None:
    tasks = {f"t{i}": ["classification", "sts"][i % 2] for i in range(8)}
    tables = synthetic.build({"minilm-l6": 7}, tasks)
    rows = tables["scores"]
    tables["scores"] = rows[~((rows["task"] == "t0") & (rows["layer"] == 3))]
    figure = score_vs_cost.draw(tables)
    assert ["classification, 4 tasks" in all_text(figure), "all, 8 tasks" in all_text(figure)] == [True, True]
    mean = np.mean([synthetic.score_curve(7, f"t{i}", "mean_normed")[1:] for i in (2, 4, 6)], axis=0)
    np.testing.assert_allclose(lines(panels(figure)[0])["minilm-l6"][:, 1], 100 * mean)


def test_a_model_without_a_cost_is_not_drawn(study: dict[str, pd.DataFrame]) -> None:
    costs = study["layer_costs"].copy()
    costs.loc[costs["model"] == "minilm-l6", ["parameters", "parameters_share", "flops", "flops_share"]] = np.nan
    assert "minilm-l6" not in all_text(score_vs_cost.draw(study | {"layer_costs": costs}))
    costs[["flops", "flops_share"]] = np.nan
    assert "There is no score with a cost" in all_text(score_vs_cost.draw(study | {"layer_costs": costs}))


@pytest.mark.parametrize("count", [8, 12])
def test_models_beyond_eight_are_named(count: int) -> None:
    tables = synthetic.build({f"model-{i:02d}": 4 for i in range(count)}, {"genre": "classification"})
    size = 1 + tables["layer_costs"]["model"].str[-2:].astype(int)
    tables["layer_costs"]["flops"] *= size**2
    figure = score_vs_cost.draw(tables)
    assert faults(figure) == {}
    assert ("model-11" in all_text(figure)) == (count == 12)
    assert ("Not drawn, beyond 8 models: model-08" in all_text(figure)) == (count == 12)
