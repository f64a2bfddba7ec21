"""Which layer is best? Scores over depth, a row per model and a column per task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, levels, place, room_for

QUESTION = "Which layer is best?"
COLUMNS = 6
ROWS = 12
BASELINES = ("majority", "tfidf", "raw_pixels")
Curves = dict[str, tuple[np.ndarray, np.ndarray]]


@dataclass
class Cell:
    """What one panel shows: a task, or the mean over the tasks of one type."""

    title: str
    detail: str
    curves: Curves
    twin: Curves
    baselines: dict[str, float] = field(default_factory=dict)

    def values(self) -> list[float]:
        """Return every number that the panel must have room for."""
        drawn = [values for _, values in (*self.curves.values(), *self.twin.values())]
        return [*np.concatenate([np.empty(0), *drawn]).tolist(), *self.baselines.values()]


def draw(tables: Mapping[str, pd.DataFrame], *, headline_readout: str = style.HEADLINE_READOUT) -> Figure:
    """Draw the scores of every layer; more than six tasks are drawn as means over each type of task.

    Args:
        tables: the result tables by name; ``scores`` is used.
        headline_readout: the readout whose best and last layers are marked.
    """
    scores = reading.table(tables, "scores")
    layers = reading.one_protocol(scores[scores["baseline"] == ""].dropna(subset=["layer"]), ("task",))
    layers = layers[layers["tap"].isin(["", "residual"])]
    if layers["score"].notna().sum() == 0:
        return style.sentence(QUESTION, "There is no score to draw: this study scores no task (scores.csv has no layer).")
    models, left_out = reading.limit(reading.trained(layers["model"]), ROWS, "models")
    headline = reading.first(layers["readout"], headline_readout)
    baselines = scores[scores["baseline"].isin(BASELINES)].merge(
        layers[["task", "protocol"]].drop_duplicates(), on=["task", "protocol"]
    )
    rows = {model: _cells(layers, baselines, model, headline) for model in models}
    names = ["untrained", *(name for cells in rows.values() for cell in cells for name in cell.curves)]
    dense = style.density(len(rows))
    room = style.Room(right=room_for(names), above=0.56, between=(0.36, dense.gap))
    columns = max(len(cells) for cells in rows.values())
    made = style.sheet(QUESTION, [*_notes(layers, headline), left_out], len(rows), columns, dense.height, room)
    for axes, (model, cells) in zip(made.axes, rows.items(), strict=True):
        style.heading(axes[0], f"{model}: {reading.layers_of(layers[layers['model'] == model])}", dense.lines)
        for panel, cell in zip(axes, cells, strict=False):
            shared = [other for others in rows.values() for other in others if other.title == cell.title]
            _panel(panel, cell, headline, [value for other in shared for value in other.values()])
            style.panel_title(panel, *(cell.title, cell.detail)[: dense.lines])
            style.depth_axis(panel, dense.every_label or axes is made.axes[-1])
        axes[0].set_ylabel("score (points)", size=style.SMALL, labelpad=2)
        end_labels(axes[len(cells) - 1], _ends(cells[-1]), room.right)
        for panel in axes[len(cells) :]:
            panel.set_axis_off()
    return made.figure


def _cells(layers: pd.DataFrame, baselines: pd.DataFrame, model: str, headline: str) -> list[Cell]:
    own = layers[layers["model"] == model]
    twin = layers[(layers["model"] == model + reading.TWIN) & (layers["readout"] == headline)]
    tasks = reading.unique(own["task"])
    if len(tasks) <= COLUMNS:
        groups = {task: [task] for task in tasks}
    else:
        groups = {kind: reading.unique(own[own["type"] == kind]["task"]) for kind in reading.unique(own["type"])}
        groups = dict(list(groups.items())[: COLUMNS - 1]) | {"all": tasks}
    cells = [_cell(own, twin, baselines, title, members, len(tasks) > COLUMNS) for title, members in groups.items()]
    return [cell for cell in cells if cell.curves] or [Cell("no complete task", "", {}, {})]


def _cell(own: pd.DataFrame, twin: pd.DataFrame, baselines: pd.DataFrame, title: str, tasks: list[str], mean: bool) -> Cell:
    rows = own[own["task"].isin(tasks)]
    kind = reading.first(rows["type"]).replace("_", " ")
    if mean:
        whole = [set(reading.over_tasks(each, "score")[1]) for _, each in rows.groupby("readout")]
        tasks = sorted(set.intersection(*whole))
        kind = f"mean of {len(tasks)} tasks"
    curves, grey = (_curves(part[part["task"].isin(tasks)], mean) for part in (rows, twin))
    floors = baselines[baselines["task"].isin(tasks)].dropna(subset=["score"]).groupby("baseline", sort=False)["score"]
    levels_of = {str(name): 100 * part.mean() for name, part in floors if len(part) == len(tasks)}
    return Cell(title.replace("_", " ") if mean else title, kind, curves, grey, levels_of)


def _curves(rows: pd.DataFrame, mean: bool) -> Curves:
    parts = {str(name): part for name, part in rows.groupby("readout", sort=False)}
    if mean:
        parts = {name: reading.over_tasks(part, "score")[0] for name, part in parts.items()}
    found = {name: reading.curve(part, "score") for name, part in parts.items()}
    return reading.merge_equal({name: (depth, 100 * score) for name, (depth, score) in found.items() if len(depth)})


def _panel(axes: Axes, cell: Cell, headline: str, values: list[float]) -> None:
    style.depth_axis(axes, label=False)
    style.value_axis(axes, values, free=(0.12, 0.27 / style.size_of(axes)[1]))
    for depth, score in cell.twin.values():
        style.line(axes, depth, score, "untrained", color=style.GREY, linestyle="-", zorder=1.8)
    for name, (depth, score) in cell.curves.items():
        marked = headline in name.split(" = ")
        style.line(axes, depth, score, name, linewidth=1.5 if marked else 0.9, zorder=3 if marked else 2)
    for name, (depth, score) in cell.curves.items():
        if headline in name.split(" = ") and np.isfinite(score).any():
            _mark(axes, depth, score, style.colour(name))
    levels(axes, [(value, name.replace("_", " "), "#555555", ":") for name, value in cell.baselines.items()])


def _mark(axes: Axes, depth: np.ndarray, score: np.ndarray, shade: str) -> None:
    best = int(np.nanargmax(score))
    ring: dict[str, Any] = {
        "markerfacecolor": "none",
        "markeredgewidth": 1.1,
        "linestyle": "none",
        "color": shade,
        "zorder": 4,
        "clip_on": False,
    }
    axes.plot(depth[best], score[best], marker="o", markersize=6.5, label="best", **ring)
    if np.isfinite(score[-1]):
        axes.plot(depth[-1], score[-1], marker="s", markersize=4, label="last", **ring)
    layer = round(float(depth[best]) * (len(depth) - 1)) if depth[0] == 0 else best
    place(axes, str(layer), [(float(depth[best]), float(score[best]))], shade)


def _ends(cell: Cell) -> list[tuple[str, str, float]]:
    ends = [(name, style.colour(name), float(score[-1])) for name, (_, score) in cell.curves.items()]
    return ends + [("untrained", style.GREY, float(score[-1])) for _, score in cell.twin.values()]


def _notes(layers: pd.DataFrame, headline: str) -> list[str]:
    protocols = [
        f"{protocol} ({', '.join(reading.unique(rows['task']))})" if layers["task"].nunique() <= COLUMNS else str(protocol)
        for protocol, rows in layers.groupby("protocol", sort=False)
    ]
    items = layers.drop_duplicates("task").set_index("task")["n_items"].dropna()
    counts = ", ".join(f"{task} {int(n)}" for task, n in items.items()) if len(items) <= COLUMNS else ""
    spread = " to ".join(f"{n:.0f}" for n in sorted({items.min(), items.max()})) if len(items) > COLUMNS else counts
    return [
        "Depth is layer / last layer; points are 100 x the task's main score; one line per readout.",
        f"Ring and number: best layer of {headline}; square: its last layer. Dotted: baselines without a model.",
        f"Protocol: {', '.join(protocols)}. Test items: {spread or 'not recorded'}.",
    ]
