"""One panel of scores over depth: a line per readout, the untrained twin, baselines, and the marked layers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from layerwise.figures import reading, style
from layerwise.figures.labels import levels, place

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


def layers_and_baselines(scores: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of layers of the residual stream, one protocol per task, and the baselines in those protocols."""
    layers = reading.one_protocol(scores[scores["baseline"] == ""].dropna(subset=["layer"]), ("task",))
    layers = layers[layers["tap"].isin(["", "residual"])]
    kept = layers[["task", "protocol"]].drop_duplicates()
    return layers, scores[scores["baseline"].isin(BASELINES)].merge(kept, on=["task", "protocol"])


def make_cell(
    own: pd.DataFrame, twin: pd.DataFrame, baselines: pd.DataFrame, title: str, tasks: list[str], mean: bool = False
) -> Cell:
    """Return the panel of one task, or with ``mean`` of the mean over ``tasks``, in points.

    Args:
        own: rows of the scores of one model.
        twin: rows of its untrained twin at the headline readout; none if it has no twin.
        baselines: the second table of ``layers_and_baselines``.
        title: the name of the task or of its type.
        tasks: the tasks to draw.
        mean: draw one curve per readout averaged over the tasks that are complete at every readout that most tasks have;
            tasks without these readouts (attention probes) are left out of a mean with others.
    """
    rows = own[own["task"].isin(tasks)]
    kind = reading.first(rows["type"]).replace("_", " ")
    if mean:
        rows = _comparable(rows)
        whole = [set(reading.over_tasks(each, "score")[1]) for _, each in rows.groupby("readout")]
        every, tasks = len(tasks), sorted(set.intersection(*whole))
        kind = f"mean of {len(tasks)} tasks" if len(tasks) == every else f"mean of {len(tasks)} of {every} tasks"
        twin = twin if set(tasks) <= set(reading.over_tasks(twin[twin["task"].isin(tasks)], "score")[1]) else twin.iloc[:0]
    curves, grey = (_curves(part[part["task"].isin(tasks)], mean) for part in (rows, twin))
    floors = baselines[baselines["task"].isin(tasks)].dropna(subset=["score"]).groupby("baseline", sort=False)["score"]
    levels_of = {str(name): 100 * part.mean() for name, part in floors if len(part) == len(tasks)}
    return Cell(title.replace("_", " ") if mean else title, kind, curves, grey, levels_of)


def _comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the tasks that have the same readouts as most others: a mean has one readout, the same for all its tasks."""
    sets = rows.groupby("task")["readout"].agg(_names)
    return rows[rows["task"].map(sets) == sets.value_counts().index[0]] if len(sets) else rows


def _names(values: pd.Series) -> str:
    return " ".join(sorted(set(values)))


def _curves(rows: pd.DataFrame, mean: bool) -> Curves:
    parts = {str(name): part for name, part in rows.groupby("readout", sort=False)}
    if mean:
        parts = {name: reading.over_tasks(part, "score")[0] for name, part in parts.items()}
    found = {name: reading.curve(part, "score") for name, part in parts.items()}
    return reading.merge_equal({name: (depth, 100 * score) for name, (depth, score) in found.items() if len(depth)})


def draw_cell(axes: Axes, cell: Cell, headline: str, values: list[float]) -> None:
    """Draw a cell on an axis that holds ``values``; best and last layer of ``headline`` or the only curve are marked."""
    style.depth_axis(axes, label=False)
    style.value_axis(axes, values, free=(0.12, 0.27 / style.size_of(axes)[1]))
    for depth, score in cell.twin.values():
        style.line(axes, depth, score, "untrained", color=style.GREY, linestyle="-", zorder=1.8)
    main = {name for name in cell.curves if headline in name.split(" = ")}
    main = main or set(list(cell.curves) if len(cell.curves) == 1 else [])
    for name, (depth, score) in cell.curves.items():
        style.line(axes, depth, score, name, linewidth=1.5 if name in main else 0.9, zorder=3 if name in main else 2)
    for name, (depth, score) in cell.curves.items():
        if name in main and np.isfinite(score).any():
            mark(axes, depth, score, style.colour(name))
    levels(axes, [(value, name.replace("_", " "), "#555555", ":") for name, value in cell.baselines.items()])


def mark(axes: Axes, depth: np.ndarray, score: np.ndarray, shade: str) -> None:
    """Mark the best layer of a curve with a ring and its number, and the last with a square."""
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


def ends_of(cell: Cell) -> list[tuple[str, str, float]]:
    """Return (name, colour, last value) of every curve, for ``end_labels``."""
    ends = [(name, style.colour(name), float(score[-1])) for name, (_, score) in cell.curves.items()]
    return ends + [("untrained", style.GREY, float(score[-1])) for _, score in cell.twin.values()]
