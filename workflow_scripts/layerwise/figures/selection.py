"""Can one know the best layer without labels? The score that each way of choosing a layer reaches."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import beside, column_head, key
from layerwise.figures.style import SMALL

QUESTION = "Can one know the best layer without labels?"
MODELS = 12
STEP = 0.16
KINDS = {
    "metric": ("●", "o", style.COLOURS["mean_normed"], "pick of a metric, no labels"),
    "rule": ("■", "s", style.INK, "fixed rule, no labels"),
    "labels": ("◆", "D", style.COLOURS["mean"], "uses labels or other tasks"),
    "oracle": ("▲", "^", style.COLOURS["mean_skip_first"], "oracle"),
}


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw the selectors of each model sorted by score.

    Args:
        tables: the result tables by name; ``layer_selection`` is used.
        headline_readout: the readout of the scores and of the pooled metrics.
        headline_recipe: the recipe of the token-level metrics.
    """
    rows = reading.table(tables, "layer_selection")
    # Where nobody said beforehand which end to take, there is no pick to draw; the table says so.
    rows = rows[~rows["undefined"].astype(str).str.contains("names no direction")]
    headline = reading.first(rows["readout"], headline_readout)
    rows = _one_each(rows[rows["readout"] == headline], headline_recipe)
    if rows["score"].notna().sum() == 0:
        return style.sentence(QUESTION, "There is no selection to draw: layer_selection.csv has no score.")
    models, left_out = reading.limit(reading.trained(rows["model"]), MODELS, "models")
    rows = rows[rows["model"].isin(models)]
    most = max(len(part) for _, part in rows.groupby("model"))
    columns = min(2, len(models))
    left = 0.25 + style.CHARACTER * max(map(len, rows["name"]))
    room = style.Room(left=left, right=0.42, between=(left + 0.36, 0.7), above=0.42)
    notes = [*_notes(rows, headline), left_out]
    made = style.sheet(QUESTION, notes, -(-len(models) // columns), columns, STEP * (most + 0.6), room)
    key(made.figure, [(f"{sign} {text}", shade) for sign, _, shade, text in KINDS.values()])
    for index, panel in enumerate(axes for line in made.axes for axes in line):
        if index < len(models):
            _panel(panel, rows[rows["model"] == models[index]], models[index], most)
        else:
            panel.set_axis_off()
    return made.figure


def _one_each(rows: pd.DataFrame, recipe: str) -> pd.DataFrame:
    """Keep one row per model, selector and direction.

    Theory's picks: variant paper, the headline recipe. The study's: variant released where the table has it, because
    its direction is meant for its own curves. Both on the tasks' own texts where possible, at the usual parameters.
    """
    rows = reading.one_protocol(rows, ("model",))
    picks, others = rows[rows["metric"] != ""], rows[rows["metric"] == ""]
    keep = [others]
    for (_, _, direction), part in picks.groupby(["model", "metric", "direction"], sort=False):
        wanted = ("released", "paper") if direction == "study" else ("paper",)
        keep += [_one(level, wanted, recipe) for level in (part[part["recipe"] == ""], part[part["recipe"] != ""])]
    chosen = pd.concat(keep)
    return chosen.assign(name=[_name(row) for row in chosen.to_dict("records")], kind=[*map(_kind, *_pairs(chosen))])


def _one(rows: pd.DataFrame, variants: tuple[str, ...], recipe: str) -> pd.DataFrame:
    rows = rows[rows["variant"] == reading.first(rows["variant"], *variants)]
    rows = rows[rows["recipe"] == reading.first(rows["recipe"], recipe)]
    rows = rows[rows["parameters"] == reading.usual(rows["parameters"])]
    return rows[rows["metric_text"] == reading.first(rows["metric_text"], "own")]


def _pairs(rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    return list(rows["metric"]), list(rows["selector"])


def _kind(metric: str, selector: str) -> str:
    if metric:
        return "metric"
    if selector == "oracle":
        return "oracle"
    return "rule" if selector in ("last", "middle", "random", "first") else "labels"


def _name(row: Mapping[Hashable, Any]) -> str:
    if row["metric"]:
        end = str(row["selector"]).split("_")[0] if str(row["selector"]).startswith(("max_", "min_")) else ""
        tokens = "token " if row["metric"] == "effective_rank" and row["recipe"] else ""
        return f"{end} {tokens}{reading.measure(str(row['metric'])).title}, {row['direction']}".strip()
    selector = str(row["selector"])
    return f"{selector.removeprefix('labels_')} labels" if selector.startswith("labels_") else selector.replace("_", " ")


def _panel(axes: Axes, rows: pd.DataFrame, model: str, most: int) -> None:
    rows = rows.sort_values("score", ascending=False, na_position="last", kind="stable").reset_index(drop=True)
    last = float(rows[rows["selector"] == "last"]["score"].mean())
    bounds = pd.concat([rows["score"], last + rows["gain_low"], last + rows["gain_high"]]) * 100
    pad = 0.06 * (bounds.max() - bounds.min()) or 1.0
    axes.set_xlim(bounds.min() - pad, bounds.max() + pad)
    axes.set_ylim(most - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), list(rows["name"]), size=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(4, min_n_ticks=2))
    axes.set_xlabel("mean score (points)", size=SMALL, labelpad=1.5)
    axes.axvline(100 * last, color=style.INK, linewidth=0.7, linestyle="--", zorder=1, label="last layer")
    style.panel_title(axes, f"{model}, {rows['n_tasks'].max():.0f} tasks", extra=0)
    column_head(axes, "layer")
    for y, row in enumerate(rows.to_dict("records")):
        _row(axes, y, row, last)
        axes.get_yticklabels()[y].set_color(KINDS[str(row["kind"])][2])


def _row(axes: Axes, y: int, row: Mapping[Hashable, Any], last: float) -> None:
    _, marker, shade, _ = KINDS[str(row["kind"])]
    if np.isnan(row["score"]):
        reason = f"no pick: {row['undefined']}".rstrip(": ")
        look: dict[str, Any] = {
            "size": SMALL,
            "color": "#777777",
            "va": "center",
            "transform": axes.get_yaxis_transform(),
        }
        look |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1}}
        axes.text(0.03, y, style.shorten(reason, style.size_of(axes)[0] - 0.1, False), **look)
        return
    ends = [100 * (last + row[name]) for name in ("gain_low", "gain_high")]
    axes.plot(ends, [y, y], color=shade, linewidth=1, zorder=2)
    axes.plot([100 * row["score"]], [y], marker, color=shade, markersize=4, markeredgewidth=0, zorder=3)
    beside(axes, y, style.NOTHING if np.isnan(row["picked_layer"]) else f"{row['picked_layer']:.0f}")


def _notes(rows: pd.DataFrame, headline: str) -> list[str]:
    recipes = " or ".join(reading.unique(rows["recipe"]))
    texts = " or ".join("the tasks' own texts" if text == "own" else text for text in reading.unique(rows["metric_text"]))
    reasons = reading.unique(rows[rows["score"].isna()]["undefined"])
    protocol = ", ".join(reading.unique(rows["protocol"]))
    own = " (each task type's own)" if protocol == "primary" else ""
    return [
        f"Scores: readout {headline}, protocol {protocol}{own}, mean over the tasks that all selectors share.",
        f"Metrics on {texts or 'no texts'}, the same readout; token metrics: recipe {recipes or 'none'}.",
        "The direction is fixed beforehand: theory's on the paper's definition, the study's on the authors' (released)",
        "where the table has it. Dashed: last layer. Bar: paired interval of the gain over the last layer, drawn",
        "around its score (none below 8 tasks). Right: the layer picked most often.",
        f"No pick: {'; '.join(reasons[:3])}." if reasons else "",
    ]
