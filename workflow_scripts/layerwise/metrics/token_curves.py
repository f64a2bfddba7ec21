"""Records of metrics on the tokens of one sample: means over samples of stored token statistics."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import UndefinedMetric
from layerwise.metrics import recipes
from layerwise.metrics.blocks import block_rows
from layerwise.metrics.cases import Plan
from layerwise.metrics.entries import Outcome, curve, layer_entry, record
from layerwise.metrics.nulls import Nulls
from layerwise.metrics.resampling import draw_halves, spearman
from layerwise.metrics.spec import Activations, Array, Case, Indices, Value


class _Layer(NamedTuple):
    whole: Outcome
    first: Outcome
    second: Outcome
    excluded: int


def token_records(
    module: ModuleType,
    activations: Activations,
    recipe: str,
    plan: Plan,
    nulls: Nulls,
    tick: Callable[[], None],
) -> list[dict[str, Any]]:
    """Return one record per case that the metric has for this recipe.

    A layer's value is the mean over the samples that have one; its standard error is their standard deviation over the
    root of their number. Left out, and counted, are samples with NaN and those whose tokens can take one direction
    only (one token, or two after centring: entropy 0 whatever they are), so that value and normalised value are of the
    same samples. `n_excluded` is the largest count over layers that have a value.

    Args:
        module: the metric's.
        activations: what is read; every layer once.
        recipe: name; `*_skip_first` samples have one token fewer.
        plan: cases and counts.
        nulls: of this metric.
        tick: called after every layer.
    """
    recipes.check_recipe(recipe)
    supports = getattr(module, "supports", None)
    cases = [case for case in plan.cases if supports is None or supports(case, recipe)]
    sizes = recipes.sizes(recipe, activations.n_tokens)
    ceilings = [module.sample_ceiling(sizes, activations.width, recipe, case) for case in cases]
    halves = draw_halves(len(sizes), 0, nulls.seed)
    layers: list[list[_Layer]] = []
    for layer in activations.layers:
        values = _sample_values(module, activations, recipe, layer, cases)
        layers.append([_layer(v, c, halves.rows(0), halves.rows(1)) for v, c in zip(values, ceilings, strict=True)])
        tick()
    null_values = nulls.tokens(recipe, sizes, activations.width, cases)
    return [
        _record(
            case,
            recipe,
            len(sizes),
            null_values[index],
            dict(zip(activations.layers, [outcomes[index] for outcomes in layers], strict=True)),
        )
        for index, case in enumerate(cases)
    ]


def _sample_values(module: ModuleType, activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) values per case, from blocks of samples whose padded spectra stay small."""
    if not (cases and len(activations.n_tokens)):
        return [np.empty(0) for _ in cases]
    n, longest = len(activations.n_tokens), min(int(activations.n_tokens.max()), activations.width)
    rows = block_rows(max(longest, 1))
    if n <= rows:
        return list(module.sample_values(activations, recipe, layer, cases))
    parts = [activations.among(np.arange(start, min(start + rows, n))) for start in range(0, n, rows)]
    values = [module.sample_values(part, recipe, layer, cases) for part in parts]
    return [np.concatenate([part[index] for part in values]) for index in range(len(cases))]


def _layer(values: Array, ceilings: Array, first: Indices, second: Indices) -> _Layer:
    usable = np.isfinite(values) & np.isfinite(ceilings)
    whole, *parts = (_mean(values, ceilings, usable, rows) for rows in (np.arange(len(values)), first, second))
    return _Layer(whole, parts[0], parts[1], int((~usable).sum()))


def _mean(values: Array, ceilings: Array, usable: NDArray[np.bool_], rows: Indices) -> Outcome:
    rows = rows[usable[rows]]
    if not len(rows):
        return UndefinedMetric(f"none of {len(values)} samples has a value: too few tokens, or tokens that do not differ")
    chosen = values[rows]
    error = float(chosen.std(ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else None
    return Value(float(chosen.mean()), float((chosen / ceilings[rows]).mean()), error)


def _record(
    case: Case, recipe: str, n_samples: int, null: tuple[float | None, float | None], layers: Mapping[int, _Layer]
) -> dict[str, Any]:
    entries = [
        layer_entry(number, max(layers), row.whole, row.whole.standard_error if isinstance(row.whole, Value) else None)
        for number, row in layers.items()
    ]
    excluded = [row.excluded for row in layers.values() if isinstance(row.whole, Value)]
    halves = spearman(curve([row.first for row in layers.values()]), curve([row.second for row in layers.values()]))
    return record(case, {"recipe": recipe}, n_samples, max(excluded, default=n_samples), null, halves, entries)
