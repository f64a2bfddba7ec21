"""How do the metrics of one model change over depth? A panel per metric, token level and pooled."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, room_for
from layerwise.figures.metric_panel import LEVELS, count, draw_part, saturated, values_of

QUESTION = "How do the metrics of {} change over depth?"
HEADINGS = {"recipe": "Token level: one line per recipe", "readout": "Pooled: one line per readout"}
COLUMNS = 3


@dataclass(frozen=True)
class Part:
    """One panel: a metric at one level (``readout`` or ``recipe``) on one dataset; ``twin`` at the headline one."""

    how: reading.Measure
    level: str
    headline: str
    rows: pd.DataFrame
    twin: pd.DataFrame


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    model: str,
    twin: str = "",
    dataset: str = "",
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw every metric of one model, variant ``paper``, with its null and one standard error.

    Args:
        tables: the result tables by name; ``metrics`` is used.
        model: the name of the model.
        twin: the name of its untrained twin; empty if it has none.
        dataset: the corpus; a metric that it lacks is drawn on what is derived from it, else on its first dataset.
        headline_readout: the readout of the untrained twin and of the broken pairs.
        headline_recipe: the recipe of the untrained twin.
    """
    title = QUESTION.format(model)
    found = parts(tables, model, twin, dataset, {"readout": headline_readout, "recipe": headline_recipe})
    groups = {level: [part for part in found if part.level == level] for level in HEADINGS}
    groups = {level: members for level, members in groups.items() if members}
    if not groups:
        return style.sentence(title, f"There is no metric to draw: metrics.csv holds no defined value of {model!r}.")
    counts = [len(members) for members in groups.values()]
    names = [name for part in found for name in part.rows[part.level].unique()]
    room = style.Room(left=0.56, right=room_for([*names, "untrained"]), between=(0.54, 0.92), above=0.56)
    columns = max(2, min(COLUMNS, max(counts)))
    made = style.sheet(title, _notes(found), style.rows_for(counts, columns), columns, 1.25, room)
    for panels, (level, members) in zip(style.flow(made, counts), groups.items(), strict=True):
        style.heading(panels[0], HEADINGS[level], lines=2)
        for index, (panel, part) in enumerate(zip(panels, members, strict=True)):
            ends = _draw_part(panel, part)
            if index % columns == columns - 1 or panel is panels[-1]:
                end_labels(panel, ends, room.right)
    return made.figure


def parts(
    tables: Mapping[str, pd.DataFrame], model: str, twin: str, dataset: str, headlines: Mapping[str, str]
) -> list[Part]:
    """Return what is drawn, in the order of ``reading.MEASURES``, other metrics after them.

    Args:
        tables: the result tables by name.
        model: the name of the model.
        twin: the name of its untrained twin; empty if it has none.
        dataset: the corpus that is preferred.
        headlines: the headline readout and recipe by level.
    """
    metrics = reading.table(tables, "metrics")
    own = metrics[metrics["model"] == model]
    made = []
    for metric in reading.ordered(own["metric"]):
        rows = reading.metric_rows(metrics[metrics["model"].isin([model, twin])], metric)
        for level in LEVELS:
            part = rows[(rows["model"] == model) & (rows[level] != "")]
            part = part[part["y"].notna().groupby(part["dataset"]).transform("any")]
            if len(part):
                part = part[part["dataset"] == _chosen(part, dataset)]
                headline = reading.first(part[level], headlines[level])
                grey = rows[(rows["model"] == twin) & (rows[level] == headline)]
                grey = grey[grey["dataset"] == part["dataset"].iloc[0]]
                made.append(Part(reading.measure(metric), level, headline, part, grey))
    return made


def _chosen(rows: pd.DataFrame, dataset: str) -> str:
    corpora = rows[rows["task"] == ""] if (rows["task"] == "").any() else rows
    names = reading.unique(corpora["dataset"])
    return reading.first(names, dataset, *(name for name in names if name.split("~")[0] == dataset))


def _draw_part(axes: Axes, part: Part) -> list[tuple[str, str, float]]:
    values = values_of(part.rows, part.level, part.headline, part.twin)
    free = (0.12, 0.27 / style.size_of(axes)[1])
    style.value_axis(axes, values, reading.first(part.rows["y_unit"]), part.how.scale, free)
    title = part.how.title + saturated(part.rows)
    style.panel_title(axes, title, f"{part.rows['dataset'].iloc[0]}, {count(part.rows)}", extra=0.3)
    style.depth_axis(axes)
    return draw_part(axes, part.rows, part.level, part.headline, part.twin)


def _notes(found: list[Part]) -> list[str]:
    rows = pd.concat([part.rows for part in found])
    parameters = {part.how.title: reading.parameters_text(reading.first(part.rows["parameters"])) for part in found}
    written = "; ".join(f"{title} {text}" for title, text in parameters.items() if text)
    excluded = rows["n_excluded"].max()
    grey = [f"{reading.first(part.twin[part.level])} ({part.level})" for part in found if len(part.twin)]
    return [
        f"{reading.layers_of(rows).capitalize()}; depth is layer / last layer. Variant paper; {written or 'no parameters'}.",
        *dict.fromkeys(part.how.note for part in found if part.how.column == "normalized"),
        "Band: one standard error. Dashed (null): mean over random Gaussian draws of the same shape.",
        "Dotted: views paired at random, at the headline readout." if rows["broken"].notna().any() else "",
        f"n: samples, at most {excluded:.0f} of them excluded." if excluded > 0 else "n: samples.",
        "Pale: saturated, the layers differ too little to be told apart." if rows["saturated"].any() else "",
        f"Grey: the untrained twin at {' and '.join(dict.fromkeys(grey))}." if grey else "",
    ]
