"""Does the first token make the compression valley? Its norm and share beside the entropy, over depth, for every model."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, levels, place, room_for

QUESTION = "Does the first token make the compression valley?"
COLUMNS = 3
MODELS = 6
CENTRED = ("raw", "centre_unit", "centre_unit_skip_first")
UNIT = ("unit", "unit_skip_first")


@dataclass(frozen=True)
class Part:
    """One panel: a metric of tokens, the recipes that are drawn, the one at which the twin is, and whether 0..1 is its y.

    ``peak`` is how the largest value of its one curve is written beside it; empty where there are several curves.
    """

    metric: str
    title: str
    recipes: tuple[str, ...]
    twin: str
    share: bool = True
    peak: str = ""


# Causes before effects; the panels whose curves need names come last in their row.
PARTS = (
    Part("sink_norm_ratio", "first token's norm / median", ("raw",), "raw", share=False, peak="{:.3g} times"),
    Part("sink_variance_share", "its share of squared norms", ("raw",), "raw", peak="{:.3f}"),
    Part("prompt_entropy", "prompt entropy (of maximum)", CENTRED, "centre_unit"),
    Part("anisotropy", "mean cosine of tokens", UNIT, "unit"),
    Part("top_eigenvalue_share", "largest eigenvalue's share", CENTRED, "raw"),
)
NEEDED = ("sink_norm_ratio", "sink_variance_share")


def draw(tables: Mapping[str, pd.DataFrame], *, dataset: str = "lee") -> Figure:
    """Draw a row (or two) of panels per model; the largest value of each sink metric is written beside its layer.

    Args:
        tables: the result tables by name; ``metrics`` is used.
        dataset: the corpus; where the table lacks it, the first one on which a sink metric was computed.
    """
    metrics = reading.table(tables, "metrics")
    rows = {part.metric: _rows(metrics, part) for part in PARTS}
    sinks = pd.concat([rows[metric] for metric in NEEDED])
    corpora = sinks[sinks["task"] == ""]
    corpus = reading.first(corpora["dataset"] if len(corpora) else sinks["dataset"], dataset)
    rows = {metric: found[found["dataset"] == corpus] for metric, found in rows.items()}
    sinks = sinks[sinks["dataset"] == corpus]
    if sinks.empty:
        return style.sentence(QUESTION, f"There is no sink metric to draw: metrics.csv has neither of {', '.join(NEEDED)}.")
    models, left_out = reading.limit(reading.trained(sinks["model"]), MODELS, "models")
    shown = [part for part in PARTS if len(rows[part.metric])]
    columns = max(2, min(COLUMNS, len(shown)))
    counts = [len(shown)] * len(models)
    room = style.Room(left=0.44, right=room_for([*CENTRED, "untrained"]), between=(0.4, 0.8), above=0.5)
    notes = [*_notes(sinks, corpus, shown), left_out]
    made = style.sheet(QUESTION, notes, style.rows_for(counts, columns), columns, 1.35, room)
    for panels, model in zip(style.flow(made, counts), models, strict=True):
        own = sinks[sinks["model"] == model]
        style.heading(panels[0], f"{model}: {reading.layers_of(own)}, n = {own['n'].max():.0f}", lines=1)
        for index, (panel, part) in enumerate(zip(panels, shown, strict=True)):
            ends = _panel(panel, rows[part.metric], part, model)
            if index % columns == columns - 1 or panel is panels[-1]:
                end_labels(panel, ends, room.right)
            else:
                _names(panel, ends)
    return made.figure


def _rows(metrics: pd.DataFrame, part: Part) -> pd.DataFrame:
    rows = reading.metric_rows(metrics, part.metric)
    rows = rows[rows["recipe"].isin(part.recipes)]
    return rows[rows["y"].notna().groupby([rows["model"], rows["dataset"]]).transform("any").astype(bool)]


def _panel(axes: Axes, rows: pd.DataFrame, part: Part, model: str) -> list[tuple[str, str, float]]:
    """Draw one panel and return (name, colour, last value) of those of its curves that need a name."""
    own, twin = rows[rows["model"] == model], rows[rows["model"] == model + reading.TWIN]
    twin = twin[twin["recipe"] == part.twin]
    style.depth_axis(axes)
    values = [0.0, 1.0] if part.share else pd.concat([own["y"], twin["y"], own["null"]])
    style.value_axis(axes, values, scale="linear" if part.share else "log", free=(0.05, 0.12 if part.share else 0.2))
    style.panel_title(axes, part.title, extra=0.3)
    depth, y = reading.curve(twin, "y")
    if len(y):
        style.line(axes, depth, y, "untrained", color=style.GREY, linestyle="-", zorder=1.8)
    ends = [("untrained", style.GREY, float(y[-1]))] if len(y) else []
    for name in part.recipes:
        depth, y = reading.curve(own[own["recipe"] == name], "y")
        if len(y):
            style.line(axes, depth, y, name)
            ends += [(name, style.colour(name), float(y[-1]))] if len(part.recipes) > 1 else []
            if part.peak:
                _peak(axes, depth, y, part.peak)
    nulls = own.dropna(subset=["null"]).groupby("recipe", sort=False)["null"].mean()
    if len(nulls) and np.ptp(nulls) <= 0.02:
        levels(axes, [(float(nulls.mean()), "null", style.INK, "--")])
    elif len(nulls):
        levels(axes, [(float(value), "null", style.colour(str(name)), "--") for name, value in nulls.items()])
    return ends


def _peak(axes: Axes, depth: np.ndarray, values: np.ndarray, form: str) -> None:
    if not np.isfinite(values).any():
        return
    at = int(np.nanargmax(values))
    layer = round(float(depth[at]) * (len(depth) - 1)) if depth[0] == 0 else at
    axes.plot([depth[at]], [values[at]], marker="o", color=style.INK, markersize=3, linestyle="", label="peak")
    place(axes, f"layer {layer}:\n{form.format(values[at])}", [(float(depth[at]), float(values[at]))])


def _names(axes: Axes, ends: list[tuple[str, str, float]]) -> None:
    """Write names beside their curves, where there is no room for them right of the panel."""
    drawn = {str(line.get_label()): np.asarray(line.get_xydata(), dtype=float) for line in axes.lines}
    for name, shade, _ in ends:
        points = drawn[name][np.isfinite(drawn[name]).all(axis=1)]
        if len(points):
            place(axes, name, [(float(x), float(y)) for x, y in points], shade)


def _notes(sinks: pd.DataFrame, corpus: str, shown: list[Part]) -> list[str]:
    grey = sinks["model"].str.endswith(reading.TWIN).any()
    twins = ", ".join(f"{part.twin} ({part.metric})" for part in shown if len(part.recipes) > 1)
    return [
        f"On {corpus}, means over n documents. First two panels, raw tokens: norm of the first token over the median norm",
        "of the others; its part of the sum of squared norms, below which the largest eigenvalue's share cannot fall.",
        "Entropy as in the figure valley. Where it has no valley without the first token, that token made it.",
        "Dashed (null): random tokens; depth is layer / last layer.",
        f"Grey: the untrained twin; recipe {twins}, else raw." if grey else "",
    ]
