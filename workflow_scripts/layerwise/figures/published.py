"""The study's published numbers, drawn like ours: scores over depth, and what each way of choosing a layer is worth."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import beside, column_head, key
from layerwise.figures.score_panel import Cell, draw_cell

WHICH = "Which layer was best in the published results?"
KNOWN = "Could one know the best layer in the published results?"
MODELS = 12
COLUMNS = 3
STEP = 0.17
READOUT = "mean_normed"  # the published scores were taken after the final norm at every layer
KINDS = {
    "metric": ("●", "o", style.COLOURS["mean_normed"], "smallest value of a metric, no labels"),
    "rule": ("■", "s", style.INK, "fixed rule, no labels"),
    "labels": ("◆", "D", style.COLOURS["mean"], "uses other tasks' labels"),
    "oracle": ("▲", "^", style.COLOURS["mean_skip_first"], "best layer of each task"),
}
NAMES = {"other_tasks": "best on other tasks", "random": "random (mean of layers)"}


def draw_scores(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the mean score of every layer, a panel per published model.

    Args:
        tables: ``published_summary`` and ``published_layers`` as ``layerwise.tables.published`` makes them.
    """
    summary, layers = _named(tables["published_summary"]), _named(tables["published_layers"])
    if layers.empty:
        return style.sentence(WHICH, "There is no published score to draw.")
    models, left_out = reading.limit(reading.unique(summary["model"]), MODELS, "models")
    columns = min(COLUMNS, len(models))
    notes = [
        "Mean of the tasks that have a score at every layer, 100 x main score; taken after the model's final norm.",
        f"Depth is layer / last layer. Ring and number: best layer; square: last layer. {left_out}",
    ]
    made = style.sheet(WHICH, notes, -(-len(models) // columns), columns, 1.5, style.Room(above=0.5, between=(0.5, 0.86)))
    for axes, model in zip(style.flow(made, [len(models)])[0], models, strict=True):
        row = summary[summary["model"] == model].iloc[0]
        curve = _curve(layers[layers["model"] == model])
        draw_cell(axes, Cell(model, "", {READOUT: curve}, {}), READOUT, curve[1].tolist())
        last = style.NOTHING if np.isnan(row["last"]) else f"{row['last']:.1f}"
        best = f"best {row['best']:.1f} at layer {row['best_layer']}, last {last}"
        style.panel_title(axes, f"{model}, {row['n_tasks']} tasks", best)
        style.depth_axis(axes)
        axes.set_ylabel("score (points)", size=style.SMALL, labelpad=2)
    return made.figure


def draw_selection(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the score of every way to choose a layer as its distance from the last layer's, a panel per model.

    Args:
        tables: ``published_selection`` as ``layerwise.tables.published`` makes it.
    """
    rows = _named(tables["published_selection"])
    if rows.empty:
        return style.sentence(KNOWN, "There is no published choice of a layer to draw.")
    models, left_out = reading.limit(reading.unique(rows["model"]), MODELS, "models")
    columns = min(2, len(models))
    most = int(rows.groupby("model").size().max())
    left = 0.25 + style.CHARACTER * max(len(_name(str(selector))) for selector in rows["selector"])
    room = style.Room(left=left, right=0.42, between=(left + 0.36, 0.84), above=0.56)
    notes = [
        "Mean over the tasks that have all three metrics. Bar: from the last layer's score (dashed). Right: the score.",
        "The metric's smallest value is taken per task, as in the study; middle is layer L // 2; random is the mean over",
        f"layers. Best on other tasks: one layer per task, chosen on the labels of the others. {left_out}",
    ]
    made = style.sheet(KNOWN, notes, -(-len(models) // columns), columns, STEP * (most + 0.6), room)
    key(made.figure, [(f"{sign} {text}", shade) for sign, _, shade, text in KINDS.values()])
    for axes, model in zip(style.flow(made, [len(models)])[0], models, strict=True):
        _selectors(axes, rows[rows["model"] == model], model, most)
    return made.figure


def _curve(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Depth and score of every layer from 0 to the last, NaN where a layer is missing."""
    last = round(float((rows["layer"] / rows["depth"].where(rows["depth"] > 0)).max()))
    scores = rows.set_index("layer")["score"].reindex(range(last + 1))
    return np.linspace(0.0, 1.0, last + 1), scores.to_numpy(float)


def _selectors(axes: Axes, rows: pd.DataFrame, model: str, most: int) -> None:
    rows = rows.sort_values("score", ascending=False, kind="stable").reset_index(drop=True)
    last = float(rows[rows["selector"] == "last"]["score"].mean())
    pad = 0.06 * float(np.ptp(rows["score"])) or 1.0
    axes.set_xlim(rows["score"].min() - pad, rows["score"].max() + pad)
    axes.set_ylim(most - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [_name(str(selector)) for selector in rows["selector"]], size=style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(4, min_n_ticks=2))
    axes.set_xlabel("mean score (points)", size=style.SMALL, labelpad=1.5)
    if np.isfinite(last):
        axes.axvline(last, color=style.INK, linewidth=0.7, linestyle="--", zorder=1, label="last layer")
    style.panel_title(axes, model, f"{rows['n_tasks'].max()} tasks", extra=0)
    column_head(axes, "points")
    for y, (selector, score) in enumerate(zip(rows["selector"], rows["score"], strict=True)):
        _, marker, shade, _ = KINDS[_kind(str(selector))]
        axes.plot([last, score], [y, y], color=shade, linewidth=2.2, solid_capstyle="butt", zorder=2)
        axes.plot([score], [y], marker, color=shade, markersize=4, markeredgewidth=0, zorder=3, label=str(selector))
        axes.get_yticklabels()[y].set_color(shade)
        beside(axes, y, f"{score:.1f}")


def _named(rows: pd.DataFrame) -> pd.DataFrame:
    names = rows["family"] + " " + rows["size"] + " " + rows["revision"] if len(rows) else ""
    return rows.assign(model=names)


def _name(selector: str) -> str:
    if selector.startswith("min-"):
        return f"min {reading.measure(selector.removeprefix('min-')).title}"
    return NAMES.get(selector, selector)


def _kind(selector: str) -> str:
    if selector.startswith("min-"):
        return "metric"
    return {"oracle": "oracle", "other_tasks": "labels"}.get(selector, "rule")
