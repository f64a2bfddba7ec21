"""layer_selection.csv: what a layer chosen without labels (or with few) is worth, against what costs nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from layerwise.tables.curves import (
    OWN,
    MetricCurves,
    MetricKey,
    ScoreKey,
    best_share,
    check_same_layers,
    complete,
    metric_curves,
    primary_protocols,
    score_curves,
    with_primary,
)
from layerwise.tables.labelled import LabelledSamples
from layerwise.tables.outcomes import TaskItems

Array = NDArray[np.float64]
Directions = Mapping[str, Mapping[str, Mapping[str, str | None]]]

COLUMNS = (
    "model", "readout", "protocol", "selector", "metric", "variant", "recipe", "parameters", "direction", "metric_text",
    "n_tasks", "score", "regret", "picked_layer", "picked_depth", "gain_over_last", "gain_low", "gain_high",
    "undefined",
)  # fmt: skip

MIN_SHARE = 0.75  # a selector that covers fewer of the tasks would take the others' tasks away; it is left out instead
MIN_TASKS_INTERVAL = 8
LABELS = (16, 32, 64, 128)


@dataclass
class _Selector:
    """A way to choose a layer: for each task it covers, weights over layers (one layer, or the share of each)."""

    name: str
    picks: pd.DataFrame  # (tasks x layers), rows sum to 1
    keys: dict[str, str] = field(default_factory=dict)
    undefined: str = ""
    scored: pd.Series | None = None  # per task, where the score is not taken on all items
    single: bool = True  # False where no one layer is picked


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
        frequent pick; ``gain_over_last`` with a 95 % t interval paired over tasks, none below 8 tasks.
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
        rows += _rows(key, frame.loc[shared], selectors)
    table = pd.DataFrame(rows, columns=[*COLUMNS])
    return table.astype({"n_tasks": "Int64", "picked_layer": "Int64"}).reset_index(drop=True)


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
    own = curves.own.reindex([task for task in tasks if task in curves.own.index])
    usable = own[own.notna().any(axis=1).to_numpy() & ~own.index.isin(curves.saturated)]
    if len(usable) >= MIN_SHARE * len(tasks):
        return OWN, usable, ""
    corpus = next((name for name in corpora if name in curves.corpora.index), None)
    if corpus is not None:
        frame = curves.on(corpus, tasks)
        if corpus in curves.saturated:
            return corpus, frame.iloc[:0], f"saturated on {corpus}: its spread over layers is too small to select by"
        if frame.isna().all(axis=None):
            return corpus, frame.iloc[:0], f"undefined at every layer on {corpus}"
        return corpus, frame, ""
    saturated = int(own.index.isin(curves.saturated).sum())
    reason = f"own curves on {len(usable)} of {len(tasks)} tasks, {MIN_SHARE:.0%} needed"
    reason += f" ({saturated} saturated)" if saturated else ""
    return OWN, usable.iloc[:0], reason + (f", and none on {', '.join(corpora)}" if corpora else "")


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
        yield _selector("other_tasks", scores, best_share(others))
    else:
        yield _Selector("other_tasks", scores, undefined="one task, at least 2 needed")
    profile = _other_models(key, width, shared, curves)
    if profile is None:
        yield _Selector("other_models", scores, undefined="no other model has scores on all these tasks")
    else:
        yield _selector("other_models", scores, np.tile(best_share(profile), (n, 1)))


def _selector(name: str, scores: pd.DataFrame, picks: Array, single: bool = True) -> _Selector:
    return _Selector(name, pd.DataFrame(picks, index=scores.index, columns=scores.columns), single=single)


def _other_models(key: ScoreKey, width: int, shared: list[str], curves: Mapping[ScoreKey, pd.DataFrame]) -> Array | None:
    """Mean score of the other models at the depths of this model's layers (linear between their layers)."""
    depths = np.linspace(0.0, 1.0, width)
    profiles = []
    for other, frame in curves.items():
        same = other.model.split("@")[0] == key.model.split("@")[0]
        if same or other[1:] != key[1:] or not shared or not set(shared) <= set(complete(frame)):
            continue
        profiles.append(np.interp(depths, np.linspace(0.0, 1.0, frame.shape[1]), frame.loc[shared].to_numpy().mean(axis=0)))
    return np.mean(profiles, axis=0) if profiles else None


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
        row |= {"n_tasks": len(own), "score": own.mean(), "regret": (values.max(axis=1) - own).mean()}
        if selector.single:
            layer = int(picks.sum(axis=0).argmax())
            row |= {"picked_layer": layer, "picked_depth": layer / (values.shape[1] - 1)}
        yield row | _paired_gain(own - values[:, -1])


def _paired_gain(gains: Array) -> dict[str, float]:
    result = {"gain_over_last": float(gains.mean())}
    if len(gains) >= MIN_TASKS_INTERVAL:
        width = float(stdtrit(len(gains) - 1, 0.975) * gains.std(ddof=1) / np.sqrt(len(gains)))
        result |= {"gain_low": result["gain_over_last"] - width, "gain_high": result["gain_over_last"] + width}
    return result
