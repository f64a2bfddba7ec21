"""One panel of a metric over depth: a line per readout or recipe with its error, the twin, nulls and broken pairs."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from layerwise.figures import reading, style
from layerwise.figures.labels import levels, place

LEVELS = {"readout": "pooled", "recipe": "token level"}


def draw_part(axes: Axes, part: pd.DataFrame, level: str, headline: str, twin: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Draw the curves with one standard error, the nulls and, at ``headline``, the broken pairs.

    Args:
        axes: the panel, its axes set.
        part: rows of one model, metric and dataset as ``reading.drawn`` gives them.
        level: a line per "readout" or per "recipe".
        headline: the readout or recipe of the broken pairs.
        twin: rows of the untrained twin at ``headline``; none if it has no twin.

    Returns:
        (name, colour, last value) of every curve, for ``end_labels``.
    """
    ends = _lines(axes, part, level, twin)
    levels(axes, _nulls(part, level))
    _broken_pairs(axes, part[part[level] == headline])
    return ends


def _lines(axes: Axes, part: pd.DataFrame, level: str, twin: pd.DataFrame) -> list[tuple[str, str, float]]:
    groups = {str(name): rows for name, rows in part.groupby(level, sort=False)}
    depth, values = reading.curve(twin, "y")
    ends = [("untrained", style.GREY, float(values[-1]))] if len(values) else []
    if len(values):
        style.line(axes, depth, values, "untrained", color=style.GREY, linestyle="-", zorder=1.8)
    for name, (depth, values) in curves(part, level).items():
        rows = groups[style.base(name)]
        pale = bool(rows["saturated"].any())
        band = reading.curve(rows, "band")[1]
        style.line(axes, depth, values, name, alpha=0.35 if pale else 1.0)
        axes.fill_between(depth, values - band, values + band, color=style.colour(name), alpha=0.15, linewidth=0)
        ends.append((name, style.colour(name), _last(values)))
    return ends


def curves(part: pd.DataFrame, level: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return (depths, values) of each readout or recipe; equal curves are one."""
    groups = part.groupby(level, sort=False)
    return reading.merge_equal({str(name): reading.curve(rows, "y") for name, rows in groups})


def _broken_pairs(axes: Axes, part: pd.DataFrame) -> None:
    depth, values = reading.curve(part, "broken")
    known = np.flatnonzero(np.isfinite(values))
    if len(known):
        style.line(axes, depth, values, "broken pairs", color=style.INK, linestyle=":", marker="", linewidth=0.9)
        place(axes, "broken pairs", [(float(depth[at]), float(values[at])) for at in known])


def _last(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if len(finite) else float("nan")


def _nulls(part: pd.DataFrame, level: str) -> list[tuple[float, str, str, str]]:
    found = part.dropna(subset=["null"]).groupby(level, sort=False)["null"].mean()
    lines = [(float(value), "null", style.colour(str(name)), "--") for name, value in found.items()]
    if len(found) and np.ptp(found) <= 0.01 * np.abs(found).max():
        return [(float(found.mean()), "null", style.INK, "--")]
    return lines


def values_of(part: pd.DataFrame, level: str, headline: str, twin: pd.DataFrame) -> pd.Series:
    """Return every number that a panel of ``draw_part`` must have room for."""
    edges = [part["y"] + part["band"], part["y"] - part["band"]]
    return pd.concat([part["y"], *edges, twin["y"], part["null"], part[part[level] == headline]["broken"]])


def count(part: pd.DataFrame) -> str:
    """Return "n = 48" or "n = 48 to 132"."""
    low, high = part["n"].min(), part["n"].max()
    return f"n = {low:.0f}" if low == high else f"n = {low:.0f} to {high:.0f}"


def saturated(part: pd.DataFrame) -> str:
    """Return ", saturated" if the layers of a curve differ too little to be told apart, else nothing."""
    return ", saturated" if part["saturated"].any() else ""
