"""Records of metrics on pooled vectors and on views: read a layer, prepare it, evaluate it whole and on halves."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from layerwise.errors import UndefinedMetric
from layerwise.metrics import blocks
from layerwise.metrics.cases import Plan
from layerwise.metrics.entries import Outcome, curve, layer_entry, preparation, record
from layerwise.metrics.nulls import Nulls
from layerwise.metrics.resampling import Halves, draw_halves, spearman, spread
from layerwise.metrics.spec import Activations, Array, Case, Value
from layerwise.spectrum import checked


def pooled_records(
    module: ModuleType,
    activations: Activations,
    readout: str,
    plan: Plan,
    nulls: Nulls,
    tick: Callable[[], None],
) -> list[dict[str, Any]]:
    """Return one record per case for one readout.

    Vectors are centred over the corpus, every view on its own mean, then scaled to unit norm, unless the metric has its own
    ``prepare``. Halves (standard error of
    Gram metrics, split-half of all) repeat that preparation on their own samples, except where the metric adds up over
    samples (LiDAR): then they keep the corpus mean, which changes them by 1/N. Halves are of samples, never of views.

    Args:
        module: the metric's.
        activations: what is read; every layer once, or block by block where it is large and the metric has ``accumulate``.
        readout: name.
        plan: cases and counts.
        nulls: of this metric.
        tick: called after every layer.
    """
    supports = getattr(module, "supports", None)
    cases = [case for case in plan.cases if supports is None or supports(case, readout)]
    extra = [module.companions(case) if hasattr(module, "companions") else [] for case in cases]
    every = [*cases, *(other for others in extra for other in others)]
    subsamples = plan.subsamples if module.SPEC.standard_error == "subsamples" else 0
    layers: list[list[list[Outcome]]] = []  # layer, case, (whole, halves...)
    shape = (0, 0, 0)
    halves = draw_halves(activations.n_samples, subsamples, nulls.seed)
    for layer in activations.layers:
        shape, states = _layer(module, activations, readout, layer, halves)
        layers.append(_evaluate(module, shape, states, every, len(cases), halves, nulls.seed))
        tick()
    null_values = nulls.pooled(shape, cases) if _shape_error(module, shape) is None else [(None, None)] * len(cases)
    records = []
    after = len(cases)
    for index, case in enumerate(cases):
        numbered = dict(zip(activations.layers, [outcomes[index] for outcomes in layers], strict=True))
        made = _record(module, case, readout, shape[0], null_values[index], numbered)
        if extra[index]:
            others = [curve([row[after + k][0] for row in layers]) for k in range(len(extra[index]))]
            module.annotate(made, [entry["value"] for entry in made["layers"]], others)
            after += len(extra[index])
        records.append(made)
    return records


def _layer(
    module: ModuleType, activations: Activations, readout: str, layer: int, halves: Halves
) -> tuple[tuple[int, int, int], Callable[[], list[Any]]]:
    """(N, V, D) of one layer and how to make the states of the whole and of every half; pooled vectors are one view."""
    if "views" in module.SPEC.needs:
        raw = np.asarray(activations.views(readout, layer), dtype=np.float64)
    elif blocks.in_blocks(module, activations.n_samples, activations.width):
        shape = (activations.n_samples, 1, activations.width)
        return shape, partial(blocks.whole_and_halves, module, activations, readout, layer, halves)
    else:
        raw = np.asarray(activations.pooled(readout, layer), dtype=np.float64)[:, None]
    return (raw.shape[0], raw.shape[1], raw.shape[2]), partial(_held, module, raw, halves)


def _held(module: ModuleType, raw: Array, halves: Halves) -> list[Any]:
    checked(raw.reshape(len(raw), -1))
    return _merged_states(module, raw, halves) if hasattr(module, "merge") else _states(module, raw, halves)


def _shape_error(module: ModuleType, shape: Sequence[int]) -> UndefinedMetric | None:
    spec = module.SPEC
    if shape[0] < spec.minimum_samples:
        return UndefinedMetric(f"{shape[0]} samples, {spec.name} needs at least {spec.minimum_samples}")
    if shape[1] < spec.minimum_views:
        return UndefinedMetric(f"{shape[1]} views of each sample, {spec.name} needs at least {spec.minimum_views}")
    return None


def _evaluate(
    module: ModuleType,
    shape: tuple[int, int, int],
    make: Callable[[], list[Any]],
    every: Sequence[Case],
    n_cases: int,
    halves: Halves,
    seed: int,
) -> list[list[Outcome]]:
    """Outcomes by case, each on the whole and, for the first ``n_cases``, on every half."""
    error = _shape_error(module, shape)
    if error is not None:
        return [[error] * (1 + len(halves.halves)) for _ in every]
    try:
        states = make()
    except UndefinedMetric as undefined:
        return [[undefined] * (1 + len(halves.halves)) for _ in every]
    return [
        [_attempt(module, state, case, seed) for state in (states if index < n_cases else states[:1])]
        for index, case in enumerate(every)
    ]


def _states(module: ModuleType, raw: Array, halves: Halves) -> list[Any]:
    """The whole and every half, prepared anew; a half too small or constant becomes its UndefinedMetric."""
    prepare = preparation(module)
    states: list[Any] = [module.summarise(prepare(raw))]
    for half in range(len(halves.halves)):
        part = raw[halves.rows(half)]
        error = _shape_error(module, part.shape)
        try:
            states.append(error if error is not None else module.summarise(prepare(part)))
        except UndefinedMetric as undefined:
            states.append(undefined)
    return states


def _merged_states(module: ModuleType, raw: Array, halves: Halves) -> list[Any]:
    parts = module.parts(preparation(module)(raw), halves.groups)
    states: list[Any] = [module.merge(parts)]
    for half, groups in enumerate(halves.halves):
        error = _shape_error(module, (len(halves.rows(half)), raw.shape[1]))
        states.append(error if error is not None else module.merge([parts[group] for group in groups]))
    return states


def _attempt(module: ModuleType, state: object, case: Case, seed: int) -> Outcome:
    if isinstance(state, UndefinedMetric):
        return state
    try:
        value: Value = module.evaluate(state, case, seed)
        return value
    except UndefinedMetric as undefined:
        return undefined


def _record(
    module: ModuleType,
    case: Case,
    readout: str,
    n_samples: int,
    null: tuple[float | None, float | None],
    outcomes: Mapping[int, Sequence[Outcome]],
) -> dict[str, Any]:
    """Assemble a record from its outcomes by layer, each (whole, subsamples..., complement of the first subsample)."""
    entries = []
    for layer, (whole, *halves) in outcomes.items():
        by_samples = whole.standard_error if isinstance(whole, Value) else None
        error = by_samples if module.SPEC.standard_error == "samples" else spread(curve(halves[:-1]))
        entries.append(layer_entry(layer, max(outcomes), whole, error))
    first, second = (curve([row[position] for row in outcomes.values()]) for position in (1, -1))
    made = record(case, {"readout": readout}, n_samples, 0, null, spearman(first, second), entries)
    if module.SPEC.pairs:
        broken = [entry["null_broken_pairs"] for entry in entries if entry.get("null_broken_pairs") is not None]
        made["null_broken_pairs"] = float(np.mean(broken)) if broken else None
    return made
