"""The figures of the published numbers: marked layers, bars from the last layer, and the empty and the sparse case."""

import pandas as pd
import pytest
from layerwise.figures import style
from layerwise.figures.published import draw_scores, draw_selection
from looking import all_text, faults, lines, panels

KEYS = {"family": "Pythia", "size": "410m", "revision": "main"}
CURVE = [40.0, 45, 52, 47, 44]
SELECTORS = {"min-dime": 48.5, "min-dataset_entropy": 48.1, "last": 44.0, "middle": 48.2, "oracle": 53, "other_tasks": 51.0}


def tables(models: int = 1, curve: list[float] = CURVE) -> dict[str, pd.DataFrame]:
    summary, layers, selection = [], [], []
    for number in range(models):
        keys = KEYS | {"revision": f"step{number}"}
        last = 44.0 if len(curve) == 5 else float("nan")
        summary.append(keys | {"n_tasks": 32, "best_layer": 2, "best": 52.0, "last": last})
        layers += [
            keys | {"layer": layer, "depth": layer / 4, "n_tasks": 32, "score": score} for layer, score in enumerate(curve)
        ]
        selection += [keys | {"selector": name, "n_tasks": 29, "score": score} for name, score in SELECTORS.items()]
    frames = {"published_summary": summary, "published_layers": layers, "published_selection": selection}
    columns = {
        "published_layers": ["layer", "depth", "n_tasks", "score"],
        "published_selection": ["selector", "n_tasks", "score"],
    }
    return {
        name: pd.DataFrame(rows, columns=None if rows else [*KEYS, *columns.get(name, ["best"])])
        for name, rows in frames.items()
    }


@pytest.mark.parametrize("models", [1, 2, 5, 14])
def test_nothing_is_cut_off_and_nothing_overlaps(models: int) -> None:
    for draw in (draw_scores, draw_selection):
        figure = draw(tables(models))
        assert faults(figure) == {}
        assert len(panels(figure)) == min(models, 12)
        assert ("12 of 14 models" in all_text(figure)) == (models == 14)


def test_best_and_last_layer_are_marked() -> None:
    figure = draw_scores(tables())
    drawn = lines(panels(figure)[0])
    assert drawn["best"].tolist() == [[0.5, 52]]
    assert drawn["last"].tolist() == [[1, 44]]
    assert "best 52.0 at layer 2, last 44.0" in all_text(figure)
    assert "score (points)" in all_text(figure)


def test_a_missing_last_layer_is_not_marked() -> None:
    figure = draw_scores(tables(curve=CURVE[:4]))
    assert f"last {style.NOTHING}" in all_text(figure)


def test_bars_start_at_the_last_layer() -> None:
    axes = panels(draw_selection(tables()))[0]
    bars = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert {start for start, _ in bars} == {44.0}
    assert {end for _, end in bars} == {*SELECTORS.values(), 44.0}
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["oracle", "best on other tasks", "min DiME", "middle", "min dataset entropy", "last"]


def test_no_numbers_make_a_sentence() -> None:
    assert "no published score" in all_text(draw_scores(tables(0)))
    assert "no published choice" in all_text(draw_selection(tables(0)))
