"""layer_summary.csv: the last layer, the best layer, and what choosing it is worth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from layerwise.tables.crossfit import HalfScores, cross_fitted_gain, half_scores, mean_half_scores
from layerwise.tables.curves import (
    PRIMARY,
    ScoreKey,
    complete,
    few_layers,
    primary_protocols,
    score_curves,
    task_types,
    with_primary,
)
from layerwise.tables.outcomes import TaskItems

Items = Mapping[tuple[str, str], TaskItems]
Baselines = Sequence[tuple[str, str, str, float]]  # (baseline, task, protocol, score)

ALL = "all"
COLUMNS = (
    "model", "task", "type", "protocol", "readout", "n_tasks", "n_items", "n_layers", "last", "best", "best_layer",
    "best_depth", "oracle", "tasks_won_by_last", "gain", "gain_cross_fitted", "gain_low", "gain_high", "gain_unit",
    "best_baseline", "baseline_score", "flag",
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
        - flag: few layers; and which of its own tasks the row "all" leaves out because another model or readout lacks
          them. Where no task is common to all that are compared, the row has n_tasks 0 and no numbers.
    """
    real = with_primary(scores)
    curves, types, primary = score_curves(real), task_types(real), primary_protocols(real)
    found = real[real["baseline"] != ""].dropna(subset="score")
    baselines = list(zip(found["baseline"], found["task"], found["protocol"], found["score"], strict=True))
    halves = _Halves(items if items is not None else {}, primary, seed)
    shared = _shared_tasks(curves)
    rows = []
    for key, frame in curves.items():
        if key.protocol != PRIMARY:
            for task in complete(frame):
                rows.append(_row(key, frame.loc[[task]], task, types[task], halves, baselines))
        rows += _whole(key, frame, shared[key], types, halves, baselines)
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


def _whole(
    key: ScoreKey, frame: pd.DataFrame, tasks: list[str], types: Mapping[str, str], halves: _Halves, baselines: Baselines
) -> list[dict[str, Any]]:
    """The row of the mean over ``tasks``, which says what it leaves out; none where no task is complete."""
    own = complete(frame)
    if not own:
        return []
    kinds = sorted({types[task] for task in tasks or own})
    kind = kinds[0] if len(kinds) == 1 else ALL
    absent = [task for task in own if task not in tasks]
    note = f"left out, not scored by all that are compared: {', '.join(absent)}" if absent else ""
    if not tasks:
        row = {"model": key.model, "task": ALL, "type": kind, "protocol": key.protocol, "readout": key.readout}
        return [row | {"n_tasks": 0, "n_layers": frame.shape[1] - 1, "flag": note}]
    row = _row(key, frame.loc[tasks], ALL, kind, halves, baselines)
    return [row | {"flag": "; ".join(part for part in (row["flag"], note) if part)}]


def _row(key: ScoreKey, frame: pd.DataFrame, task: str, kind: str, halves: _Halves, baselines: Baselines) -> dict[str, Any]:
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
        "flag": "; ".join(few_layers(len(frame.columns))),
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


def _best_baseline(key: ScoreKey, tasks: list[str], primary: Mapping[str, str], baselines: Baselines) -> tuple[str, float]:
    protocols = {task: primary[task] if key.protocol == PRIMARY else key.protocol for task in tasks}
    scores: dict[str, dict[str, float]] = {}
    for name, task, protocol, score in baselines:
        if protocols.get(task) == protocol:
            scores.setdefault(name, {})[task] = score
    means = {name: float(np.mean([*found.values()])) for name, found in sorted(scores.items()) if len(found) == len(tasks)}
    best = max(means, key=lambda name: means[name], default="")
    return best, means.get(best, float("nan"))
