"""How do the layers of several models differ by size, objective, or another label? A panel per metric, a line per model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, room_for
from layerwise.figures.score_panel import layers_and_baselines

QUESTION = "How do the layers differ by {}?"
COLUMNS = 3
HEIGHT = 1.35
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#B37400", "#333333", "#56B4E9", "#882255")
_SIZE = re.compile(r"([0-9.]+)\s*([kKmMbBtT]?)")
_POWERS = {"": 0, "k": 3, "m": 6, "b": 9, "t": 12}


@dataclass(frozen=True)
class Part:
    """One panel: curves over depth of several models on one dataset; ``null`` is the mean over their layers."""

    title: str
    detail: str
    rows: pd.DataFrame
    unit: str
    scale: str = "linear"
    null: float = float("nan")


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    label: str,
    values: Mapping[str, str],
    dataset: str = "",
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw mean score and every metric, variant ``paper``, over depth; models of one value of the label have one colour.

    Args:
        tables: the result tables by name; ``metrics`` and ``scores`` are used.
        label: what is compared, such as "size"; a key of ``labels`` of the config's models.
        values: the label of every model.
        dataset: the corpus; models that did not read it are drawn on their own first corpus, in panels of their own.
        headline_readout: of pooled vectors and scores.
        headline_recipe: of token metrics; prompt entropy is drawn in recipe ``raw`` as well.
    """
    title = QUESTION.format(label)
    parts = [part for part in _parts(tables, values, dataset, headline_readout, headline_recipe) if len(part.rows)]
    drawn = {model for part in parts for model in part.rows["model"]}
    shown = {model: value for model, value in values.items() if model in drawn}
    if len(set(shown.values())) < 2:
        return style.sentence(
            title, f"There is nothing to compare: fewer than two values of {label!r} have metrics or scores."
        )
    shades = colours(list(shown.values()))
    room = style.Room(left=0.56, right=room_for(list(shades)), between=(0.54, 0.86), above=0.5)
    columns = min(COLUMNS, max(2, len(parts)))
    notes = _notes(label, shown)
    made = style.sheet(title, notes, style.rows_for([len(parts)], columns), columns, HEIGHT, room)
    panels = style.flow(made, [len(parts)])[0]
    for index, (panel, part) in enumerate(zip(panels, parts, strict=True)):
        ends = _panel(panel, part, shown, shades)
        if index % columns == columns - 1 or panel is panels[-1]:
            end_labels(panel, ends, room.right)
    return made.figure


def amount(value: str) -> float | None:
    """Return 4.1e8 for "410M"; None for a value that is no amount."""
    found = _SIZE.fullmatch(value.strip())
    try:
        return float(found[1]) * 10.0 ** _POWERS[found[2].lower()] if found else None
    except ValueError:
        return None


def colours(values: list[str]) -> dict[str, str]:
    """Return a colour for every value: amounts from pale (least) to dark (most), others apart from each other."""
    names = list(dict.fromkeys(values))
    amounts = {name: amount(name) for name in names}
    if all(found is not None for found in amounts.values()):
        ordered = sorted(names, key=lambda name: amounts[name] or 0.0)
        return dict(zip(ordered, style.shades(len(ordered)), strict=True))
    return {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)}


def _parts(
    tables: Mapping[str, pd.DataFrame], values: Mapping[str, str], dataset: str, readout: str, recipe: str
) -> list[Part]:
    found = [_scores(reading.table(tables, "scores"), values, readout)]
    metrics = reading.table(tables, "metrics")
    metrics = metrics[metrics["model"].isin(list(values)) & (metrics["task"] == "")]
    for metric in reading.ordered(metrics["metric"]):
        how = reading.measure(metric)
        rows = reading.metric_rows(metrics, metric)
        rows = rows[rows["y"].notna()]
        kinds = [("recipe", name) for name in dict.fromkeys(("raw" if metric == "prompt_entropy" else recipe, recipe))]
        for kind, name in [*kinds, ("readout", readout)]:
            part = rows[rows[kind] == name]
            for corpus in _corpora(part, dataset):
                own = part[part["dataset"] == corpus]
                unit = reading.first(own["y_unit"])
                detail = f"{name}, {corpus}, n = {own['n'].max():.0f}"
                found.append(Part(how.title, detail, own, unit, how.scale, float(own["null"].mean())))
    return list({(part.title, part.detail): part for part in found}.values())


def _corpora(rows: pd.DataFrame, dataset: str) -> list[str]:
    """Corpora on which every model is drawn once: the preferred one, what is derived from it, then the others."""
    names = reading.unique(rows["dataset"])
    order = sorted(names, key=lambda name: (name != dataset, name.split("~")[0] != dataset))
    chosen: list[str] = []
    covered: set[str] = set()
    for name in order:
        models = set(rows[rows["dataset"] == name]["model"])
        if models - covered:
            chosen.append(name)
            covered |= models
    return chosen


def _scores(scores: pd.DataFrame, values: Mapping[str, str], readout: str) -> Part:
    layers, _ = layers_and_baselines(scores)
    layers = layers[layers["model"].isin(list(values)) & layers["score"].notna()]
    if layers.empty:
        return Part("score", "", layers, "points")
    layers = reading.at_headline(layers, readout)
    curves = []
    for model, rows in layers.groupby("model", sort=False):
        mean, _ = reading.over_tasks(rows, "score")
        curves.append(mean.assign(model=model, y=100 * mean["score"]))
    tasks = layers["task"].nunique()
    return Part("score", f"{readout}, mean of {tasks} task{'s' * (tasks > 1)}", pd.concat(curves), "points")


def _panel(panel: Axes, part: Part, values: Mapping[str, str], shades: Mapping[str, str]) -> list[tuple[str, str, float]]:
    style.value_axis(panel, [*part.rows["y"], part.null], part.unit, part.scale, (0.08, 0.1))
    style.panel_title(panel, part.title, part.detail, extra=0.4)
    style.depth_axis(panel)
    ends: dict[str, list[float]] = {}
    for model, value in values.items():
        depth, curve = reading.curve(part.rows[part.rows["model"] == model], "y")
        if len(curve):
            style.line(panel, depth, curve, model, color=shades[value], linestyle="-", linewidth=0.9)
            ends.setdefault(value, []).append(float(curve[-1]))
    if np.isfinite(part.null):
        panel.axhline(part.null, color=style.INK, linestyle="--", linewidth=0.6, zorder=1, label="null")
    return [(value, shades[value], float(np.mean(ends[value]))) for value in shades if value in ends]


def _notes(label: str, values: Mapping[str, str]) -> list[str]:
    counts = pd.Series(values).value_counts(sort=False)
    several = ", ".join(f"{value}: {count} models" for value, count in counts.items() if count > 1)
    return [
        f"One line per model, coloured by {label}; the label stands at the mean of their ends. {several}".strip(),
        "Variant paper. Dashed: the null, its mean over the models. n: samples. Depth is layer / last layer of each model.",
    ]
