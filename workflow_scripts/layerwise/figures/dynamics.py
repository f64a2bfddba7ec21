"""How do the layers of one model change while it is trained? A panel per metric, a line per checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, room_for

QUESTION = "How do the layers of {} change while it is trained?"
COLUMNS = 3
STEPS = 10  # lines of a panel
HEIGHT = 1.35


@dataclass(frozen=True)
class Part:
    """One panel over depth: a line per step of ``column``, and the scale of its axis."""

    title: str
    detail: str
    column: str
    rows: pd.DataFrame
    unit: str = ""
    scale: str = "linear"
    bounds: tuple[float, ...] = ()


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    model: str,
    dataset: str = "",
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw losses over steps, and over depth score, layer change, stability and every metric, variant ``paper``.

    Args:
        tables: the result tables by name; ``training_dynamics`` is used.
        model: the name of the run, without its step.
        dataset: the corpus; a metric that it lacks is drawn on what is derived from it, else on its first dataset.
        headline_readout: of pooled vectors, and of the scores.
        headline_recipe: of token metrics.
    """
    title = QUESTION.format(model)
    frame = reading.table(tables, "training_dynamics")
    frame = frame[(frame["model"] == model) & frame["variant"].isin(["paper", ""])]
    steps = _drawn_steps(frame["step"])
    found = parts(frame, dataset, headline_readout, headline_recipe) if len(steps) > 1 else []
    if not found:
        return style.sentence(title, f"There is no training to draw: training_dynamics.csv holds no two steps of {model!r}.")
    losses = frame.dropna(subset=["heldout_loss"]).drop_duplicates("step").sort_values("step")
    count = len(found) + (len(losses) > 1)
    room = style.Room(left=0.56, right=room_for([_name(step) for step in steps]), between=(0.54, 0.86), above=0.5)
    columns = min(COLUMNS, max(2, count))
    made = style.sheet(title, _notes(found, steps, frame), style.rows_for([count], columns), columns, HEIGHT, room)
    panels = style.flow(made, [count])[0]
    shades = dict(zip(steps, style.shades(len(steps)), strict=True))
    if len(losses) > 1:
        _losses(panels[0], losses)
    for index, (panel, part) in enumerate(zip(panels[count - len(found) :], found, strict=True), count - len(found)):
        ends = _panel(panel, part, shades)
        if index % columns == columns - 1 or panel is panels[-1]:
            end_labels(panel, ends, room.right)
    return made.figure


def parts(frame: pd.DataFrame, dataset: str, headline_readout: str, headline_recipe: str) -> list[Part]:
    """Return the panels over depth: score, layer change, stability, then metrics in the order of ``reading.MEASURES``.

    Args:
        frame: rows of one run.
        dataset: the corpus that is preferred.
        headline_readout: of pooled vectors, and of the scores.
        headline_recipe: of token metrics.
    """
    changes = frame[frame["metric"] == "layer_change"]
    readout = reading.first(changes["readout"], headline_readout)
    changes = _on(changes[changes["readout"] == readout], dataset)
    made = []
    if changes["score"].notna().any():
        tasks = f"mean of {changes['n_tasks'].max():.0f} tasks" if changes["n_tasks"].max() > 1 else "1 task"
        points = changes.assign(score=100 * changes["score"])
        made.append(Part(f"score, {tasks}", readout, "score", points, "points"))
    made.append(Part("layer change" + _count(changes), readout, "value", changes, "1 \u2212 CKA", bounds=(0.0,)))
    made.append(
        Part("stability" + _count(changes), readout, "stability", changes, "CKA to the last step", bounds=(0.0, 1.0))
    )
    for metric in reading.ordered(frame[frame["metric"] != "layer_change"]["metric"]):
        how = reading.measure(metric)
        for level, headline in (("recipe", headline_recipe), ("readout", headline_readout)):
            rows = frame[(frame["metric"] == metric) & (frame[level] != "") & frame["value"].notna()]
            rows = rows[rows["parameters"] == reading.usual(rows["parameters"])]
            rows = _on(rows[rows[level] == reading.first(rows[level], headline)], dataset)
            if len(rows):
                own = reading.first(rows["dataset"])
                detail = reading.first(rows[level]) + (f", {own}" if own != reading.first(changes["dataset"]) else "")
                made.append(Part(how.title + _count(rows), detail, "value", rows, reading.first(rows["unit"]), how.scale))
    made = [part for part in made if part.rows[part.column].notna().any()]
    return list({(part.title, part.detail): part for part in made}.values())


def _on(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Rows on one corpus: the one that is asked for, or what is derived from it, or the first."""
    corpora = rows[rows["task"] == ""] if (rows["task"] == "").any() else rows
    names = reading.unique(corpora["dataset"])
    chosen = reading.first(names, dataset, *(name for name in names if name.split("~")[0] == dataset))
    return rows[rows["dataset"] == chosen]


def _count(rows: pd.DataFrame) -> str:
    return f", n = {rows['n'].max():.0f}"


def _drawn_steps(column: pd.Series) -> list[int]:
    """The steps, at most ``STEPS`` of them, evenly chosen with the first and the last."""
    steps = sorted({int(step) for step in column.dropna()})
    if len(steps) <= STEPS:
        return steps
    return [steps[round(at)] for at in np.linspace(0, len(steps) - 1, STEPS)]


def _name(step: int) -> str:
    return f"step {step:,}"


def _panel(axes: Axes, part: Part, shades: Mapping[int, str]) -> list[tuple[str, str, float]]:
    """Draw a line per step; return the end labels."""
    values = [*part.rows[part.column], *part.bounds]
    style.value_axis(axes, values, part.unit, part.scale, (0.06, 0.1))
    style.panel_title(axes, part.title, part.detail, extra=0.4)
    style.depth_axis(axes)
    ends = []
    for step, shade in shades.items():
        depth, curve = reading.curve(part.rows[part.rows["step"] == step], part.column)
        if len(curve):
            style.line(axes, depth, curve, _name(step), color=shade, linestyle="-")
            ends.append((_name(step), shade, float(curve[-1])))
    return ends


def _losses(axes: Axes, losses: pd.DataFrame) -> None:
    """Both losses over steps; log(step + 1), so that step 0 has a place."""
    steps = losses["step"].to_numpy(float)
    x = np.log10(steps + 1)
    style.value_axis(axes, [*losses["train_loss"], *losses["heldout_loss"]], "loss", free=(0.12, 0.12))
    before, after = losses["heldout_loss"].iloc[0], losses["heldout_loss"].iloc[-1]
    style.panel_title(axes, "loss of its objective", f"held out: {before:.3g} to {after:.3g}", extra=0.4)
    style.line(axes, x, losses["train_loss"].to_numpy(float), "training", color=style.GREY, linestyle="--")
    style.line(axes, x, losses["heldout_loss"].to_numpy(float), "held out", color=style.INK, linestyle="-", linewidth=1.3)
    shown = [0]
    for at in range(1, len(x)):
        if x[at] - x[shown[-1]] > 0.16 * x[-1] and (x[-1] - x[at] > 0.16 * x[-1] or at == len(x) - 1):
            shown.append(at)
    axes.xaxis.set_major_locator(FixedLocator([float(x[at]) for at in shown]))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{steps[at]:.0f}" for at in shown]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("step", size=style.SMALL, labelpad=1.5)


def _notes(found: list[Part], steps: list[int], frame: pd.DataFrame) -> list[str]:
    every, corpus = frame["step"].nunique(), reading.first(found[0].rows["dataset"])
    layers = reading.layers_of(pd.concat([part.rows for part in found]))
    return [
        f"{layers.capitalize()}; depth is layer / last layer. One line per checkpoint, from pale (step {steps[0]:,}) to "
        f"dark (step {steps[-1]:,}).",
        f"Drawn: {len(steps)} of {every} checkpoints; the table holds the rest." if every > len(steps) else "",
        "Layer change: 1 minus linear CKA to the layer before. Stability: linear CKA to the same layer of the last "
        "checkpoint. Few samples raise CKA, to D / (n + D) where nothing is shared; the table has it debiased too.",
        f"n: samples, of {corpus} where no other dataset is named. Variant paper.",
        "Grey, dashed: loss on a sample of the training data." if frame["heldout_loss"].notna().any() else "",
    ]
