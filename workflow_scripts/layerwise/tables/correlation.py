"""correlations.csv: how the curve of a metric over layers relates to the curve of scores (the study, section 4.1.3)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    metric_curves,
    score_curves,
    task_types,
    with_primary,
)
from layerwise.tables.resampling import generator, relabellings, resamples_within

Array = NDArray[np.float64]

COLUMNS = (
    "model", "metric", "variant", "recipe", "metric_readout", "score_readout", "parameters", "protocol", "pairing",
    "metric_text", "layers", "n_layers", "n_tasks", "spearman", "kendall", "dcor", "dcor2_corrected", "low", "high",
    "partial_spearman", "residual_spearman", "within_task", "other_task", "p_task", "undefined", "flag",
)  # fmt: skip

MIN_LAYERS = 4  # below, the bias-corrected distance correlation does not exist and any rank correlation is arbitrary
FEW_LAYERS = 8
MIN_TASKS_INTERVAL = 8
MIN_TASKS_PERMUTED = 5

_BOOTSTRAP = 1000
_PERMUTATIONS = 1999


@dataclass(frozen=True)
class _Pair:
    """The curves of the tasks that a metric and a score have in common, tasks in one order, layers in one order."""

    metric: Array  # (T, layers); every row is the same curve where the metric was taken on a corpus
    score: Array  # (T, layers)
    depth: Array  # (layers,)
    types: list[str]
    own: bool


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
        - spearman, kendall, dcor, dcor2_corrected: of the two mean curves. low, high: 95 % percentile bootstrap of
          ``spearman`` over tasks within types; none below 8 tasks.
        - partial_spearman, residual_spearman: depth and depth^2 regressed out of the ranks, or of the values.
        - within_task: mean over tasks of the Spearman correlation of a task's metric curve with its own scores;
          other_task: with the scores of the other tasks. p_task: share of relabellings of the tasks for which
          |within_task| is at least as large; needs 5 tasks with their own metric curves.
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
    return pd.DataFrame(rows, columns=[*COLUMNS]).sort_values([*COLUMNS[:11]]).reset_index(drop=True)


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
    texts = [OWN] if len(curves.own.index.intersection(scores.index)) else []
    for text in [*texts, *curves.corpora.index]:
        for layers in ("all", "inner"):
            pair, undefined, left_out = _common(curves, text, scores, layers, types)
            row = keys | {"metric_text": text, "layers": layers, "undefined": undefined, "flag": ""}
            row |= {"n_layers": len(pair.depth), "n_tasks": len(pair.types)}
            if not undefined:
                row |= _statistics(pair, generator(seed, *(str(value) for value in row.values())))
                row["flag"] = "; ".join([*_flags(pair), *left_out, *_saturation(curves, text)])
            yield row


def _common(
    curves: MetricCurves, text: str, scores: pd.DataFrame, layers: str, types: dict[str, str]
) -> tuple[_Pair, str, list[str]]:
    """Return the common tasks' curves, why they have no statistic (or ""), and a note on tasks that were left out."""
    tasks = [task for task in scores.index if text != OWN or task in curves.own.index]
    inner = slice(1, -1) if layers == "inner" else slice(None)
    metric = curves.on(text, tasks).to_numpy()[:, inner]
    score = scores.loc[tasks].to_numpy()[:, inner]
    depth = np.linspace(0.0, 1.0, scores.shape[1])[inner]
    faults = [_faults(metric, "metric"), _faults(score, "score")]
    usable = np.array([not (a or b) for a, b in zip(*faults, strict=True)], dtype=bool)
    pair = _Pair(
        metric[usable], score[usable], depth, [types[t] for t, u in zip(tasks, usable, strict=True) if u], text == OWN
    )
    reasons = sorted({reason for task in zip(*faults, strict=True) for reason in task if reason})
    if len(depth) < MIN_LAYERS:
        return pair, f"{len(depth)} layers, at least {MIN_LAYERS} needed", []
    if not usable.any():
        return pair, "; ".join(reasons), []
    for name, mean in (("metric", pair.metric.mean(axis=0)), ("score", pair.score.mean(axis=0))):
        if dependence.constant(mean):
            return pair, f"the mean {name} is the same at every layer", []
    left_out = len(tasks) - len(pair.types)
    return pair, "", [f"{left_out} of {len(tasks)} tasks left out: {', '.join(reasons)}"] if left_out else []


def _faults(curves: Array, name: str) -> list[str]:
    reasons = []
    for curve in curves:
        if not np.isfinite(curve).all():
            reasons.append(f"the {name} is undefined at some layer")
        elif len(curve) and dependence.constant(curve):
            reasons.append(f"the {name} is the same at every layer")
        else:
            reasons.append("")
    return reasons


def _statistics(pair: _Pair, rng: np.random.Generator) -> dict[str, float]:
    x, y = pair.metric.mean(axis=0), pair.score.mean(axis=0)
    low, high = _interval(pair, rng)
    return {
        "spearman": float(dependence.spearman(x, y)),
        "kendall": dependence.kendall(x, y),
        "dcor": dependence.distance_correlation(x, y),
        "dcor2_corrected": dependence.corrected_squared_distance_correlation(x, y),
        "low": low,
        "high": high,
        "partial_spearman": dependence.partial_spearman(x, y, pair.depth),
        "residual_spearman": dependence.residual_spearman(x, y, pair.depth),
        **(task_permutation(pair.metric, pair.score, rng) if pair.own else {}),
    }


def _interval(pair: _Pair, rng: np.random.Generator) -> tuple[float, float]:
    n = len(pair.types)
    if n < MIN_TASKS_INTERVAL:
        return float("nan"), float("nan")
    weights = resamples_within(pair.types, _BOOTSTRAP, rng) / n
    drawn = dependence.spearman(weights @ pair.metric, weights @ pair.score)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def task_permutation(metric: Array, score: Array, rng: np.random.Generator) -> dict[str, float]:
    """Compare the correlation of a task's metric curve with its own scores to that with other tasks' scores.

    Both curves keep their depth profile under a relabelling of the tasks, so the test asks what depth alone cannot
    answer: does the metric know more about its own task than about any other?

    Args:
        metric: (T, L) metric curves, none constant.
        score: (T, L) score curves of the same tasks in the same order, none constant.
        rng: draws the relabellings; all T! of them are used up to 6 tasks.

    Returns:
        within_task, other_task (NaN for one task) and p_task (NaN below 5 tasks) in (0, 1].
    """
    correlation = dependence.unit_ranks(metric) @ dependence.unit_ranks(score).T
    n = len(correlation)
    within = float(np.trace(correlation) / n)
    other = float((correlation.sum() - np.trace(correlation)) / (n * (n - 1))) if n > 1 else float("nan")
    result = {"within_task": within, "other_task": other, "p_task": float("nan")}
    if n >= MIN_TASKS_PERMUTED:
        permuted = correlation[np.arange(n), relabellings(n, _PERMUTATIONS, rng)].mean(axis=1)
        result["p_task"] = float((np.abs(permuted) >= abs(within) - 1e-12).mean())
    return result


def _flags(pair: _Pair) -> Iterator[str]:
    if len(pair.depth) < FEW_LAYERS:
        yield f"fewer than {FEW_LAYERS} layers"
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
