"""correlations.csv: how the curve of a metric over layers relates to the curve of scores (the study, section 4.1.3)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerwise.tables import dependence
from layerwise.tables.curves import (
    OWN,
    MetricCurves,
    MetricKey,
    ScoreKey,
    check_same_layers,
    few_layers,
    metric_curves,
    rows_of,
    score_curves,
    task_types,
    with_primary,
)
from layerwise.tables.multiplicity import q_values
from layerwise.tables.pair_statistics import MIN_TASKS_PERMUTED, Pair, statistics
from layerwise.tables.resampling import generator
from layerwise.tables.task_bootstrap import MIN_TASKS_INTERVAL

Array = NDArray[np.float64]

COLUMNS = (
    "model", "metric", "variant", "recipe", "metric_readout", "score_readout", "parameters", "protocol", "pairing",
    "metric_text", "layers", "n_layers", "n_tasks", "spearman", "low", "high", "kendall", "dcor", "dcor2_corrected",
    "residual_spearman", "residual_low", "residual_high", "partial_spearman", "within_task", "other_task", "p_task",
    "q_task", "undefined", "flag",
)  # fmt: skip

MIN_LAYERS = 4  # below, the bias-corrected distance correlation does not exist and any rank correlation is arbitrary
FAMILY = ("model", "protocol", "layers")  # the tests that q_task counts as one search


def correlations(
    metrics: pd.DataFrame,
    scores: pd.DataFrame,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Correlate every metric curve with every score curve of the same model.

    The curves are means over the common tasks, layer by layer: the tasks that have a score and, for ``metric_text``
    "own", a metric value at every layer, neither of them constant. Entropies are averaged as ``normalized``, all other
    metrics as ``value``.

    Args:
        metrics: from ``collect.metrics_table``.
        scores: from ``collect.scores_table``.
        seed: of the bootstrap and the permutations.
        progress: called with (done, total) metric records.

    Returns:
        One row per model, metric, variant, recipe or metric_readout, parameters, score_readout, protocol ("primary"
        is each task's own), metric_text ("own" or a corpus dataset) and layers ("all", or "inner": without 0 and L).

        - pairing: "matched" (one readout), "study" (metric on ``mean``, score on ``mean_normed``) or "recipe" (a
          token-level metric, which has a recipe and no readout, with each score readout).
        - n_layers: entries of the curves. n_tasks: tasks that both mean curves are over, always the same ones.
        - spearman, kendall, dcor, dcor2_corrected: of the two mean curves.
        - residual_spearman: the relation beyond depth, of what a quadratic in depth leaves of the values.
          partial_spearman: the same of the ranks, the usual partial correlation; it keeps some of a shared inverted U.
        - low, high, residual_low, residual_high: 95 % bootstrap of the two over tasks within types (see
          ``task_bootstrap``); none below 8 tasks.
        - within_task: mean over tasks of the Spearman correlation of a task's metric curve with its own scores;
          other_task: with the scores of the other tasks. p_task: share of relabellings of the tasks for which
          |within_task| is at least as large; needs 5 tasks with their own metric curves. q_task: Benjamini-Hochberg
          over all p_task of one model, protocol and choice of layers; dcor and the rest have no p-value.
        - undefined: why the whole row has no statistic. flag: what a reader must know about a row that has one.

    Raises:
        FileError: metrics and scores of one model have different layer counts.
    """
    check_same_layers(metrics, scores)
    scores = with_primary(scores)
    types = task_types(scores)
    by_model: dict[str, list[tuple[ScoreKey, pd.DataFrame]]] = {}
    for key, frame in score_curves(scores).items():
        by_model.setdefault(key.model, []).append((key, frame))
    rows = []
    every = metric_curves(metrics)
    for done, (metric, curves) in enumerate(every.items(), 1):
        for score, score_frame in by_model.get(metric.model, []):
            pairing = _pairing(metric, score.readout)
            if pairing:
                rows += list(_rows(metric, curves, score, score_frame, pairing, types, seed))
        if progress is not None:
            progress(done, len(every))
    table = pd.DataFrame(rows, columns=[*COLUMNS]).sort_values([*COLUMNS[:11]]).reset_index(drop=True)
    return table.assign(q_task=q_values(table, "p_task", FAMILY))


def build(
    metrics: pd.DataFrame,
    scores: pd.DataFrame,
    items: object = None,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **_unused: object,
) -> pd.DataFrame:
    """Build correlations.csv for the rule, which hands the same arguments to every table."""
    return correlations(metrics, scores, seed, progress)


def _pairing(metric: MetricKey, score_readout: str) -> str:
    if metric.recipe:
        return "recipe"
    if metric.readout == score_readout:
        return "matched"
    return "study" if (metric.readout, score_readout) == ("mean", "mean_normed") else ""


def _rows(
    metric: MetricKey,
    curves: MetricCurves,
    score: ScoreKey,
    scores: pd.DataFrame,
    pairing: str,
    types: dict[str, str],
    seed: int,
) -> Iterator[dict[str, Any]]:
    keys = metric._asdict()
    keys["metric_readout"] = keys.pop("readout")
    keys |= {"score_readout": score.readout, "protocol": score.protocol, "pairing": pairing}
    own = {str(name) for name in curves.own.index}
    texts = [OWN] if own.intersection(map(str, scores.index)) else []
    for text in [*texts, *curves.corpora.index]:
        tasks = [str(task) for task in scores.index if text != OWN or task in own]
        whole = curves.on(text, tasks), scores.to_numpy()[rows_of(scores, tasks)]
        for layers in ("all", "inner"):
            pair, undefined, left_out = _common(*whole, layers, [types[task] for task in tasks], text == OWN)
            row = keys | {"metric_text": text, "layers": layers, "undefined": undefined, "flag": ""}
            row |= {"n_layers": len(pair.depth), "n_tasks": len(pair.types)}
            if not undefined:
                row |= statistics(pair, generator(seed, *(str(value) for value in row.values())))
            notes = [] if undefined else [*_flags(pair), *left_out, *_saturation(curves, text)]
            row["flag"] = "; ".join([*few_layers(len(pair.depth)), *notes])
            yield row


def _common(metric: Array, score: Array, layers: str, types: list[str], own: bool) -> tuple[Pair, str, list[str]]:
    """Return the common tasks' curves, why they have no statistic (or ""), and a note on tasks that were left out."""
    inner = slice(1, -1) if layers == "inner" else slice(None)
    depth = np.linspace(0.0, 1.0, score.shape[1])[inner]
    metric, score = metric[:, inner], score[:, inner]
    faults = [_faults(metric, "metric"), _faults(score, "score")]
    usable = np.array([not (a or b) for a, b in zip(*faults, strict=True)], dtype=bool)
    pair = Pair(metric[usable], score[usable], depth, [kind for kind, u in zip(types, usable, strict=True) if u], own)
    reasons = sorted({reason for task in zip(*faults, strict=True) for reason in task if reason})
    if len(depth) < MIN_LAYERS:
        return pair, f"{len(depth)} layers, at least {MIN_LAYERS} needed", []
    if not usable.any():
        return pair, "; ".join(reasons), []
    for name, mean in (("metric", pair.metric.mean(axis=0)), ("score", pair.score.mean(axis=0))):
        if dependence.constant(mean):
            return pair, f"the mean {name} is the same at every layer", []
    left_out = len(types) - len(pair.types)
    return pair, "", [f"{left_out} of {len(types)} tasks left out: {', '.join(reasons)}"] if left_out else []


def _faults(curves: Array, name: str) -> list[str]:
    reasons = []
    for curve in curves:
        if not np.isfinite(curve).all():
            reasons.append(f"the {name} is undefined at some layer")
        else:
            flat = len(curve) and dependence.constant(curve)
            reasons.append(f"the {name} is the same at every layer" if flat else "")
    return reasons


def _flags(pair: Pair) -> Iterator[str]:
    if len(pair.types) < MIN_TASKS_INTERVAL:
        yield f"no interval below {MIN_TASKS_INTERVAL} tasks"
    if not pair.own:
        yield "no p_task: the metric has one curve for all tasks"
    elif len(pair.types) < MIN_TASKS_PERMUTED:
        yield f"no p_task below {MIN_TASKS_PERMUTED} tasks"


def _saturation(curves: MetricCurves, text: str) -> Iterator[str]:
    marked = curves.saturated.intersection(map(str, curves.own.index) if text == OWN else [text])
    if marked:
        yield f"the metric is saturated on {', '.join(sorted(marked))}"
