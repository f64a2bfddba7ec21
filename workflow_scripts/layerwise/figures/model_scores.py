"""Which layer of one model is best? A panel per task."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, room_for
from layerwise.figures.score_panel import Cell, draw_cell, ends_of, layers_and_baselines, make_cell

QUESTION = "Which layer of {} is best?"
COLUMNS = 3
TASKS = 36


def draw(
    tables: Mapping[str, pd.DataFrame], *, model: str, twin: str = "", headline_readout: str = style.HEADLINE_READOUT
) -> Figure:
    """Draw the scores of every layer of one model on every task.

    Args:
        tables: the result tables by name; ``scores`` is used.
        model: the name of the model.
        twin: the name of its untrained twin; empty if it has none.
        headline_readout: the readout that is drawn thick and whose best and last layers are marked.
    """
    title = QUESTION.format(model)
    layers, baselines = layers_and_baselines(reading.table(tables, "scores"))
    own = layers[(layers["model"] == model) & layers["score"].notna().groupby(layers["task"]).transform("any")]
    if own["score"].notna().sum() == 0:
        return style.sentence(title, f"There is no score to draw: scores.csv has no layer of {model!r}.")
    tasks, left_out = reading.limit(reading.unique(own["task"]), TASKS, "tasks")
    headline = reading.first(own["readout"], headline_readout)
    grey = reading.at_headline(layers[layers["model"] == twin], headline)
    cells = [make_cell(own, grey, baselines, task, [task]) for task in tasks]
    room = style.Room(right=room_for([name for cell in cells for name, _, _ in ends_of(cell)]), between=(0.42, 0.74))
    columns = max(2, -(-len(cells) // -(-len(cells) // COLUMNS)))
    notes = [*_notes(own, cells, headline), left_out]
    made = style.sheet(title, notes, style.rows_for([len(cells)], columns), columns, 1.35, room)
    panels = style.flow(made, [len(cells)])[0]
    for index, (panel, cell) in enumerate(zip(panels, cells, strict=True)):
        draw_cell(panel, cell, headline, cell.values())
        style.panel_title(panel, f"{cell.title}: {cell.detail}", _counted(own[own["task"] == cell.title]))
        style.depth_axis(panel)
        panel.set_ylabel("score (points)" if index % columns == 0 else "", size=style.SMALL, labelpad=2)
        if index % columns == columns - 1 or panel is panels[-1]:
            end_labels(panel, ends_of(cell), room.right)
    return made.figure


def _counted(rows: pd.DataFrame) -> str:
    items = rows["n_items"].max()
    return f"{rows['protocol'].iloc[0]}, n = {items:.0f}" if items > 0 else str(rows["protocol"].iloc[0])


def _notes(own: pd.DataFrame, cells: list[Cell], headline: str) -> list[str]:
    return [
        f"{reading.layers_of(own).capitalize()}; depth is layer / last layer; points are 100 x the task's main score.",
        f"One line per readout, {headline} thick. Ring and number: its best layer; square: its last layer.",
        "Dotted: baselines without a model. n: test items (of pair tasks: pairs).",
        "Grey: the untrained twin, same readout." if any(cell.twin for cell in cells) else "",
    ]
