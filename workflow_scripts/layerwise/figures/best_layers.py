"""How deep are the best layers? A histogram of the depth of each task's best layer, with the last layer apart."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import key

QUESTION = "Is the last layer the best one?"
COLUMNS = 3
MODELS = 11
BINS = 5
SURE, UNSURE, LAST = style.COLOURS["mean_normed"], "#7FB0D3", style.COLOURS["mean"]


def draw(tables: Mapping[str, pd.DataFrame], *, headline_readout: str = style.HEADLINE_READOUT) -> Figure:
    """Draw a panel for all models together, if there are several, and one for each.

    Args:
        tables: the result tables by name; ``layer_summary`` is used.
        headline_readout: the readout whose best layers are counted; a task without it is counted at its own.
    """
    rows = reading.table(tables, "layer_summary")
    rows = rows[(rows["task"] != "all") & rows["best_layer"].notna()]
    rows = reading.one_protocol(rows, ("task",))
    if rows.empty:
        return style.sentence(
            QUESTION, "There is no best layer to count: this study scores no task (layer_summary.csv is empty)."
        )
    headline = reading.first(rows["readout"], headline_readout)
    rows = reading.at_headline(rows, headline)
    trained = reading.trained(rows["model"])
    models, left_out = reading.limit(trained, MODELS, "models")
    rows = rows[rows["model"].isin(trained)]
    parts = {model: rows[rows["model"] == model] for model in models}
    if len(models) > 1:
        parts = {"all models": rows} | parts
    columns = min(COLUMNS, len(parts))
    lines = -(-len(parts) // columns)
    room = style.Room(left=0.45, between=(0.45, 0.72), above=0.56)
    made = style.sheet(QUESTION, [*_notes(rows, headline), left_out], lines, columns, 1.25, room)
    key(made.figure, [("■ earlier, beyond luck", SURE), ("■ earlier, within luck", UNSURE), ("■ last layer", LAST)])
    for index, panel in enumerate(axes for line in made.axes for axes in line):
        if index >= len(parts):
            panel.set_axis_off()
            continue
        name = [*parts][index]
        _panel(panel, name, parts[name])
        panel.set_ylabel("tasks" if index % columns == 0 else "", size=style.SMALL, labelpad=2)
    return made.figure


def counts(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Count best layers by depth: (3, 6) sure, unsure and last in five bins and the last layer; and (6,) by chance.

    "Sure" means that the interval of the cross-fitted gain over the last layer lies above zero. By chance every layer of
    a model is as likely to be the best.
    """
    found, chance = np.zeros((3, BINS + 1)), np.zeros(BINS + 1)
    for row in rows.to_dict("records"):
        last = int(row["n_layers"])
        at = _bin(int(row["best_layer"]), last)
        kind = 2 if at == BINS else 0 if row["gain_low"] > 0 else 1
        found[kind, at] += 1
        for layer in range(last + 1):
            chance[_bin(layer, last)] += 1 / (last + 1)
    return found, chance


def _bin(layer: int, last: int) -> int:
    return BINS if layer == last else layer * BINS // last


def _panel(axes: Axes, name: str, rows: pd.DataFrame) -> None:
    found, chance = counts(rows)
    centres = np.r_[(np.arange(BINS) + 0.5) / BINS, 1 + 0.55 / BINS]
    low = np.zeros(BINS + 1)
    for part, shade, label in zip(found, (SURE, UNSURE, LAST), ("sure", "unsure", "last"), strict=True):
        axes.bar(centres, part, 0.82 / BINS, bottom=low, color=shade, label=label, zorder=2)
        low = low + part
    axes.plot(np.linspace(0, 1, BINS + 1).repeat(2)[1:-1], chance[:-1].repeat(2), color=style.INK, linewidth=0.8, zorder=3)
    ends = centres[-1] - 0.5 / BINS, centres[-1] + 0.5 / BINS
    axes.plot(ends, [chance[-1]] * 2, color=style.INK, linewidth=0.8, label="chance", zorder=3)
    style.depth_axis(axes)
    axes.set_xlim(-0.04, 1 + 0.9 / BINS)
    axes.set_ylim(0, 1.22 * max(low.max(), chance.max(), 1))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.text(centres[-1], low[-1], "last", size=style.SMALL, color=LAST, ha="center", va="bottom")
    detail = f"last layer: {found[2].sum():.0f} of {len(rows)}, by chance {chance[-1]:.1f}"
    style.panel_title(axes, name, detail, extra=0.3)


def _notes(rows: pd.DataFrame, headline: str) -> list[str]:
    models = rows["model"].nunique()
    return [
        f"n = {len(rows)} best layers: one for each task of {models} model{'s' * (models > 1)}, readout {headline}",
        "(a task without it: its own).",
        "The best layer is the one with the highest score on all test items; beyond luck: the interval of its cross-fitted",
        "gain over the last layer lies above zero. Black line: what one would count if every layer were as likely.",
        "Depth is layer / last layer, in fifths; the last layer has a bar of its own.",
    ]
