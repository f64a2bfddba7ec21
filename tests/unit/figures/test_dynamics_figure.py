"""The figure of a training run: a panel per measure, a line per checkpoint, legible with few and many steps."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.figures import dynamics, reading, style
from layerwise.figures.registry import resolve
from layerwise.figures.report import subject
from looking import all_text, faults, lines, panels

STEPS = (0, 4, 16, 64, 300)


def table(steps: tuple[int, ...] = STEPS, layers: int = 9, losses: bool = True, tasks: int = 2) -> pd.DataFrame:
    """A run whose curves bend more at every checkpoint."""
    rows: list[dict[str, Any]] = []
    kinds = [("layer_change", "mean", "", ""), ("layer_change", "mean_normed", "", "")]
    kinds += [("prompt_entropy", "", "centre_unit_skip_first", "nats"), ("dataset_entropy", "mean", "", "nats")]
    for at, step in enumerate(steps):
        for metric, readout, recipe, unit in kinds:
            for layer in range(layers):
                depth = layer / (layers - 1)
                value = 0.1 + 0.2 * at * depth * (1 - depth) / len(steps)
                value = np.nan if metric == "layer_change" and not layer else value
                rows.append(
                    {"model": "mini", "step": step, "dataset": "verses", "task": "", "metric": metric, "variant": "paper"}
                    | {"readout": readout, "recipe": recipe, "parameters": '{"alpha":1.0}', "layer": layer, "depth": depth}
                    | {"value": value, "change_to_final": 0.0, "stability": 0.4 + 0.6 * (at + 1) / len(steps)}
                    | {"stability_debiased": 0.3, "joined_readout": readout or "mean", "n": 132, "unit": unit}
                    | {"score": 0.2 + 0.1 * depth if tasks else np.nan, "n_tasks": tasks or np.nan}
                    | {"train_loss": 6.0 - at if losses else np.nan, "heldout_loss": 6.2 - at if losses else np.nan}
                )
    return pd.DataFrame(rows)


def test_a_panel_per_measure_and_a_line_per_checkpoint() -> None:
    figure = dynamics.draw({"training_dynamics": table()}, model="mini", headline_readout="mean")
    assert faults(figure) == {}
    assert len(panels(figure)) == 6
    text = all_text(figure)
    for part in (
        "loss of its objective",
        "held out: 6.2 to 2.2",
        "score, mean of 2 tasks",
        "layer change, n = 132",
        "stability",
    ):
        assert part in text
    assert "prompt entropy" in text
    assert "of verses" in text
    over_steps, *over_depth = panels(figure)
    assert set(lines(over_steps)) == {"training", "held out"}
    np.testing.assert_allclose(lines(over_steps)["held out"][:, 0], np.log10(np.array(STEPS) + 1))
    for axes in over_depth:
        assert set(lines(axes)) == {f"step {step}" for step in STEPS}
    assert np.isfinite(lines(over_depth[1])["step 300"][:, 1]).sum() == 8  # layer 0 has no layer before it
    assert np.isfinite(lines(over_depth[2])["step 300"][:, 1]).all()
    assert "step 300" in text


@pytest.mark.parametrize("steps", [(0, 1), (0, *(2**power for power in range(14))), (1000, 143000)])
def test_it_stays_legible(steps: tuple[int, ...]) -> None:
    for losses, tasks in ((True, 1), (False, 0)):
        figure = dynamics.draw({"training_dynamics": table(steps, losses=losses, tasks=tasks)}, model="mini")
        assert faults(figure) == {}
        assert ("loss" in all_text(figure)) == losses
        assert len(lines(panels(figure)[-1])) == min(len(steps), dynamics.STEPS)
        assert ("checkpoints; the table holds the rest" in all_text(figure)) == (len(steps) > dynamics.STEPS)


def test_pale_to_dark() -> None:
    shades = style.shades(6)
    brightness = [sum(int(shade[i : i + 2], 16) * w for i, w in ((1, 0.3), (3, 0.59), (5, 0.11))) for shade in shades]
    assert brightness == sorted(brightness, reverse=True)
    assert brightness[0] < 205  # seen on white


@pytest.mark.parametrize("frame", [None, pd.DataFrame(), table().assign(model="other"), table((5,))])
def test_what_is_no_training_is_a_sentence(frame: pd.DataFrame | None) -> None:
    tables = {} if frame is None else {"training_dynamics": frame}
    figure = dynamics.draw(tables, model="mini")
    assert panels(figure) == []
    assert "There is no training to draw" in all_text(figure)
    assert faults(figure) == {}


def test_gaps_stay_gaps_and_an_unknown_dataset_takes_the_first() -> None:
    frame = table()
    frame.loc[(frame["step"] == 16) & (frame["layer"] == 4), ["value", "stability", "score"]] = np.nan
    figure = dynamics.draw({"training_dynamics": frame}, model="mini", dataset="pictures", headline_readout="mean")
    assert faults(figure) == {}
    assert np.isnan(lines(panels(figure)[2])["step 16"][4, 1])


def test_the_report_names_it() -> None:
    assert resolve("dynamics~mini") == ("dynamics", {"model": "mini"})
    named = subject("dynamics~mini", {"training_dynamics": table()}, {"dataset": "verses"})
    assert named == "training dynamics, n = 132 samples"


def test_other_figures_show_the_last_checkpoint_of_a_run() -> None:
    names = ["a@step0", "b", "a@step8", "a@step8-untrained", "c@step1", "a@step4"]
    assert reading.trained(names) == ["b", "a@step8", "c@step1"]
