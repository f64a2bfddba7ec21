"""How does one metric change over depth? A row per model and level, a column per dataset."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, room_for
from layerwise.figures.metric_panel import LEVELS, count, curves, draw_part, saturated, values_of

QUESTION = "How does {} change over depth?"
COLUMNS = 5
ROWS = 12


@dataclass(frozen=True)
class Row:
    """One row of panels: a model at one level (``readout`` or ``recipe``), and its untrained twin at the headline one."""

    model: str
    level: str
    headline: str
    rows: pd.DataFrame
    twin: pd.DataFrame

    def datasets(self) -> list[str]:
        """Return the datasets to draw, corpora before the tasks' own texts."""
        corpora = sorted(reading.unique(self.rows[self.rows["task"] == ""]["dataset"]), key=_derived)
        return [*corpora, *(name for name in reading.unique(self.rows["dataset"]) if name not in corpora)][:COLUMNS]

    def names(self) -> list[str]:
        """Return the end labels of the row."""
        last = self.rows[self.rows["dataset"] == self.datasets()[-1]]
        return [*curves(last, self.level), "untrained" if len(self.twin) else ""]


def _derived(dataset: str) -> bool:
    return "~" in dataset


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    metric: str,
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw one metric, variant ``paper``, with its null and one standard error.

    Args:
        tables: the result tables by name; ``metrics`` is used.
        metric: the name of the metric.
        headline_readout: the readout at which the untrained twin and the broken pairs are drawn.
        headline_recipe: the recipe at which the untrained twin is drawn.
    """
    how = reading.measure(metric)
    title = QUESTION.format(how.title)
    frame = reading.metric_rows(reading.table(tables, "metrics"), metric)
    if frame["y"].notna().sum() == 0:
        return style.sentence(title, f"There is no {how.title} to draw: metrics.csv holds no defined value of {metric!r}.")
    models, left_out = reading.limit(reading.trained(frame["model"]), ROWS, "models")
    rows = _rows(frame, models, {"readout": headline_readout, "recipe": headline_recipe})
    right = room_for([name for row in rows for name in row.names()])
    made, places = _layout(title, [*_notes(frame, how), left_out], [len(row.datasets()) for row in rows], right)
    for axes, row in zip(places, rows, strict=True):
        dense = style.density(len(rows) if len(axes) > 1 else 1)
        _draw_row(axes, row, how, right, dense.lines)
        for panel in axes:
            style.depth_axis(panel, dense.every_label or row is rows[-1])
    return made.figure


def _layout(title: str, notes: list[str], counts: list[int], right: float) -> tuple[style.Sheet, list[list[Axes]]]:
    if max(counts) > 1:
        dense = style.density(len(counts))
        room = style.Room(right=right, above=0.56, between=(0.24, dense.gap), left=0.56)
        made = style.sheet(title, notes, len(counts), max(counts), dense.height, room)
        return made, made.axes
    room = style.Room(right=right, above=0.56, between=(right + 0.5, 0.72), left=0.56)
    made = style.sheet(title, notes, (len(counts) + 1) // 2, 2, 1.25, room)
    panels = [[axes] for line in made.axes for axes in line]
    for spare in panels[len(counts) :]:
        spare[0].set_axis_off()
    return made, panels[: len(counts)]


def _rows(frame: pd.DataFrame, models: list[str], headlines: dict[str, str]) -> list[Row]:
    rows = []
    for model in models:
        for level in LEVELS:
            own = frame[(frame["model"] == model) & (frame[level] != "")]
            twin = frame[(frame["model"] == model + reading.TWIN) & (frame[level] != "")]
            if own["y"].notna().any():
                headline = reading.first(own[level], headlines[level])
                rows.append(Row(model, level, headline, own, twin[twin[level] == headline]))
    return rows


def _draw_row(axes: list[Axes], row: Row, how: reading.Measure, right: float, lines: int) -> None:
    datasets = row.datasets()
    shown = row.rows[row.rows["dataset"].isin(datasets)]
    twin = row.twin[row.twin["dataset"].isin(datasets)]
    values = values_of(shown, row.level, row.headline, twin)
    label = reading.first(shown["y_unit"])
    heading = f"{row.model}: {reading.layers_of(row.rows)}, {LEVELS[row.level]}"
    heading += "" if lines > 1 else f", {count(shown)}{saturated(shown)}"
    style.heading(axes[0], heading, lines, 0 if len(axes) > 1 else style.size_of(axes[0])[0] + right)
    for panel, dataset in zip(axes, datasets, strict=False):
        part = shown[shown["dataset"] == dataset]
        style.value_axis(panel, values, label if panel is axes[0] else "", how.scale, (0.12, 0.27 / style.size_of(panel)[1]))
        style.panel_title(panel, *(dataset, count(part) + saturated(part))[:lines], extra=0.15)
        panel.tick_params(labelleft=panel is axes[0])
        style.depth_axis(panel, label=False)
        ends = draw_part(panel, part, row.level, row.headline, twin[twin["dataset"] == dataset])
        if panel is axes[len(datasets) - 1]:
            end_labels(panel, ends, right)
    for panel in axes[len(datasets) :]:
        panel.set_axis_off()


def _notes(frame: pd.DataFrame, how: reading.Measure) -> list[str]:
    scaled = f" as {how.unit}" if how.column == "normalized" else ""
    parameters = reading.parameters_text(reading.first(frame["parameters"])) or "none"
    excluded = frame["n_excluded"].max()
    return [
        f"Drawn: {how.title}{scaled}, variant paper, parameters: {parameters}. {how.note}".strip(),
        "One line per readout (pooled) or recipe (token level). Depth is layer / last layer. Band: one standard error.",
        "Dashed (null): mean over random Gaussian draws of the same",
        "shape." + (" Dotted: views paired at random, at the headline readout." if frame["broken"].notna().any() else ""),
        f"n: samples of the dataset, at most {excluded:.0f} of them excluded." if excluded > 0 else "n: samples.",
        "Pale: saturated, the layers differ too little to be told apart." if frame["saturated"].any() else "",
        "Grey: the untrained twin." if frame["model"].str.endswith(reading.TWIN).any() else "",
        f"At most {COLUMNS} datasets are drawn, corpora first." if frame["dataset"].nunique() > COLUMNS else "",
    ]
