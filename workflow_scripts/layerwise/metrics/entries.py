"""The JSON form of a curve: one entry per layer, one record per variant, parameters and readout or recipe."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from layerwise.errors import UndefinedMetric
from layerwise.metrics.spec import Array, Case, Value
from layerwise.spectrum import centre_unit

Outcome = Value | UndefinedMetric


def preparation(module: ModuleType) -> Callable[[Array], Array]:
    """Return how a metric wants its (N, V, D) vectors: by its own ``prepare``, else each view centred, unit norm."""
    prepare: Callable[[Array], Array] = getattr(module, "prepare", centre_unit)
    return prepare


def layer_entry(layer: int, n_layers: int, outcome: Outcome, standard_error: float | None) -> dict[str, Any]:
    """Return the entry of one layer; a value that is not finite is recorded as undefined, never as a number."""
    entry: dict[str, Any] = {"layer": layer, "depth": layer / n_layers if n_layers else 0.0}
    if isinstance(outcome, Value) and not math.isfinite(outcome.value):
        outcome = UndefinedMetric(f"the computation gave {outcome.value}")
    if isinstance(outcome, UndefinedMetric):
        return entry | {"value": None, "normalized": None, "standard_error": None, "undefined": str(outcome)}
    entry |= {
        "value": outcome.value,
        "normalized": finite(outcome.normalized),
        "standard_error": finite(standard_error),
    }
    if outcome.null_broken_pairs is not None:
        entry["null_broken_pairs"] = finite(outcome.null_broken_pairs)
    return entry


def record(
    case: Case,
    source: Mapping[str, str],
    n_samples: int,
    n_excluded: int,
    null: tuple[float | None, float | None],
    split_half: float | None,
    layers: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return one record; ``source`` is {"readout": name} or {"recipe": name}."""
    return {
        "variant": case.variant,
        **source,
        "parameters": dict(case.parameters),
        "n_samples": n_samples,
        "n_excluded": n_excluded,
        "null_value": finite(null[0]),
        "null_normalized": finite(null[1]),
        "split_half": split_half,
        "layers": list(layers),
    }


def curve(outcomes: Sequence[Outcome]) -> list[float | None]:
    """Values by layer, None where undefined."""
    return [outcome.value if isinstance(outcome, Value) else None for outcome in outcomes]


def finite(number: float | None) -> float | None:
    """Return the number as a float, None for NaN and infinity."""
    return float(number) if number is not None and math.isfinite(number) else None
