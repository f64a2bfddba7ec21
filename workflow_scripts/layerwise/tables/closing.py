"""The table a run ends with: the summary as plain text."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from layerwise.tables.curves import PRIMARY, primary_protocols
from layerwise.tables.summary import ALL


def closing_table(summary: pd.DataFrame, readout: str = "") -> str:
    """Write the summary as a plain-text table of at most 100 columns, scores in points (100 times the score).

    Args:
        summary: from ``layer_summary``.
        readout: which readout to show; empty: ``mean`` if there, else the alphabetically first. A task that lacks it is
            shown at its only readout, which is named (an attention probe has no other), or its alphabetically first.

    Returns:
        One line per model and task (its primary protocol) and one per model for all tasks, and one for each of the
        latter that leaves tasks out; no trailing newline.
    """
    names = sorted(set(summary["readout"]))
    readout = readout or ("mean" if "mean" in names else names[0] if names else "")
    rows = summary[summary["readout"] == shown_readouts(summary, readout)]
    primary = primary_protocols(rows[rows["task"] != ALL])
    wanted = rows["task"].map({**primary, ALL: PRIMARY}) == rows["protocol"]
    head = ("model", "task", "layer", "best", "last", "gain over last", "best baseline")
    lines = [f"Best layer of readout '{readout}', in points; the gain is cross-fitted, with its 95 % interval"]
    lines += [_line(head), "-" * 100]
    shown = rows[wanted].to_dict("records")
    lines += [_line(_cells(row, readout)) for row in shown]
    lines += [f"{row['model']}, all: {part}" for row in shown for part in _left_out(row)]
    return "\n".join(lines)


def shown_readouts(summary: pd.DataFrame, readout: str) -> pd.Series:
    """For every row, the readout at which its model and task are shown: ``readout`` where they have it, else their first."""
    if summary.empty:
        return summary["readout"]
    has = (summary["readout"] == readout).groupby([summary["model"], summary["task"]]).transform("any")
    first = summary.groupby(["model", "task"])["readout"].transform("min")
    return first.where(~has, readout)


def _left_out(row: Mapping[Any, Any]) -> list[str]:
    return [part for part in str(row["flag"]).split("; ") if part.startswith("left out")]


def _cells(row: Mapping[Any, Any], readout: str) -> tuple[str, ...]:
    task = str(row["task"]) if row["readout"] == readout else f"{row['task']} ({row['readout']})"
    if row["task"] == ALL:
        count = int(row["n_tasks"])
        task = f"all ({count} task{'s' * (count > 1)})" if count else "all (no common task)"
    if pd.isna(row["best_layer"]):
        return (str(row["model"]), task, *"-----")
    gain = [row["gain_cross_fitted"], row["gain_low"], row["gain_high"]]
    gains = "-" if np.isnan(gain[0]) else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * value for value in gain))
    score = row["baseline_score"]
    baseline = "-" if np.isnan(score) else f"{row['best_baseline']} {100 * score:.1f}"
    layer = f"{row['best_layer']:.0f}/{row['n_layers']:.0f}"
    return str(row["model"]), task, layer, f"{100 * row['best']:.1f}", f"{100 * row['last']:.1f}", gains, baseline


def _line(cells: Iterable[str]) -> str:
    widths = (20, 22, 7, 5, 5, 20, 15)
    aligned = "<<>>><<"
    parts = []
    for cell, width, side in zip(cells, widths, aligned, strict=True):
        parts.append(f"{cell if len(cell) <= width else cell[: width - 1] + '…':{side}{width}}")
    return " ".join(parts).rstrip()
