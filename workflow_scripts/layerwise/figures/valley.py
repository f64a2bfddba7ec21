"""What is the compression valley made of? Prompt entropy over depth in each recipe, for every text model."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, levels, place, room_for

QUESTION = "What is the compression valley made of?"
METRIC = "prompt_entropy"
RECIPES = ("raw", "centre_unit", "centre_unit_skip_first")
WITH, WITHOUT = "centre_unit", "centre_unit_skip_first"
COLUMNS = 3
MODELS = 12


def draw(tables: Mapping[str, pd.DataFrame], *, dataset: str = "lee") -> Figure:
    """Draw a panel per model; an arrow marks the layer at which dropping the first token changes most.

    Args:
        tables: the result tables by name; ``metrics`` is used.
        dataset: the corpus; where the table lacks it, the first one with token statistics.
    """
    rows = reading.metric_rows(reading.table(tables, "metrics"), METRIC)
    rows = rows[rows["recipe"].isin(RECIPES) & rows["y"].notna().groupby(rows["model"]).transform("any")]
    corpora = rows[rows["task"] == ""]
    corpus = reading.first(corpora["dataset"] if len(corpora) else rows["dataset"], dataset)
    rows = rows[rows["dataset"] == corpus]
    if rows["y"].notna().sum() == 0:
        return style.sentence(QUESTION, "There is no prompt entropy to draw: no dataset collects token statistics.")
    models, left_out = reading.limit(reading.trained(rows["model"]), MODELS, "models")
    columns = min(COLUMNS, max(2, len(models)))
    lines = -(-len(models) // columns)
    names = [*RECIPES, "untrained"]
    room = style.Room(left=0.5, right=room_for(names), between=(0.3, 0.6), above=0.3)
    made = style.sheet(QUESTION, [*_notes(rows, corpus), left_out], lines, columns, 1.9, room)
    panels = style.flow(made, [len(models)])[0]
    for index, (panel, model) in enumerate(zip(panels, models, strict=True)):
        ends = _panel(panel, rows, model)
        if index % columns == columns - 1 or panel is panels[-1]:
            end_labels(panel, ends, room.right)
        panel.tick_params(labelleft=index % columns == 0)
        panel.set_ylabel("prompt entropy (share of maximum)" if index % columns == 0 else "", size=style.SMALL, labelpad=2)
    return made.figure


def _panel(axes: Axes, rows: pd.DataFrame, model: str) -> list[tuple[str, str, float]]:
    own = rows[rows["model"] == model]
    twin = rows[(rows["model"] == model + reading.TWIN) & (rows["recipe"] == WITH)]
    style.depth_axis(axes)
    style.value_axis(axes, [0.0, 1.0], free=(0.05, 0.12))
    style.panel_title(axes, f"{model}, {reading.layers_of(own)}, n = {own['n'].max():.0f}", extra=0.2)
    depth, values = reading.curve(twin, "y")
    if len(values):
        style.line(axes, depth, values, "untrained", color=style.GREY, linestyle="-", zorder=1.8)
    ends = [("untrained", style.GREY, float(values[-1]))] if len(values) else []
    curves = {name: reading.curve(own[own["recipe"] == name], "y") for name in RECIPES if (own["recipe"] == name).any()}
    for name, (depth, values) in curves.items():
        style.line(axes, depth, values, name)
        ends.append((name, style.colour(name), float(values[-1])))
    if WITH in curves and WITHOUT in curves:
        _gap(axes, curves[WITH], curves[WITHOUT][1])
    nulls = own.dropna(subset=["null"]).groupby("recipe", sort=False)["null"].mean()
    if len(nulls):
        same = np.ptp(nulls) <= 0.02
        lines = [(float(nulls.mean()), "null", style.INK, "--")]
        levels(axes, lines if same else [(float(v), "null", style.colour(str(k)), "--") for k, v in nulls.items()])
    return ends


def _gap(axes: Axes, kept: tuple[np.ndarray, np.ndarray], dropped: np.ndarray) -> None:
    depth, values = kept
    if values.shape != dropped.shape or not np.isfinite(dropped - values).any():
        return
    at = int(np.nanargmax(np.abs(dropped - values)))
    low, high, x = float(values[at]), float(dropped[at]), float(depth[at])
    axes.plot([x, x], [low, high], color=style.INK, linewidth=0.7, label="gap", zorder=1.6)
    axes.plot([x], [high - 0.025 * np.sign(high - low)], marker="^" if high > low else "v", color=style.INK, markersize=4)
    layer = round(x * (len(depth) - 1)) if depth[0] == 0 else at
    text = f"without the first token,\nlayer {layer}: {low:.2f} to {high:.2f}"
    heights = [low + share * (high - low) for share in (0.5, 0.35, 0.65)]
    place(axes, text, [(x, y) for y in heights] + [(min(max(x, 0.45), 0.55), y) for y in heights])


def _notes(rows: pd.DataFrame, corpus: str) -> list[str]:
    grey = rows["model"].str.endswith(reading.TWIN).any()
    return [
        f"Prompt entropy (variant paper) on {corpus}, mean over n documents. {reading.measure(METRIC).note}",
        "raw: tokens as they are; centre_unit: minus the prompt's mean, unit norm (the authors');",
        "centre_unit_skip_first: the same without the first token. Arrow: the layer where dropping it changes most.",
        "Dashed: random tokens.",
        f"Grey: the untrained twin, recipe {WITH}. Depth is layer / last layer." if grey else "Depth is layer / last layer.",
    ]
