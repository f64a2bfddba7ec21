"""What does the best layer give over the last? Cross-fitted gains with intervals, per model, readout and task."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import beside, column_head
from layerwise.figures.style import SMALL

QUESTION = "What does the best layer give over the last?"
ROWS = 12
COLUMNS = 4
MANY_TASKS = 12
STEP = 0.17


def draw(tables: Mapping[str, pd.DataFrame], *, headline_readout: str = style.HEADLINE_READOUT) -> Figure:
    """Draw a row per model and a column per readout; with many tasks, the headline readout and a column per model.

    Args:
        tables: the result tables by name; ``layer_summary`` is used.
        headline_readout: the readout that is drawn first, and alone where there are many tasks.
    """
    summary = reading.one_protocol(reading.table(tables, "layer_summary"), ("task",))
    summary = summary[summary["gain_cross_fitted"].notna() | summary["gain"].notna()]
    if summary.empty:
        return style.sentence(QUESTION, "There is no gain to draw: this study scores no task (layer_summary.csv is empty).")
    models, left_out = reading.limit(reading.trained(summary["model"]), ROWS, "models")
    summary = summary[summary["model"].isin(models)]
    headline = reading.first(summary["readout"], headline_readout)
    summary = _own_readouts(summary, headline)
    readouts = [headline, *(name for name in reading.unique(summary["readout"]) if name != headline)][:COLUMNS]
    per_task = max(rows["task"].nunique() for _, rows in summary.groupby("model"))
    if per_task > MANY_TASKS:
        grid = [[(model, headline) for model in models[at : at + COLUMNS]] for at in range(0, len(models), COLUMNS)]
    else:
        grid = [[(model, readout) for readout in readouts] for model in models]
    return _draw_grid(summary, grid, per_task, [*_notes(summary), left_out])


def _own_readouts(summary: pd.DataFrame, headline: str) -> pd.DataFrame:
    """Show a task that lacks the headline readout beside the others, at its first, which its name then says."""
    groups = [summary["model"], summary["task"]]
    has = (summary["readout"] == headline).groupby(groups).transform("any")
    moved = ~has & (summary["readout"] == summary.groupby(["model", "task"])["readout"].transform("first"))
    names = summary["task"].where(~moved | (summary["task"] == "all"), summary["task"] + " (" + summary["readout"] + ")")
    kept = summary["readout"].where(~moved, headline)
    return summary.assign(task=names, readout=kept)[has | moved | (summary["readout"] == headline)]


def _draw_grid(summary: pd.DataFrame, grid: list[list[tuple[str, str]]], per_task: int, notes: list[str]) -> Figure:
    longest = max(map(len, reading.unique(summary["task"])))
    above = 0.46 if len(grid[0]) > 1 and len({model for model, _ in grid[0]}) == 1 else 0.3
    room = style.Room(left=min(1.4, 0.2 + style.CHARACTER * longest), right=0.4, between=(0.45, 0.66), above=above)
    made = style.sheet(QUESTION, notes, len(grid), len(grid[0]), STEP * (per_task + 0.4), room)
    limits = _limits(summary)
    for axes, cells in zip(made.axes, grid, strict=True):
        tasks = reading.unique(summary[summary["model"].isin([model for model, _ in cells])]["task"])
        same = len({model for model, _ in cells}) == 1 and len(grid[0]) > 1
        for panel, (model, readout) in zip(axes, cells, strict=False):
            rows = summary[(summary["model"] == model) & (summary["readout"] == readout)]
            _panel(panel, rows, tasks, limits)
            style.panel_title(panel, readout if same else f"{model}, {readout}", extra=0)
            panel.tick_params(labelleft=panel is axes[0])
        if same:
            style.heading(axes[0], f"{cells[0][0]}: layers 0 to {_last_layer(summary, cells[0][0])}")
        for panel in axes[len(cells) :]:
            panel.set_axis_off()
    return made.figure


def _last_layer(summary: pd.DataFrame, model: str) -> str:
    return f"{summary[summary['model'] == model]['n_layers'].max():.0f}"


def _limits(summary: pd.DataFrame) -> tuple[float, float]:
    columns = ["gain", "gain_cross_fitted", "gain_low", "gain_high"]
    values = 100 * summary[columns].to_numpy(float)
    low, high = min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values)))
    pad = 0.06 * (high - low) or 1.0
    return low - pad, high + pad


def _panel(axes: Axes, rows: pd.DataFrame, tasks: list[str], limits: tuple[float, float]) -> None:
    order = [task for task in tasks if task != "all"] + [task for task in tasks if task == "all"]
    axes.set_xlim(*limits)
    axes.set_ylim(len(order) - 0.4, -0.8)
    axes.axvline(0, color=style.INK, linewidth=0.7, label="zero", zorder=1)
    names = [style.shorten(task, 1.15) for task in order]
    axes.set_yticks(range(len(order)), names, size=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(4, min_n_ticks=2))
    axes.set_xlabel("gain (points)", size=SMALL, labelpad=1.5)
    if "all" in order:
        axes.axhspan(order.index("all") - 0.5, order.index("all") + 0.5, color="#EEEEEE", zorder=0)
    column_head(axes, "best")
    for row in rows.to_dict("records"):
        y = order.index(row["task"])
        gain, fitted, low, high = (100 * row[name] for name in ("gain", "gain_cross_fitted", "gain_low", "gain_high"))
        _dot(axes, y, gain, fitted, low, high)
        beside(axes, y, style.NOTHING if np.isnan(row["best_layer"]) else f"{row['best_layer']:.0f}")


def _dot(axes: Axes, y: float, gain: float, fitted: float, low: float, high: float) -> None:
    shade = style.COLOURS["mean_normed"] if not low <= 0 <= high else style.INK
    axes.plot([low, high], [y, y], color=shade, linewidth=1.2, solid_capstyle="butt", zorder=2)
    axes.plot([gain], [y], "D", markersize=3, markerfacecolor="none", markeredgewidth=0.6, color=style.GREY, zorder=2)
    axes.plot([fitted], [y], "o", markersize=3.6, color=shade, zorder=3, label="cross-fitted gain")


def _notes(summary: pd.DataFrame) -> list[str]:
    tasks = summary[summary["task"] == "all"]["n_tasks"].dropna()
    items = summary[summary["task"] != "all"]["n_items"].dropna()
    bars = summary["gain_low"].dropna()
    by_task = (summary["gain_unit"] == "tasks").any()
    span = " to ".join(f"{n:.0f}" for n in sorted({items.min(), items.max()})) if len(items) else ""
    protocols = ", ".join(reading.unique(summary[summary["task"] != "all"]["protocol"]))
    mean = f"all: mean over {' or '.join(f'{n:.0f}' for n in sorted(set(tasks)))} tasks." if len(tasks) else ""
    return [
        "Dot and bar: gain in score points of the best layer over the last, chosen on one half of the test items and",
        "measured on the other (200 splits), with its paired 95 % interval; blue where the interval excludes zero.",
        "For all, the halves are halves of the tasks where a task keeps no items." if by_task else "",
        "Diamond: the gain where the layer is chosen and measured on the same items. Right: number of the best layer.",
        f"n = {span} test items per task." if span else "",
        f"Protocol: {protocols}; {mean}",
        _left_out(summary),
        f"Each of the {len(bars)} intervals is for itself: were all gains zero, about {len(bars) / 20:.0f} would miss it."
        if len(bars) >= 20
        else "Each interval is for itself; one in twenty misses the truth.",
    ]


def _left_out(summary: pd.DataFrame) -> str:
    """Return which models' means leave out tasks, which the column ``flag`` says."""
    rows = summary[(summary["task"] == "all") & summary["flag"].str.contains("left out")]
    found = {f"{row['model']}: {str(row['flag']).rsplit(': ', 1)[-1]}" for row in rows.to_dict("records")}
    return f"Not in all, because not every model or readout has it: {'; '.join(sorted(found))}." if found else ""
