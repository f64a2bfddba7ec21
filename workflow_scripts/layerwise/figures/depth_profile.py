"""How does the score change with depth? Means over the tasks of each type, with a band over the tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layerwise.figures import reading, style
from layerwise.figures.labels import levels
from layerwise.figures.score_panel import layers_and_baselines, mark

QUESTION = "At which depth is the score highest?"
COLUMNS = 6
ROWS = 12


@dataclass(frozen=True)
class Profile:
    """The mean curve of one model over tasks of one type, in points; the band is NaN for one task."""

    title: str
    tasks: list[str]
    left_out: list[str]
    depth: np.ndarray
    mean: np.ndarray
    band: np.ndarray
    twin: np.ndarray  # on the same depths and tasks; empty if the twin lacks one of them
    baseline: tuple[str, float]


def draw(tables: Mapping[str, pd.DataFrame], *, headline_readout: str = style.HEADLINE_READOUT) -> Figure:
    """Draw a row per model and a column per type of task, and one for all tasks.

    A mean is over the tasks that all models with tasks of that type have at every layer.

    Args:
        tables: the result tables by name; ``scores`` is used.
        headline_readout: the readout that is drawn; a task without it is drawn at its own.
    """
    layers, baselines = layers_and_baselines(reading.table(tables, "scores"))
    layers = layers[layers["score"].notna()]
    if layers.empty:
        return style.sentence(QUESTION, "There is no score to draw: this study scores no task (scores.csv has no layer).")
    models, left_out = reading.limit(reading.trained(layers["model"]), ROWS, "models")
    headline = reading.first(layers["readout"], headline_readout)
    layers = reading.at_headline(layers, headline)
    rows = {model: _profiles(layers, baselines, model) for model in models}
    rows = {model: profiles for model, profiles in rows.items() if profiles}
    if not rows:
        return style.sentence(QUESTION, "There is no score to draw: no task has a score at every layer of its models.")
    dense = style.density(len(rows))
    columns = max(len(profiles) for profiles in rows.values())
    room = style.Room(above=0.56, between=(0.36, dense.gap))
    notes = [*_notes(rows, headline), left_out]
    made = style.sheet(QUESTION, notes, len(rows), columns, dense.height, room)
    for axes, (model, profiles) in zip(made.axes, rows.items(), strict=True):
        style.heading(axes[0], f"{model}: {reading.layers_of(layers[layers['model'] == model])}", dense.lines)
        for panel, profile in zip(axes, profiles, strict=False):
            _panel(panel, profile, dense.every_label or axes is made.axes[-1])
            count = f"n = {len(profile.tasks)} task{'s' * (len(profile.tasks) > 1)}"
            both = (profile.title, count) if dense.lines > 1 else (f"{profile.title}, {count}",)
            style.panel_title(panel, *both)
        axes[0].set_ylabel("score (points)", size=style.SMALL, labelpad=2)
        for panel in axes[len(profiles) :]:
            panel.set_axis_off()
    return made.figure


def _profiles(layers: pd.DataFrame, baselines: pd.DataFrame, model: str) -> list[Profile]:
    own = layers[layers["model"] == model]
    kinds = reading.unique(own["type"])
    groups = {kind: reading.unique(own[own["type"] == kind]["task"]) for kind in kinds[: COLUMNS - 1]}
    if len(kinds) > 1:
        groups["all"] = reading.unique(own["task"])
    found = [_profile(layers, baselines, model, title, tasks) for title, tasks in groups.items()]
    return [profile for profile in found if profile is not None]


def _profile(layers: pd.DataFrame, baselines: pd.DataFrame, model: str, title: str, tasks: list[str]) -> Profile | None:
    every = {
        str(name): _whole(rows, tasks) for name, rows in layers.groupby("model") if name in reading.trained(layers["model"])
    }
    common = sorted(set.intersection(*(set(wide.columns) for wide in every.values() if len(wide.columns))) & set(tasks))
    if not common or len(every[model].columns) == 0:
        return None
    wide = 100 * every[model][common]
    spread = wide - wide.mean()  # what is left of a task when its own level is out
    band = spread.std(axis="columns", ddof=1).to_numpy(float) if len(common) > 1 else np.full(len(wide), np.nan)
    grey = _whole(layers[layers["model"] == model + reading.TWIN], common)
    twin = 100 * grey.mean(axis="columns").to_numpy(float) if set(grey.columns) == set(common) else np.empty(0)
    depth = wide.index.to_numpy(float) / max(float(wide.index.max()), 1.0)
    floors = baselines[baselines["task"].isin(common)].dropna(subset=["score"]).groupby("baseline")["score"]
    means = {str(name): 100 * float(part.mean()) for name, part in floors if len(part) == len(common)}
    best = max(means, key=lambda name: means[name], default="")
    mean = wide.mean(axis="columns").to_numpy(float)
    absent = [task for task in tasks if task not in common]
    named = title.replace("_", " ")
    return Profile(named, common, absent, depth, mean, band, twin, (best, means.get(best, np.nan)))


def _whole(rows: pd.DataFrame, tasks: list[str]) -> pd.DataFrame:
    """Scores as layers x tasks, of those tasks that have every layer."""
    wide = rows[rows["task"].isin(tasks)].pivot_table(index="layer", columns="task", values="score", aggfunc="mean")
    return wide.dropna(axis="columns")


def _panel(axes: Axes, profile: Profile, label: bool) -> None:
    shade = style.COLOURS["mean_normed"]
    low, high = profile.mean - profile.band, profile.mean + profile.band
    style.depth_axis(axes, label)
    values = np.concatenate([profile.mean, low, high, profile.twin, [profile.baseline[1]]])
    style.value_axis(axes, values.tolist(), free=(0.12, 0.27 / style.size_of(axes)[1]))
    if np.isfinite(low).any():
        axes.fill_between(profile.depth, low, high, color=shade, alpha=0.2, linewidth=0, zorder=1.5)
    if len(profile.twin) == len(profile.depth):
        style.line(axes, profile.depth, profile.twin, "untrained", color=style.GREY, linestyle="-", zorder=1.8)
    axes.axhline(profile.mean[-1], color=style.INK, linewidth=0.6, linestyle="--", zorder=1.6, label="last layer")
    style.line(axes, profile.depth, profile.mean, "mean over tasks", color=shade, linestyle="-", linewidth=1.5, zorder=3)
    mark(axes, profile.depth, profile.mean, shade)
    name, level = profile.baseline
    levels(axes, [(level, name.replace("_", " "), "#555555", ":")])


def _notes(rows: Mapping[str, list[Profile]], headline: str) -> list[str]:
    every = [profile for profiles in rows.values() for profile in profiles]
    absent = sorted({task for profile in every for task in profile.left_out})
    return [
        f"Mean over the tasks that all models with tasks of the type share, readout {headline}",
        "(a task without it: its own).",
        "Band: one standard deviation over tasks at that layer, each task's own level taken out; none for one task."
        if any(np.isfinite(profile.band).any() for profile in every)
        else "No band: one task of each type.",
        "Ring and number: best layer; square and dashed line: last layer. Dotted: the best baseline without a model.",
        "Grey: the untrained twin on the same tasks." if any(len(profile.twin) for profile in every) else "",
        f"Left out, not scored for all: {', '.join(absent)}." if absent else "",
    ]
