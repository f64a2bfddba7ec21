"""Where in a block does a metric change? Metrics over depth, a line per place in the block."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, levels, room_for

QUESTION = "Where in a block do the metrics change?"
PLACES = {
    "residual": ("after the block", "#222222"),
    "attention_norm": ("after attention norm", "#56B4E9"),
    "attention": ("attention output", "#0072B2"),
    "attention_residual": ("attention + residual", "#009E73"),
    "mlp": ("MLP output", "#D55E00"),
}
COLUMNS = 3
MODELS = 8
HEIGHT = 1.3


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    dataset: str = "",
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw every metric that was computed inside the blocks, variant ``paper``: a group of panels per model.

    Args:
        tables: the result tables by name; ``metrics`` is used.
        dataset: the corpus; where it was read at the residual stream only, the first one that was read inside the blocks.
        headline_readout: of pooled vectors.
        headline_recipe: of token metrics, beside ``raw``.
    """
    frame = reading.table(tables, "metrics")
    frame = frame[(frame["variant"] == "paper") & frame["value"].notna()]
    inside = frame[~frame["tap"].isin(["", "residual"])]
    corpus = reading.first(inside["dataset"], dataset)
    frame = frame[(frame["dataset"] == corpus) & frame["metric"].isin(inside["metric"])]
    groups = {
        model: _parts(frame[frame["model"] == model], headline_readout, headline_recipe)
        for model in reading.trained(inside[inside["dataset"] == corpus]["model"])[:MODELS]
    }
    if not groups:
        return style.sentence(QUESTION, "There is nothing to draw: no dataset was read inside the blocks (config: 'taps').")
    counts = [len(parts) for parts in groups.values()]
    room = style.Room(left=0.56, right=room_for([name for name, _ in PLACES.values()]), between=(0.5, 0.84), above=0.5)
    columns = min(COLUMNS, max(2, *counts))
    made = style.sheet(QUESTION, _notes(corpus), style.rows_for(counts, columns), columns, HEIGHT, room)
    for panels, (model, parts) in zip(style.flow(made, counts), groups.items(), strict=True):
        own = frame[frame["model"] == model]
        style.heading(panels[0], f"{model}: {reading.layers_of(own)}, n = {own['n'].max():.0f}", 2)
        for index, (panel, (metric, name, rows)) in enumerate(zip(panels, parts, strict=True)):
            ends = _panel(panel, metric, name, rows)
            if index % columns == columns - 1 or panel is panels[-1]:
                end_labels(panel, ends, room.right)
    return made.figure


def _parts(own: pd.DataFrame, readout: str, recipe: str) -> list[tuple[str, str, pd.DataFrame]]:
    """Metric, readout or recipe, and rows of every panel of one model."""
    found = []
    for metric in reading.ordered(own["metric"]):
        rows = own[own["metric"] == metric]
        rows = reading.drawn(rows[rows["parameters"] == reading.usual(rows["parameters"])], reading.measure(metric))
        # raw shows the valley, the headline recipe what is left of it without the first token
        for kind, name in (("recipe", "raw"), ("recipe", recipe), ("readout", readout)):
            part = rows[rows[kind] == name]
            if len(part):
                found.append((metric, name, part))
    return found


def _panel(panel: Axes, metric: str, name: str, rows: pd.DataFrame) -> list[tuple[str, str, float]]:
    how = reading.measure(metric)
    null = rows["null"].mean()
    style.value_axis(panel, [*rows["y"], null], reading.first(rows["y_unit"]), how.scale, (0.08, 0.12))
    style.panel_title(panel, how.title, name, extra=0.4)
    style.depth_axis(panel)
    ends = []
    for tap, (words, colour) in PLACES.items():
        own = rows[rows["tap"].isin([tap, ""] if tap == "residual" else [tap])]
        depth, values = reading.curve(own, "y")
        if len(values):
            wide = 1.5 if tap == "residual" else 1.0
            style.line(panel, depth, values, words, color=colour, linestyle="-", linewidth=wide)
            ends.append((words, colour, float(values[-1])))
    levels(panel, [(float(null), "null", style.INK, "--")] if pd.notna(null) else [])
    return ends


def _notes(corpus: str) -> list[str]:
    return [
        f"On {corpus}, variant paper. Depth is layer / last layer; a point at layer i belongs to block i, and layer 0, the",
        "input of the first block, exists in the residual stream alone. Dashed: the null. n: samples.",
    ]
