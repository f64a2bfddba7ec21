"""Which metric tracks the scores beyond depth? Spearman, plain and of what depth leaves, per metric and model."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import beside, column_head, key
from layerwise.figures.style import COLOURS, SMALL

QUESTION = "Which metric tracks the scores beyond depth?"
COLUMNS = 3
MODELS = 12
STEP = 0.165
RAW, PARTIAL = COLOURS["mean_normed"], COLOURS["mean"]


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    headline_readout: str = style.HEADLINE_READOUT,
    pairing: str = "matched",
) -> Figure:
    """Draw a line of two dots per metric and recipe, a panel per model.

    Args:
        tables: the result tables by name; ``correlations`` is used.
        headline_readout: the readout of the scores and, with matched readouts, of the pooled metrics.
        pairing: ``matched`` or ``study``.
    """
    rows = reading.table(tables, "correlations")
    rows = rows[(rows["pairing"].isin([pairing, "recipe"])) & (rows["layers"] == "all") & (rows["variant"] == "paper")]
    headline = reading.first(rows["score_readout"], headline_readout)
    rows = one_each(rows[rows["score_readout"] == headline])
    if rows.empty:
        return style.sentence(QUESTION, "There is no correlation to draw: correlations.csv has no row for these settings.")
    models, left_out = reading.limit(reading.trained(rows["model"]), MODELS, "models")
    names = list(dict.fromkeys(rows[rows["model"].isin(models)]["name"]))
    columns = min(COLUMNS, len(models))
    room = style.Room(left=0.25 + style.CHARACTER * max(map(len, names)), right=0.42, between=(0.5, 0.85), above=0.54)
    lines = -(-len(models) // columns)
    made = style.sheet(QUESTION, [*_notes(rows, headline, pairing), left_out], lines, columns, STEP * (len(names) + 1), room)
    key(made.figure, [("● Spearman", RAW), ("◆ beyond depth: of what a quadratic in depth leaves", PARTIAL)])
    for index, panel in enumerate(axes for line in made.axes for axes in line):
        if index >= len(models):
            panel.set_axis_off()
            continue
        _panel(panel, rows[rows["model"] == models[index]], names, models[index])
        panel.tick_params(labelleft=index % columns == 0)
    return made.figure


def one_each(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep one row per model, metric and recipe: the tasks' own texts, the preferred protocol, the first parameters."""
    rows = rows[rows["parameters"] == rows.groupby("metric")["parameters"].transform(reading.usual)]
    keys = ["model", "metric", "recipe", "metric_readout"]
    if rows.empty:
        return rows.assign(name="")
    rows = rows[rows["metric_text"] == rows.groupby(keys)["metric_text"].transform(_own_text)]
    rows = reading.one_protocol(rows, keys)
    return named(rows)


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``name``, with the recipe or "pooled" where a metric has both levels, and sort by the order of the metrics."""
    order = {name: index for index, name in enumerate(reading.MEASURES)}
    both = rows["metric"].isin(set(rows[rows["recipe"] != ""]["metric"]))
    level = (": " + rows["recipe"].where(rows["recipe"] != "", "pooled")).where(both, "")
    rank = rows["metric"].map(order).fillna(len(order))
    return rows.assign(name=rows["metric"].map(_title) + level, rank=rank).sort_values("rank", kind="stable")


def pale(flag: str) -> bool:
    """Whether a row is drawn pale: its metric is saturated, or its model has few layers."""
    return "saturated" in flag or "fewer than" in flag


def _title(metric: str) -> str:
    return reading.measure(metric).title


def _own_text(texts: pd.Series) -> str:
    return reading.first(texts, "own")


def _panel(axes: Axes, rows: pd.DataFrame, names: list[str], model: str) -> None:
    axes.set_xlim(-1.05, 1.05)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), names, size=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], [f"{style.MINUS}1", f"{style.MINUS}.5", "0", ".5", "1"])
    axes.set_xlabel("Spearman over layers", size=SMALL, labelpad=1.5)
    axes.axvline(0, color=style.INK, linewidth=0.7, zorder=1, label="zero")
    axes.hlines(range(len(names)), -1.05, 1.05, color="#E6E6E6", linewidth=0.5, zorder=0)
    n = rows["n_layers"].max()
    style.panel_title(axes, model, f"n = {n:.0f} layers", extra=0)
    column_head(axes, "q")
    for row in rows.to_dict("records"):
        _row(axes, names.index(str(row["name"])), row)


def _row(axes: Axes, y: int, row: Mapping[Hashable, Any]) -> None:
    alpha = 0.35 if pale(str(row["flag"])) else 1.0
    raw, beyond = float(row["spearman"]), float(row["residual_spearman"])
    look: dict[str, Any] = {"alpha": alpha, "markeredgewidth": 0, "zorder": 3}
    axes.plot([row["low"], row["high"]], [y - 0.12] * 2, color=RAW, linewidth=1.1, alpha=alpha, zorder=2)
    axes.plot(
        [row["residual_low"], row["residual_high"]], [y + 0.12] * 2, color=PARTIAL, linewidth=1.1, alpha=alpha, zorder=2
    )
    axes.plot([raw], [y - 0.12], "o", color=RAW, markersize=3.8, label="raw", **look)
    axes.plot([beyond], [y + 0.12], "D", color=PARTIAL, markersize=3, label="beyond depth", **look)
    if np.isnan(raw):
        text = style.shorten(f"undefined: {row['undefined']}".rstrip(": "), style.size_of(axes)[0] - 0.2, middle=False)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(0, y, text, size=SMALL, ha="center", va="center", color="#777777", bbox=box)
    beside(axes, y, _p(float(row["q_task"])))


def _p(p: float) -> str:
    if np.isnan(p):
        return style.NOTHING
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _notes(rows: pd.DataFrame, headline: str, pairing: str) -> list[str]:
    texts = " or ".join("the tasks' own texts" if text == "own" else text for text in reading.unique(rows["metric_text"]))
    tasks = " or ".join(f"{n:.0f}" for n in sorted(set(rows["n_tasks"].dropna())))
    pooled = "the same readout" if pairing == "matched" else " or ".join(reading.unique(rows["metric_readout"]))
    return [
        f"Mean over {tasks or 'no'} tasks; metric on {texts}, variant paper, all layers.",
        f"Score readout {headline}; pooled metrics {pooled}; token metrics by recipe.",
        "Bar: 95 % interval over tasks (none below 8 tasks). q: from a permutation test, the metric curve of one task",
        "against the score curve of another, corrected (Benjamini-Hochberg) for all such tests of the model; needs 5 tasks",
        f"with curves of their own ({style.NOTHING} where undefined).",
        "Pale: saturated, or fewer than 8 layers, of which a quadratic leaves almost nothing."
        if rows["flag"].map(pale).any()
        else "",
    ]
