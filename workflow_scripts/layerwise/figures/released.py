"""What differs from the authors' code? Each metric over depth by its definition and by the authors' code."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, levels, room_for

QUESTION = "What differs from the authors' code?"
VARIANTS = ("paper", "released")
AUTHORS = {"readout": "mean", "recipe": "centre_unit"}
COMMON = {"lidar": reading.Measure("LiDAR", "normalized", "share of maximum", note="LiDAR: as its entropy.")}
COLUMNS = 4
MODELS = 6


@dataclass(frozen=True)
class Pair:
    """One panel: one metric at one readout or recipe on one dataset, in both variants."""

    title: str
    detail: str
    how: reading.Measure
    curves: dict[str, pd.DataFrame]


def draw(tables: Mapping[str, pd.DataFrame], *, dataset: str = "") -> Figure:
    """Draw a panel per metric and a row (or more) per model, on one corpus and what is derived from it.

    A metric that the corpus lacks is drawn on the corpus on which most metrics have both variants, else on its first.

    Args:
        tables: the result tables by name; ``metrics`` is used.
        dataset: the corpus; empty: the one on which most metrics have both variants.
    """
    metrics = reading.table(tables, "metrics")
    found = metrics[(metrics["variant"] == "released") & metrics["value"].notna()]
    found = found[found["task"] == ""] if (found["task"] == "").any() else found
    bases = found["dataset"].map(_base)
    wanted = (dataset, _richest(found))
    own = {metric: reading.first(part, *wanted) for metric, part in bases.groupby(found["metric"])}
    found = found[bases == found["metric"].map(own)]
    models, left_out = reading.limit(reading.trained(found["model"]), MODELS, "models")
    groups = {model: _pairs(metrics, found[found["model"] == model]) for model in models}
    groups = {model: pairs for model, pairs in groups.items() if pairs}
    if not groups:
        return style.sentence(QUESTION, "There is nothing to compare: no metric was computed in the variant 'released'.")
    counts = [len(pairs) for pairs in groups.values()]
    columns = max(2, min(COLUMNS, max(counts)))
    room = style.Room(left=0.5, right=room_for(VARIANTS), above=0.56, between=(0.56, 0.86))
    notes = [*_notes(groups), left_out]
    made = style.sheet(QUESTION, notes, style.rows_for(counts, columns), columns, 1.05, room)
    for axes, (model, pairs) in zip(style.flow(made, counts), groups.items(), strict=True):
        style.heading(axes[0], f"{model}: {reading.layers_of(found[found['model'] == model])}", lines=2)
        for index, (panel, pair) in enumerate(zip(axes, pairs, strict=True)):
            ends = _panel(panel, pair)
            if index % columns == columns - 1 or index == len(pairs) - 1:
                end_labels(panel, ends, room.right)
    return made.figure


def _base(dataset: str) -> str:
    return dataset.split("~")[0]


def _richest(found: pd.DataFrame) -> str:
    counts = found.assign(base=found["dataset"].map(_base)).groupby("base", sort=False)["metric"].nunique()
    return str(counts.idxmax()) if len(counts) else ""


def _pairs(metrics: pd.DataFrame, found: pd.DataFrame) -> list[Pair]:
    order = [name for name in reading.MEASURES if (found["metric"] == name).any()]
    pairs = []
    for metric in [*order, *(name for name in reading.unique(found["metric"]) if name not in order)]:
        how = COMMON.get(metric, reading.measure(metric))
        theirs = found[found["metric"] == metric]
        level = "recipe" if (theirs["recipe"] != "").any() else "readout"
        name = reading.first(theirs[theirs[level] != ""][level], AUTHORS[level])
        place = {"model": theirs["model"].iloc[0], "dataset": theirs["dataset"].iloc[0], level: name}
        cell = metrics[np.logical_and.reduce([metrics[key] == value for key, value in place.items()])]
        curves = {variant: reading.metric_rows(cell, metric, variant, how) for variant in VARIANTS}
        if all(rows["y"].notna().any() for rows in curves.values()):
            n = curves["released"]["n"].max()
            pairs.append(Pair(f"{how.title}, {name}", f"{place['dataset']}, n = {n:.0f}", how, curves))
    return pairs


def _panel(axes: Axes, pair: Pair) -> list[tuple[str, str, float]]:
    values = pd.concat([rows[column] for rows in pair.curves.values() for column in ("y", "null")])
    style.depth_axis(axes)
    style.value_axis(axes, values, reading.first(pair.curves["paper"]["y_unit"]), pair.how.scale, (0.27, 0.27))
    style.panel_title(axes, pair.title, pair.detail, extra=0.44)
    ends, nulls = [], {}
    for variant, rows in pair.curves.items():
        depth, y = reading.curve(rows, "y")
        style.line(axes, depth, y, variant, linestyle="-" if variant == "paper" else (0, (4, 1.5)))
        ends.append((variant, style.colour(variant), float(y[-1])))
        nulls[variant] = float(rows["null"].dropna().mean()) if rows["null"].notna().any() else float("nan")
    known = [null for null in nulls.values() if np.isfinite(null)]
    if known and np.ptp(known) <= 0.01 * max(map(abs, known)):
        levels(axes, [(known[0], "null", style.INK, ":")])
    else:
        levels(axes, [(null, "null", style.colour(variant), ":") for variant, null in nulls.items()])
    return ends


def _notes(groups: Mapping[str, list[Pair]]) -> list[str]:
    notes = dict.fromkeys(pair.how.note for pairs in groups.values() for pair in pairs)
    return [
        "After each name: the readout or recipe, the authors' where it was computed; below it: the dataset.",
        "paper: the definition; released: the authors' code (negative Gram entries clamped, |cos| in the curvature,",
        "D x D matrices in DiME). Dotted: null of random Gaussian draws, one per variant where they differ.",
        "Depth is layer / last layer.",
        *notes,
    ]
