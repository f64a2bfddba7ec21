"""layer_summary.csv: the last layer, the best layer, and what choosing it is worth; and the table a run ends with."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from layerwise.tables.crossfit import HalfScores, cross_fitted_gain, half_scores, mean_half_scores
from layerwise.tables.curves import (
    PRIMARY,
    ScoreKey,
    complete,
    primary_protocols,
    score_curves,
    task_types,
    with_primary,
)
from layerwise.tables.outcomes import TaskItems

Items = Mapping[tuple[str, str], TaskItems]

ALL = "all"
COLUMNS = (
    "model", "task", "type", "protocol", "readout", "n_tasks", "n_items", "n_layers", "last", "best", "best_layer",
    "best_depth", "oracle", "tasks_won_by_last", "gain", "gain_cross_fitted", "gain_low", "gain_high", "gain_unit",
    "best_baseline", "baseline_score",
)  # fmt: skip

_INTEGERS = ("n_tasks", "n_items", "n_layers", "best_layer", "tasks_won_by_last")


def layer_summary(scores: pd.DataFrame, items: Items | None = None, seed: int = 0) -> pd.DataFrame:
    """Summarise every score curve, and the mean curve over the tasks that comparable models and readouts share.

    Args:
        scores: from ``collect.scores_table``.
        items: from ``collect.item_store``; without it there is no cross-fitted gain.
        seed: of the splits and resamples.

    Returns:
        One row per model, readout, protocol and task; and rows with task "all" per model, readout and protocol, where
        protocol "primary" takes each task at its own (standardised where there is one). Columns ``COLUMNS``:

        - n_tasks: 1, or the tasks of the mean: those that have a score at every layer for every model and readout among
          the models connected by common tasks. n_items: test items with kept outcomes. n_layers: L.
        - last, best, best_layer, best_depth: of the (mean) curve. oracle: mean of each task's best.
          tasks_won_by_last: tasks in which no layer beats the last. gain: best - last, optimistic by construction.
        - gain_cross_fitted, gain_low, gain_high: see ``crossfit``; gain_unit "items". For "all" where some task keeps
          no outcomes, the layer is chosen on half of the tasks and scored on the other half: gain_unit "tasks", a range
          only from 8 tasks. NaN where neither is possible, or the outcomes are of another protocol.
        - best_baseline, baseline_score: the best baseline under the same protocol (for "all": over the same tasks).
    """
    real = with_primary(scores)
    curves, types, primary = score_curves(real), task_types(real), primary_protocols(real)
    baselines = real[real["baseline"] != ""]
    halves = _Halves(items if items is not None else {}, primary, seed)
    shared = _shared_tasks(curves)
    rows = []
    for key, frame in curves.items():
        if key.protocol != PRIMARY:
            for task in complete(frame):
                rows.append(_row(key, frame.loc[[task]], task, types[task], halves, baselines))
        tasks = shared[key]
        if tasks:
            kinds = sorted({types[task] for task in tasks})
            rows.append(_row(key, frame.loc[tasks], ALL, kinds[0] if len(kinds) == 1 else ALL, halves, baselines))
    table = pd.DataFrame(rows, columns=[*COLUMNS])
    table[[*_INTEGERS]] = table[[*_INTEGERS]].astype("Int64")
    table["whole"] = table["task"] == ALL
    table = table.sort_values(["model", "whole", "task", "protocol", "readout"])
    return table.drop(columns="whole").reset_index(drop=True)


def build(
    metrics: pd.DataFrame, scores: pd.DataFrame, items: Items | None = None, *, seed: int = 0, **_unused: object
) -> pd.DataFrame:
    """Build layer_summary.csv for the rule, which hands the same arguments to every table."""
    return layer_summary(scores, items, seed)


def closing_table(summary: pd.DataFrame, readout: str = "") -> str:
    """Write the summary as a plain-text table of at most 100 columns, scores in points (100 times the score).

    Args:
        summary: from ``layer_summary``.
        readout: which readout to show; empty: ``mean`` if there, else the alphabetically first.

    Returns:
        One line per model and task (its primary protocol) and one per model for all tasks; no trailing newline.
    """
    names = sorted(set(summary["readout"]))
    readout = readout or ("mean" if "mean" in names else names[0] if names else "")
    rows = summary[summary["readout"] == readout]
    primary = primary_protocols(rows[rows["task"] != ALL])
    wanted = rows["task"].map({**primary, ALL: PRIMARY}) == rows["protocol"]
    head = ("model", "task", "layer", "best", "last", "gain over last", "best baseline")
    lines = [f"Best layer of readout '{readout}', in points; the gain is cross-fitted, with its 95 % interval"]
    lines += [_line(head), "-" * 100]
    lines += [_line(_cells(row)) for row in rows[wanted].to_dict("records")]
    return "\n".join(lines)


class _Halves:
    """Half scores by (model, task, readout), each computed once: one task file is read for several rows."""

    def __init__(self, items: Items, primary: Mapping[str, str], seed: int) -> None:
        self.items, self.primary, self.seed = items, primary, seed
        self._known: dict[tuple[str, str], tuple[str, int, dict[str, HalfScores | None]] | None] = {}

    def of(self, key: ScoreKey, task: str) -> tuple[int, HalfScores | None]:
        """Number of items, and the half scores if the outcomes are of the protocol of ``key``."""
        place = (key.model, task)
        if place not in self._known:
            items = self.items.get(place)
            self._known[place] = None
            if items is not None:
                parts = {readout: half_scores(items, readout, self.seed, task) for readout in items.readouts}
                self._known[place] = (items.protocol, items.n, parts)
        known = self._known[place]
        if known is None:
            return 0, None
        wanted = self.primary[task] if key.protocol == PRIMARY else key.protocol
        return known[1], known[2].get(key.readout) if known[0] == wanted else None


def _shared_tasks(curves: Mapping[ScoreKey, pd.DataFrame]) -> dict[ScoreKey, list[str]]:
    """Tasks that all models and readouts of one protocol share; models without any common task are not compared."""
    shared: dict[ScoreKey, list[str]] = {}
    for protocol in sorted({key.protocol for key in curves}):
        tasks = {key: set(complete(frame)) for key, frame in curves.items() if key.protocol == protocol}
        shared |= {key: [] for key in tasks}
        waiting = {key for key in tasks if tasks[key]}
        while waiting:
            group: set[ScoreKey] = set()
            reached = set(tasks[min(waiting)])
            while new := {key for key in waiting - group if tasks[key] & reached}:
                group |= new
                reached.update(*(tasks[key] for key in new))
            waiting -= group
            common = sorted(set.intersection(*(tasks[key] for key in group)))
            shared |= dict.fromkeys(group, common)
    return shared


def _row(
    key: ScoreKey, frame: pd.DataFrame, task: str, kind: str, halves: _Halves, baselines: pd.DataFrame
) -> dict[str, Any]:
    scores = frame.to_numpy()
    mean, last_layer = scores.mean(axis=0), len(frame.columns) - 1
    best = int(mean.argmax())
    n_items, gain, unit = _gain(key, frame, halves)
    baseline, baseline_score = _best_baseline(key, [str(name) for name in frame.index], halves.primary, baselines)
    return {
        "model": key.model,
        "task": task,
        "type": kind,
        "protocol": key.protocol,
        "readout": key.readout,
        "n_tasks": len(frame),
        "n_items": n_items or None,
        "n_layers": last_layer,
        "last": mean[-1],
        "best": mean[best],
        "best_layer": best,
        "best_depth": best / last_layer,
        "oracle": scores.max(axis=1).mean(),
        "tasks_won_by_last": int((scores[:, -1] >= scores.max(axis=1)).sum()),
        "gain": mean[best] - mean[-1],
        **dict(zip(("gain_cross_fitted", "gain_low", "gain_high"), gain, strict=True)),
        "gain_unit": unit,
        "best_baseline": baseline,
        "baseline_score": baseline_score,
    }


def _gain(key: ScoreKey, frame: pd.DataFrame, halves: _Halves) -> tuple[int, tuple[float, float, float], str]:
    found = [halves.of(key, str(task)) for task in frame.index]
    n_items = sum(n for n, _ in found)
    parts = [part for _, part in found if part is not None]
    if len(parts) == len(frame):
        return n_items, cross_fitted_gain(mean_half_scores(parts)), "items"
    if len(frame) > 1:
        # the weighted mean over tasks is what "accuracy" computes, with the score of a task in place of an outcome
        tasks = TaskItems(key.protocol, "accuracy", np.zeros(len(frame)), {key.readout: frame.to_numpy().T})
        part = half_scores(tasks, key.readout, halves.seed, ALL)
        if part is not None:
            return n_items, cross_fitted_gain(part), "tasks"
    return n_items, (float("nan"),) * 3, ""


def _best_baseline(
    key: ScoreKey, tasks: list[str], primary: Mapping[str, str], baselines: pd.DataFrame
) -> tuple[str, float]:
    protocols = {task: primary[task] if key.protocol == PRIMARY else key.protocol for task in tasks}
    rows = baselines[baselines["task"].map(protocols) == baselines["protocol"]].dropna(subset="score")
    means = {
        str(name): float(group["score"].mean())
        for name, group in rows.groupby("baseline")
        if set(group["task"]) == set(tasks)
    }
    best = max(means, key=lambda name: means[name], default="")
    return best, means.get(best, float("nan"))


def _cells(row: Mapping[Any, Any]) -> tuple[str, ...]:
    gain = [row["gain_cross_fitted"], row["gain_low"], row["gain_high"]]
    gains = "-" if np.isnan(gain[0]) else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * value for value in gain))
    task = f"all ({row['n_tasks']} tasks)" if row["task"] == ALL else row["task"]
    score = row["baseline_score"]
    baseline = "-" if np.isnan(score) else f"{row['best_baseline']} {100 * score:.1f}"
    layer = f"{row['best_layer']}/{row['n_layers']}"
    return str(row["model"]), str(task), layer, f"{100 * row['best']:.1f}", f"{100 * row['last']:.1f}", gains, baseline


def _line(cells: Iterable[str]) -> str:
    widths = (20, 22, 7, 5, 5, 20, 15)
    aligned = "<<>>><<"
    parts = []
    for cell, width, side in zip(cells, widths, aligned, strict=True):
        parts.append(f"{cell if len(cell) <= width else cell[: width - 1] + '…':{side}{width}}")
    return " ".join(parts).rstrip()
