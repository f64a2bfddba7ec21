"""Which layer is best? Scores over depth, a row per model and a column per task."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, room_for
from layerwise.figures.score_panel import Cell, draw_cell, ends_of, layers_and_baselines, make_cell

QUESTION = "Which layer is best?"
COLUMNS = 6
ROWS = 12


def draw(tables: Mapping[str, pd.DataFrame], *, headline_readout: str = style.HEADLINE_READOUT) -> Figure:
    """Draw the scores of every layer; more than six tasks are drawn as means over each type of task.

    Args:
        tables: the result tables by name; ``scores`` is used.
        headline_readout: the readout whose best and last layers are marked.
    """
    layers, baselines = layers_and_baselines(reading.table(tables, "scores"))
    if layers["score"].notna().sum() == 0:
        return style.sentence(QUESTION, "There is no score to draw: this study scores no task (scores.csv has no layer).")
    models, left_out = reading.limit(reading.trained(layers["model"]), ROWS, "models")
    headline = reading.first(layers["readout"], headline_readout)
    rows = {model: _cells(layers, baselines, model, headline) for model in models}
    names = ["untrained", *(name for cells in rows.values() for cell in cells for name in cell.curves)]
    dense = style.density(len(rows))
    room = style.Room(right=room_for(names), above=0.56, between=(0.36, dense.gap))
    columns = max(len(cells) for cells in rows.values())
    made = style.sheet(QUESTION, [*_notes(layers, headline), left_out], len(rows), columns, dense.height, room)
    for axes, (model, cells) in zip(made.axes, rows.items(), strict=True):
        style.heading(axes[0], f"{model}: {reading.layers_of(layers[layers['model'] == model])}", dense.lines)
        for panel, cell in zip(axes, cells, strict=False):
            shared = [other for others in rows.values() for other in others if other.title == cell.title]
            draw_cell(panel, cell, headline, [value for other in shared for value in other.values()])
            style.panel_title(panel, *(cell.title, cell.detail)[: dense.lines])
            style.depth_axis(panel, dense.every_label or axes is made.axes[-1])
        axes[0].set_ylabel("score (points)", size=style.SMALL, labelpad=2)
        end_labels(axes[len(cells) - 1], ends_of(cells[-1]), room.right)
        for panel in axes[len(cells) :]:
            panel.set_axis_off()
    return made.figure


def _cells(layers: pd.DataFrame, baselines: pd.DataFrame, model: str, headline: str) -> list[Cell]:
    own = layers[layers["model"] == model]
    twin = reading.at_headline(layers[layers["model"] == model + reading.TWIN], headline)
    tasks = reading.unique(own["task"])
    if len(tasks) <= COLUMNS:
        groups = {task: [task] for task in tasks}
    else:
        groups = {kind: reading.unique(own[own["type"] == kind]["task"]) for kind in reading.unique(own["type"])}
        groups = dict(list(groups.items())[: COLUMNS - 1]) | {"all": tasks}
    cells = [make_cell(own, twin, baselines, title, members, len(tasks) > COLUMNS) for title, members in groups.items()]
    return [cell for cell in cells if cell.curves] or [Cell("no complete task", "", {}, {})]


def _notes(layers: pd.DataFrame, headline: str) -> list[str]:
    protocols = [
        f"{protocol} ({', '.join(reading.unique(rows['task']))})" if layers["task"].nunique() <= COLUMNS else str(protocol)
        for protocol, rows in layers.groupby("protocol", sort=False)
    ]
    items = layers.drop_duplicates("task").set_index("task")["n_items"].dropna()
    counts = ", ".join(f"{task} {int(n)}" for task, n in items.items()) if len(items) <= COLUMNS else ""
    spread = " to ".join(f"{n:.0f}" for n in sorted({items.min(), items.max()})) if len(items) > COLUMNS else counts
    return [
        "Depth is layer / last layer; points are 100 x the task's main score; one line per readout.",
        f"Ring and number: best layer of {headline}; square: its last layer. Dotted: baselines without a model.",
        f"Protocol: {', '.join(protocols)}. Test items: {spread or 'not recorded'}.",
    ]
