"""What does each layer kept cost, and give? Scores against the operations of the model cut there, models in one panel."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import place
from layerwise.figures.score_panel import layers_and_baselines

QUESTION = "What does each layer kept cost, and what does it give?"
COLUMNS = 5
MODELS = 8
SHADES = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#B37400", "#332288", "#661100", "#44AA99")


def draw(tables: Mapping[str, pd.DataFrame], *, headline_readout: str = style.HEADLINE_READOUT) -> Figure:
    """Draw a row per set of models that share tasks and a panel per task; many tasks are means over each type of task.

    Args:
        tables: the result tables by name; ``scores`` and ``layer_costs`` are used.
        headline_readout: the readout whose scores are drawn; a task without it is drawn at its own.
    """
    layers, _ = layers_and_baselines(reading.table(tables, "scores"))
    costs = reading.table(tables, "layer_costs").dropna(subset=["flops"])
    layers = layers[layers["model"].isin(reading.trained(layers["model"]))]
    headline = reading.first(layers["readout"], headline_readout)
    rows = reading.at_headline(layers, headline).merge(
        costs[["model", "task", "layer", "flops", "flops_share"]], on=["model", "task", "layer"]
    )
    rows = rows[(rows["layer"] > 0) & rows["score"].notna()]
    if rows.empty:
        return style.sentence(QUESTION, "There is no score with a cost to draw: this study scores no task, or of no model.")
    groups = _groups(rows)
    columns = max(len(panels) for panels in groups.values())
    shades = {name: SHADES[i % MODELS] for i, name in enumerate(dict.fromkeys(model for each in groups for model in each))}
    room = style.Room(above=0.56, between=(0.38, 0.86))
    made = style.sheet(QUESTION, _notes(rows, groups, headline), len(groups), columns, 1.25, room)
    for axes, (models, panels) in zip(made.axes, groups.items(), strict=True):
        _names(axes[0], {model: shades[model] for model in models})
        for panel, (title, part) in zip(axes, panels.items(), strict=False):
            _panel(panel, title, part, {model: shades[model] for model in models})
        axes[0].set_ylabel("score (points)", size=style.SMALL, labelpad=2)
        for panel in axes[len(panels) :]:
            panel.set_axis_off()
    return made.figure


def _groups(rows: pd.DataFrame) -> dict[tuple[str, ...], dict[str, pd.DataFrame]]:
    """Return the panels (task or mean over tasks) of each set of models that are scored on the same tasks."""
    sets: dict[tuple[str, ...], list[str]] = {}
    for task in reading.unique(rows["task"]):
        models = tuple(reading.unique(rows[rows["task"] == task]["model"])[:MODELS])
        sets.setdefault(models, []).append(task)
    made = {}
    for models, tasks in sets.items():
        own = rows[rows["task"].isin(tasks) & rows["model"].isin(models)]
        if len(tasks) <= COLUMNS:
            made[models] = {task: own[own["task"] == task] for task in tasks}
            continue
        kinds = reading.unique(own["type"])[: COLUMNS - 1]
        named = {kind: reading.unique(own[own["type"] == kind]["task"]) for kind in kinds} | {"all": tasks}
        made[models] = {
            f"{kind.replace('_', ' ')}, {len(members)} tasks": own[own["task"].isin(members)]
            for kind, members in named.items()
        }
    return made


def _curve(rows: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return layer, flops, flops_share and score (points) of one model: means over those tasks that have every layer."""
    own = rows[rows["model"] == model]
    counts = own.groupby("task")["layer"].nunique()
    whole = own[own["task"].isin(counts[counts == counts.max()].index)]
    means = whole.groupby("layer", as_index=False)[["flops", "flops_share", "score"]].mean()
    return means.assign(score=100 * means["score"])


def _names(axes: Axes, models: Mapping[str, str]) -> None:
    """Write the models of a row over it, each in its colour; the curves end too close to one another for labels there."""
    room = (style.WIDTH - style.MARGIN - axes.get_window_extent().x0 / axes.figure.dpi) / len(models)
    at = 0.0
    for model, shade in models.items():
        name = style.shorten(model, room / 1.2 - 3 * style.CHARACTER)
        axes.annotate(
            name, (0, 1), (72 * at, 6 + 2 * style.LINE * 72), xycoords="axes fraction", textcoords="offset points",
            size=style.SMALL + 0.5, weight="bold", color=shade, annotation_clip=False,
        )  # fmt: skip
        at += 1.2 * style.CHARACTER * (len(name) + 3)


def _panel(axes: Axes, title: str, rows: pd.DataFrame, models: Mapping[str, str]) -> None:
    curves = {model: _curve(rows, model) for model in models}
    style.value_axis(axes, [y for curve in curves.values() for y in curve["score"]], free=(0.14, 0.3))
    axes.set_xscale("log")
    low, high = (pick(part["flops"].agg(kind) for part in curves.values()) for pick, kind in ((min, "min"), (max, "max")))
    margin = max(high / low, 4.0) ** 0.06
    axes.set_xlim(low / margin, high * margin)
    _operations(axes, low, high)
    for model, curve in curves.items():
        style.line(axes, curve["flops"].to_numpy(), curve["score"].to_numpy(), model, color=models[model], linestyle="-")
    for model, curve in curves.items():
        _mark(axes, curve, models[model])
    style.panel_title(axes, title, f"n = {rows['n_items'].min():.0f}")


def _operations(axes: Axes, low: float, high: float) -> None:
    """Put ticks at one, two and five times powers of ten, few enough to be read."""
    ticks = [t for t in LogLocator(10, (1.0, 2.0, 5.0)).tick_values(low, high) if low <= t <= high]
    while len(ticks) > 3:
        ticks = ticks[::2] if len(ticks) > 4 else ticks[1:]
    axes.xaxis.set_major_locator(FixedLocator(ticks or [high]))
    axes.xaxis.set_major_formatter(FuncFormatter(_giga))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("operations, 10\u2079", size=style.SMALL, labelpad=1.5)


def _giga(value: float, _position: int) -> str:
    return f"{value / 1e9:.3g}"


def _mark(axes: Axes, curve: pd.DataFrame, shade: str) -> None:
    """Mark the best layer with a ring, its number and share of the operations, and the last layer with a square."""
    best, last = curve.iloc[int(curve["score"].to_numpy().argmax())], curve.iloc[-1]
    axes.plot(best["flops"], best["score"], "o", markersize=6.5, markerfacecolor="none", color=shade, label="best", zorder=4)
    axes.plot(last["flops"], last["score"], "s", markersize=4, markerfacecolor="none", color=shade, label="last", zorder=4)
    share = "" if best["layer"] == last["layer"] else f": {100 * best['flops_share']:.0f} %"
    text = f"{best['layer']:.0f}{share}"
    place(axes, text, [(float(best["flops"]), float(best["score"]))], shade)


def _notes(rows: pd.DataFrame, groups: Mapping[tuple[str, ...], object], headline: str) -> list[str]:
    drawn = {model for models in groups for model in models}
    rest = sorted(set(reading.unique(rows["model"])) - drawn)
    means = rows.groupby("model")["task"].nunique().max() > COLUMNS
    return [
        "A point is the model cut after one of its layers, layer 1 on the left and the last on the right (layer 0 runs no "
        "block); dots are layers, readout",
        f"{headline} (a task without it: its own). Ring: best layer, its number and share of the whole model's operations;",
        "square: last layer. Operations per sample: two per weight of the blocks and token, and attention, at the mean",
        "length of the task's samples; without embeddings and heads. n: test items.",
        "With many tasks: means over those of a type that have every layer." if means else "",
        f"Not drawn, beyond {MODELS} models: {', '.join(rest)}." if rest else "",
        "The best of many layers is optimistic on the items it was chosen on; figure gains says by how much.",
    ]
