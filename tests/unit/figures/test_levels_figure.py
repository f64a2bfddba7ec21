"""The figure of changed tokens: means against the level, and a line per level over depth."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.figures import levels
from layerwise.figures.registry import resolve
from layerwise.figures.report import subject
from looking import all_text, faults, lines, panels

P = (0.0, 0.1, 0.5, 1.0)
METRICS = (
    ("prompt_entropy", "recipe", "raw"),
    ("prompt_entropy", "recipe", "centre_unit_skip_first"),
    ("curvature", "recipe", "centre_unit_skip_first"),
    ("dataset_entropy", "readout", "mean_normed"),
)


def table(transform: str = "repeat_tokens", of: tuple[float, ...] = P, draws: int = 2, models: int = 2) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for model in range(models):
        for level in of:
            for draw in range(draws):
                for metric, kind, name in METRICS:
                    for layer in range(7):
                        value = 3.0 + 0.1 * layer + level / max(of) + 0.2 * draw + model
                        rows.append(
                            {"transform": transform, "level": level, "draw": draw, "model": f"model-{model}"}
                            | {"dataset": "texts~changed", "task": "", "metric": metric, "variant": "paper", "readout": ""}
                            | {"recipe": "", "parameters": "{}", "tap": "residual", "unit": "nats", "undefined": ""}
                            | {"layer": layer, "depth": layer / 6, "value": value, "normalized": value / 10}
                            | {"null_value": 9.0, "null_normalized": 0.9, "null_broken_pairs": "", "se": 0.1, "n": 12}
                            | {"n_excluded": 0, kind: name}
                        )
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame | None, **options: Any) -> Any:
    return levels.draw({} if frame is None else {"levels": frame}, dataset="texts~changed", **options)


def test_means_over_layers_and_draws_against_the_level() -> None:
    figure = draw(table())
    assert faults(figure) == {}
    first = lines(panels(figure)[0])
    expected = np.mean([0.1 * layer for layer in range(1, 7)]) + 3.1 + np.array(P)
    np.testing.assert_allclose(first["model-0"][:, 1], expected / 10)
    assert len(panels(figure)) == 3 * len(METRICS)
    for word in (
        "p of repetition",
        "p = 0.5",
        "model-1: layers 0 to 6, n = 12",
        "least to greatest of 2 draws",
        "repeating one",
    ):
        assert word in all_text(figure)


def test_a_line_per_level_over_depth_with_its_null() -> None:
    panel = panels(draw(table()))[len(METRICS)]
    drawn = lines(panel)
    assert [name for name in drawn if name.startswith("p =")] == ["p = 0", "p = 0.1", "p = 0.5", "p = 1"]
    np.testing.assert_allclose(drawn["p = 1"][:, 0], np.arange(7) / 6)
    np.testing.assert_allclose(drawn["p = 1"][:, 1], (3.0 + 0.1 * np.arange(7) + 1 + 0.1) / 10)
    assert any(np.allclose(line.get_ydata(), 0.9) for line in panel.lines)


def test_random_prompts_are_drawn_in_nats() -> None:
    figure = draw(table("random_prompts", (64.0, 256.0, 1024.0), draws=1))
    assert faults(figure) == {}
    assert lines(panels(figure)[0])["model-0"][0, 1] == pytest.approx(3.35 + 64 / 1024)
    assert "1,024 tokens" in all_text(figure)
    assert "draws" not in all_text(figure)


@pytest.mark.parametrize("of", [(0.25, 1.0), (16.0, 64.0), tuple(np.linspace(0.05, 1, 20).round(2))])
def test_prefixes_by_share_or_by_tokens_stay_legible(of: tuple[float, ...]) -> None:
    figure = draw(table("prefixes", of, draws=1, models=6))
    assert faults(figure) == {}
    assert ("25 % of text" in all_text(figure)) == (0.25 in of and len(of) < 9)
    assert ("16 tokens" in all_text(figure)) == (16.0 in of)
    assert ("of 20 levels" in all_text(figure)) == (len(of) == 20)
    assert "Drawn: 4 of 6 models" in all_text(figure)


@pytest.mark.parametrize("frame", [None, pd.DataFrame(), table().assign(dataset="other"), table().assign(value=np.nan)])
def test_nothing_to_draw_is_a_sentence(frame: pd.DataFrame | None) -> None:
    figure = draw(frame)
    assert panels(figure) == []
    assert "There is nothing to draw" in all_text(figure)
    assert faults(figure) == {}


def test_one_level_and_undefined_layers() -> None:
    frame = table(of=(0.5,))
    frame.loc[frame["layer"] == 0, ["value", "normalized"]] = np.nan
    figure = draw(frame)
    assert faults(figure) == {}


def test_the_report_names_it() -> None:
    assert resolve("levels~texts~changed") == ("levels", {"dataset": "texts~changed"})
    assert subject("levels~texts~changed", {"levels": table()}, {}) == "metrics by level, n = 12 samples"
