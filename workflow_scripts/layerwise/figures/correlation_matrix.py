"""Does the relation of a metric to the scores depend on how it is read? A matrix of correlations with intervals."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from layerwise.figures import reading, style
from layerwise.figures.correlations import named, one_each, pale
from layerwise.figures.style import SMALL

QUESTION = "Does it depend on the readout whether a metric tracks the scores?"
MODELS = 6
MEASURES = (("spearman", "low", "high", "Spearman"), ("residual_spearman", "residual_low", "residual_high", "beyond depth"))
STUDY, RELEASED = "study", "released"
STEP = 0.27
PALE = "Pale: saturated, or fewer than 8 layers, of which a quadratic leaves almost nothing."
MAP = mpl.colormaps["PuOr"]


def draw(tables: Mapping[str, pd.DataFrame], *, headline_readout: str = style.HEADLINE_READOUT) -> Figure:
    """Draw two matrices per model, of metrics x readouts: the plain correlation and the one beyond depth.

    Args:
        tables: the result tables by name; ``correlations`` is used.
        headline_readout: the readout of the scores of the column of the authors' variant, and the first column.
    """
    rows = reading.table(tables, "correlations")
    rows = rows[(rows["layers"] == "all") & (rows["score_readout"] != "")]
    headline = reading.first(rows["score_readout"], headline_readout)
    rows = _cells(rows, headline)
    if rows.empty:
        return style.sentence(QUESTION, "There is no correlation to draw: correlations.csv has no row for these settings.")
    models, left_out = reading.limit(reading.trained(rows["model"]), MODELS, "models")
    rows = rows[rows["model"].isin(models)]
    columns = _columns(rows, headline)
    longest, most = max(map(len, rows["name"])), int(rows.groupby("model")["name"].nunique().max())
    room = style.Room(left=0.15 + style.CHARACTER * longest, right=0.1, between=(0.2, 0.98), above=0.95, below=0.1)
    made = style.sheet(QUESTION, [*_notes(rows, headline), left_out], len(models), 2, STEP * most, room)
    for axes, model in zip(made.axes, models, strict=True):
        own = rows[rows["model"] == model]
        counts = " or ".join(f"{n:.0f}" for n in sorted(set(own["n_tasks"].dropna())))
        style.heading(axes[0], f"{model}: n = {own['n_layers'].max():.0f} layers, mean over {counts} tasks", lines=4)
        for panel, measure in zip(axes, MEASURES, strict=True):
            _panel(panel, own, columns, measure, most)
        axes[1].tick_params(labelleft=False)
    return made.figure


def _cells(rows: pd.DataFrame, headline: str) -> pd.DataFrame:
    """Add the column that each row belongs to, and keep one row per cell."""
    matched = rows["pairing"].isin(["matched", "recipe"])
    paper = rows["variant"] == "paper"
    parts = [
        rows[matched & paper].assign(column=rows["score_readout"]),
        rows[(rows["pairing"] == STUDY) & paper].assign(column=STUDY),
        rows[matched & (rows["variant"] == RELEASED) & (rows["score_readout"] == headline)].assign(column=RELEASED),
    ]
    kept = [one_each(part[part["column"] == name]) for part in parts for name in reading.unique(part["column"])]
    return named(pd.concat([rows.iloc[:0].assign(column=""), *kept]))


def _columns(rows: pd.DataFrame, headline: str) -> list[str]:
    found = reading.unique(rows["column"])
    order = [headline, *(name for name in found if name not in (headline, STUDY, RELEASED)), STUDY, RELEASED]
    return [name for name in order if name in found]


def _panel(axes: Axes, rows: pd.DataFrame, columns: list[str], measure: tuple[str, str, str, str], most: int) -> None:
    names = reading.unique(rows["name"])
    axes.set_xlim(0, len(columns))
    axes.set_ylim(most, 0)
    axes.set_yticks(np.arange(len(names)) + 0.5, names, size=SMALL)
    axes.set_xticks(np.arange(len(columns)) + 0.5, [_wrapped(name) for name in columns], size=SMALL - 1)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    width = style.size_of(axes)[0]
    axes.annotate(
        measure[3], (0, 1), (0, 3.3 * style.LINE * 72), xycoords="axes fraction", textcoords="offset points", size=SMALL
    )
    for row in rows.to_dict("records"):
        place = columns.index(str(row["column"])), names.index(str(row["name"]))
        _cell(axes, place, {str(key): value for key, value in row.items()}, measure, width / len(columns))


def _wrapped(name: str) -> str:
    return {STUDY: "study:\nmean /\nnormed", RELEASED: "authors'\ncode"}.get(name, name.replace("_", "\n"))


def _cell(
    axes: Axes, place: tuple[int, int], row: dict[str, Any], measure: tuple[str, str, str, str], inches: float
) -> None:
    value, low, high = (float(row[name]) for name in measure[:3])
    (x, y), bounded = place, bool(np.isfinite(low) and np.isfinite(high))
    face = MAP(Normalize(-1.3, 1.3)(value)) if np.isfinite(value) else "#EEEEEE"
    alpha = 0.4 if pale(str(row["flag"])) else 1.0
    axes.add_patch(Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, facecolor=face, edgecolor="none", alpha=alpha, zorder=1))
    if bounded and low <= 0 <= high:
        axes.add_patch(
            Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, facecolor="white", edgecolor="none", alpha=0.65, zorder=2)
        )
    sure = bool(row["q_task"] <= 0.05)
    look: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 3, "color": style.INK}
    text = _number(value) + ("*" if sure else "")
    axes.text(x + 0.5, y + (0.34 if bounded else 0.5), text, size=SMALL, weight="bold" if sure else "normal", **look)
    if bounded:
        size = min(SMALL - 1.5, 72 * inches / 6.2)
        axes.text(x + 0.5, y + 0.73, f"{_number(low)} to {_number(high)}", size=size, **look)


def _number(value: float) -> str:
    if np.isnan(value):
        return style.NOTHING
    text = f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.0f}"
    return text.replace("-", style.MINUS).replace(f"{style.MINUS}.00", ".00")


def _notes(rows: pd.DataFrame, headline: str) -> list[str]:
    bounded = rows["low"].notna().any()
    texts = " or ".join("the tasks' own texts" if text == "own" else text for text in reading.unique(rows["metric_text"]))
    return [
        f"Correlation over layers of metric and mean score; columns: score readout. Metric on {texts}.",
        "Pooled metrics have the same readout; study: metric on mean, score on mean_normed; authors' code: variant",
        f"released, readout {headline}. Beyond depth: what a quadratic in depth leaves of both curves. 0 is white.",
        "Below: 95 % interval over tasks; faded where it holds 0." if bounded else "No interval: fewer than 8 tasks.",
        f"*: q_task at most .05. {style.NOTHING}: undefined.",
        PALE if rows["flag"].map(pale).any() else "",
    ]
