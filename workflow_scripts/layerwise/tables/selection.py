"""layer_selection.csv: what a layer chosen without labels (or with few) is worth, against what costs nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from layerwise.tables.curves import (
    OWN,
    MetricCurves,
    MetricKey,
    ScoreKey,
    best_share,
    check_same_layers,
    complete,
    few_layers,
    metric_curves,
    primary_protocols,
    score_curves,
    with_primary,
)
from layerwise.tables.dependence import constant
from layerwise.tables.labelled import LabelledSamples
from layerwise.tables.multiplicity import q_values
from layerwise.tables.outcomes import TaskItems
from layerwise.tables.task_bootstrap import MIN_TASKS_INTERVAL

Array = NDArray[np.float64]
Directions = Mapping[str, Mapping[str, Mapping[str, str | None]]]

COLUMNS = (
    "model", "readout", "protocol", "selector", "metric", "variant", "recipe", "parameters", "direction", "metric_text",
    "n_tasks", "n_others", "score", "regret", "picked_layer", "picked_depth", "gain_over_last", "gain_low", "gain_high",
    "p_gain", "q_gain", "undefined", "flag",
)  # fmt: skip

MIN_SHARE = 0.75  # a selector that covers fewer of the tasks would take the others' tasks away; it is left out instead
LABELS = (16, 32, 64, 128)
FAMILY = ("model", "readout", "protocol")  # the tests that q_gain counts as one search


FAULTS = {
    "undefined at every layer": "",
    "constant": ": it is the same at every layer",
    "saturated": ": its spread over layers is too small to select by",
}


@dataclass
class _Selector:
    """A way to choose a layer: for each task it covers, weights over layers (one layer, or the share of each)."""

    name: str
    picks: pd.DataFrame  # (tasks x layers), rows sum to 1
    keys: dict[str, str] = field(default_factory=dict)
    undefined: str = ""
    scored: pd.Series | None = None  # per task, where the score is not taken on all items
    single: bool = True  # False where no one layer is picked
    n_others: int | None = None  # tasks or models whose mean picked the layer


def layer_selection(
    metrics: pd.DataFrame,
    scores: pd.DataFrame,
    items: Mapping[tuple[str, str], TaskItems] | None,
    directions: Directions,
    corpora: Sequence[str] = (),
    seed: int = 0,
) -> pd.DataFrame:
    """Compare label-free choices of a layer with baselines, for every model, score readout and protocol.

    All selectors of one model, readout and protocol are judged on the same tasks: those that have a score at every
    layer and are covered by every selector. A selector that covers less than 75 % of the tasks is left out with its
    reason; a metric then falls back on the first of ``corpora`` that has it.

    Args:
        metrics: from ``collect.metrics_table``.
        scores: from ``collect.scores_table``.
        items: from ``collect.item_store``; without it the ``labels_*`` rows are undefined.
        directions: metric -> variant -> {"theory": "max" | "min" | None, "study": the same}; other metrics and
            variants are not selectors.
        corpora: datasets on which a metric without curves on the tasks' own texts is read, the preferred first.
        seed: of the labelled samples.

    Returns:
        Columns ``COLUMNS``. ``selector`` is "max_{metric}" or "min_{metric}" (with ``direction`` theory or study), or
        one of last, middle (L // 2), random (mean over layers), oracle (best layer of each task), other_tasks (best on
        the mean of the other tasks), other_models (best depth of the mean of the other models; revisions of the same
        model do not count as others) and labels_16 ... labels_128 (chosen on that many labelled items, scored on the
        rest, mean over draws). ``score``: mean over tasks; ``regret``: oracle - score; ``picked_layer``: the most
        frequent pick; ``gain_over_last`` with a 95 % t interval paired over tasks, none below 8 tasks, where ``p_gain``
        is the p-value of the paired t test and ``q_gain`` that of Benjamini and Hochberg over all selectors of one
        model, readout and protocol (but last). ``n_tasks``: tasks of every mean in the row; ``n_others``: the other
        tasks or models whose mean picked the layer. ``flag``: few layers, and how many tasks were left out.
        Pooled metrics select for their own readout; metrics with a recipe for every readout.

    Raises:
        FileError: metrics and scores of one model have different layer counts.
    """
    check_same_layers(metrics, scores)
    real = with_primary(scores)
    all_scores, all_metrics = score_curves(real), metric_curves(metrics)
    labelled = LabelledSamples(items or {}, primary_protocols(real), LABELS, seed)
    rows: list[dict[str, Any]] = []
    for key, frame in all_scores.items():
        tasks = complete(frame)
        if not tasks:
            continue
        selectors = _metric_selectors(key, tasks, all_metrics, directions, corpora)
        selectors += _label_selectors(key, frame.loc[tasks], labelled)
        shared = _shared(tasks, selectors)
        selectors += _baselines(key, frame, shared, all_scores)
        flag = "; ".join([*few_layers(frame.shape[1]), *_left_out(len(frame), len(shared))])
        rows += [row | {"flag": flag} for row in _rows(key, frame.loc[shared], selectors)]
    table = pd.DataFrame(rows, columns=[*COLUMNS])
    table = table.assign(q_gain=q_values(table, "p_gain", FAMILY))
    return table.astype(dict.fromkeys(("n_tasks", "n_others", "picked_layer"), "Int64")).reset_index(drop=True)


def build(
    metrics: pd.DataFrame,
    scores: pd.DataFrame,
    items: Mapping[tuple[str, str], TaskItems] | None = None,
    *,
    directions: Directions,
    corpora: Sequence[str] = (),
    seed: int = 0,
    **_unused: object,
) -> pd.DataFrame:
    """Build layer_selection.csv for the rule, which hands the same arguments to every table."""
    return layer_selection(metrics, scores, items, directions, corpora, seed)


def _metric_selectors(
    key: ScoreKey,
    tasks: Sequence[str],
    metrics: Mapping[MetricKey, MetricCurves],
    directions: Directions,
    corpora: Sequence[str],
) -> list[_Selector]:
    result = []
    for metric, curves in metrics.items():
        ends = directions.get(metric.metric, {}).get(metric.variant)
        if metric.model != key.model or ends is None or metric.readout not in ("", key.readout):
            continue
        text, frame, undefined = _selectable(curves, tasks, corpora)
        for direction in ("theory", "study"):
            end = ends.get(direction)
            keys = {name: getattr(metric, name) for name in ("metric", "variant", "recipe", "parameters")}
            keys |= {"direction": direction, "metric_text": text}
            if end is None:
                reason = f"the {direction} names no direction for {metric.metric}"
                result.append(_Selector(metric.metric, frame.iloc[:0], keys, reason))
                continue
            values = frame.to_numpy() if end == "max" else -frame.to_numpy()
            picks = pd.DataFrame(best_share(values), index=frame.index, columns=frame.columns)
            result.append(_Selector(f"{end}_{metric.metric}", picks, keys, undefined))
    return result


def _selectable(curves: MetricCurves, tasks: Sequence[str], corpora: Sequence[str]) -> tuple[str, pd.DataFrame, str]:
    """Which text a metric is read on, its curves there, and why it cannot be used (or "")."""
    there = [task for task in tasks if task in curves.own.index]
    faults = [_fault(curve, task in curves.saturated) for task, curve in zip(there, curves.on(OWN, there), strict=True)]
    usable = [task for task, fault in zip(there, faults, strict=True) if not fault]
    if len(usable) >= MIN_SHARE * len(tasks):
        return OWN, _frame(curves.on(OWN, usable), usable), ""
    nothing = _frame(np.empty((0, curves.own.shape[1])), [])
    corpus = next((name for name in corpora if name in curves.corpora.index), None)
    if corpus is not None:
        values = curves.on(corpus, tasks)
        fault = _fault(values[0], corpus in curves.saturated)
        return (corpus, nothing, f"{fault} on {corpus}{FAULTS[fault]}") if fault else (corpus, _frame(values, tasks), "")
    counts = ", ".join(f"{faults.count(fault)} {fault}" for fault in FAULTS if fault in faults)
    reason = f"own curves on {len(usable)} of {len(tasks)} tasks, {MIN_SHARE:.0%} needed"
    reason += f" ({counts})" if counts else ""
    return OWN, nothing, reason + (f", and none on {', '.join(corpora)}" if corpora else "")


def _fault(curve: Array, saturated: bool) -> str:
    """Return why one curve (L + 1,) picks no layer, a key of ``FAULTS``, or ""."""
    finite = curve[np.isfinite(curve)]
    if not len(finite):
        return "undefined at every layer"
    return "constant" if constant(finite) else "saturated" if saturated else ""


def _frame(values: Array, tasks: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(values, index=[*tasks], columns=range(values.shape[1]))


def _left_out(every: int, kept: int) -> list[str]:
    """Return the note on the tasks that a comparison leaves out, or nothing."""
    if every == kept:
        return []
    return [f"{every - kept} of {every} tasks left out: not scored at every layer, or not covered by every selector"]


def _label_selectors(key: ScoreKey, frame: pd.DataFrame, labelled: LabelledSamples) -> list[_Selector]:
    result = []
    for size in LABELS:
        found = {str(task): labelled.of(key, str(task), size) for task in frame.index}
        there = {task: sample for task, sample in found.items() if sample is not None}
        picks = pd.DataFrame.from_dict({task: share for task, (share, _) in there.items()}, orient="index")
        scored = pd.Series({task: score for task, (_, score) in there.items()}, dtype="float64")
        reason = ""
        if len(there) < MIN_SHARE * len(frame):
            reason = f"{2 * size} items with outcomes in {len(there)} of {len(frame)} tasks, {MIN_SHARE:.0%} needed"
        result.append(_Selector(f"labels_{size}", picks, {}, reason, scored))
    return result


def _shared(tasks: Sequence[str], selectors: Sequence[_Selector]) -> list[str]:
    covered = [set(map(str, selector.picks.index)) for selector in selectors if not selector.undefined]
    return [task for task in tasks if all(task in names for names in covered)]


def _baselines(
    key: ScoreKey, frame: pd.DataFrame, shared: list[str], curves: Mapping[ScoreKey, pd.DataFrame]
) -> Iterator[_Selector]:
    scores = frame.loc[shared]
    n, width = scores.shape

    def fixed(layer: int) -> Array:
        return np.tile(np.eye(width)[layer], (n, 1))

    yield _selector("last", scores, fixed(width - 1))
    yield _selector("middle", scores, fixed((width - 1) // 2))
    yield _selector("random", scores, np.full((n, width), 1.0 / width), single=False)
    yield _selector("oracle", scores, best_share(scores.to_numpy()))
    if n > 1:
        others = (scores.to_numpy().sum(axis=0) - scores.to_numpy()) / (n - 1)
        yield _selector("other_tasks", scores, best_share(others), n_others=n - 1)
    else:
        yield _Selector("other_tasks", scores, undefined="one task, at least 2 needed")
    profiles = _other_models(key, width, shared, curves)
    if not profiles:
        yield _Selector("other_models", scores, undefined="no other model has scores on all these tasks")
    else:
        picks = np.tile(best_share(np.mean(profiles, axis=0)), (n, 1))
        yield _selector("other_models", scores, picks, n_others=len(profiles))


def _selector(name: str, scores: pd.DataFrame, picks: Array, single: bool = True, n_others: int | None = None) -> _Selector:
    frame = pd.DataFrame(picks, index=scores.index, columns=scores.columns)
    return _Selector(name, frame, single=single, n_others=n_others)


def _other_models(key: ScoreKey, width: int, shared: list[str], curves: Mapping[ScoreKey, pd.DataFrame]) -> list[Array]:
    """Mean scores over ``shared`` of every other model at the depths of this model's layers (linear between theirs)."""
    depths = np.linspace(0.0, 1.0, width)
    profiles = []
    for other, frame in curves.items():
        same = other.model.split("@")[0] == key.model.split("@")[0]
        if same or other[1:] != key[1:] or not shared or not set(shared) <= set(complete(frame)):
            continue
        profiles.append(np.interp(depths, np.linspace(0.0, 1.0, frame.shape[1]), frame.loc[shared].to_numpy().mean(axis=0)))
    return profiles


def _rows(key: ScoreKey, scores: pd.DataFrame, selectors: Sequence[_Selector]) -> Iterator[dict[str, Any]]:
    values = scores.to_numpy()
    for selector in selectors:
        row: dict[str, Any] = dict.fromkeys(("metric", "variant", "recipe", "parameters", "direction", "metric_text"), "")
        row |= {**key._asdict(), "selector": selector.name, **selector.keys, "undefined": selector.undefined}
        if not selector.undefined and scores.empty:
            row["undefined"] = "no task is covered by all selectors"
        if row["undefined"]:
            yield row
            continue
        picks = selector.picks.loc[scores.index].to_numpy()
        own = selector.scored.loc[scores.index].to_numpy() if selector.scored is not None else (picks * values).sum(axis=1)
        row |= {"n_tasks": len(own), "n_others": selector.n_others}
        row |= {"score": own.mean(), "regret": (values.max(axis=1) - own).mean()}
        if selector.single:
            layer = int(picks.sum(axis=0).argmax())
            row |= {"picked_layer": layer, "picked_depth": layer / (values.shape[1] - 1)}
        yield row | _paired_gain(own - values[:, -1])


def _paired_gain(gains: Array) -> dict[str, float]:
    result = {"gain_over_last": float(gains.mean())}
    if len(gains) >= MIN_TASKS_INTERVAL:
        error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        width = float(stdtrit(len(gains) - 1, 0.975) * error)
        result |= {"gain_low": result["gain_over_last"] - width, "gain_high": result["gain_over_last"] + width}
        if error > 0:  # "last" against itself is no test
            result["p_gain"] = float(2 * stdtr(len(gains) - 1, -abs(result["gain_over_last"]) / error))
    return result
