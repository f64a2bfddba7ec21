"""From the config's mapping to the variants and parameter values of one metric."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from layerwise.errors import ConfigError
from layerwise.metrics.spec import Case, MetricSpec, check_variant

COMMON: dict[str, Any] = {"variants": ("paper",), "null_draws": 20, "subsamples": 10, "max_samples": None}
_WHOLE = ("permutations", "null_draws", "subsamples", "max_samples")


class Plan(NamedTuple):
    """Everything a metric is computed for.

    Attributes:
        cases: one record per case and readout or recipe.
        null_draws: Gaussian draws behind `null_value`; 0 leaves it out.
        subsamples: halves behind `standard_error` of Gram metrics; below 2 leaves it out.
        max_samples: of more samples a seeded subsample is taken; None: all are.
    """

    cases: tuple[Case, ...]
    null_draws: int
    subsamples: int
    max_samples: int | None


def plan(spec: MetricSpec, parameters: Mapping[str, Any]) -> Plan:
    """Check the config's parameters of one metric and spell out its cases.

    Every variant is combined with every value of every parameter (a number or a list of them). LiDAR's two ridges are
    alternatives: each of their values is a case of its own, and ``null`` leaves one out.

    Args:
        spec: of the metric.
        parameters: `variants`, `null_draws`, `subsamples`, `max_samples` (null: no limit) and the metric's own; what is
            absent takes its default. A `name` (the entry's own) is passed over.

    Raises:
        ConfigError: unknown key (the message lists the allowed ones), unknown variant, or a value that is not a
            positive number.
    """
    given = {key: value for key, value in parameters.items() if key != "name"}
    allowed = {**COMMON, "max_samples": spec.max_samples, **spec.parameters}
    for key in given:
        if key not in allowed:
            raise ConfigError(f"{spec.name}: parameter {key!r} is unknown; allowed are {', '.join(allowed)}.")
    settings = {**allowed, **given}
    variants = _listed(settings["variants"])
    for variant in variants:
        check_variant(spec, variant)
    points = [
        {name: _number(spec, name, value)}
        for name in spec.parameters
        if settings[name] is not None
        for value in _listed(settings[name])
    ]
    if not variants or (spec.parameters and not points):
        raise ConfigError(f"{spec.name}: nothing to compute; give at least one variant and one value of each parameter.")
    cases = tuple(Case(variant, point) for variant in dict.fromkeys(variants) for point in points or [{}])
    draws, subsamples = (int(_number(spec, name, settings[name], minimum=0)) for name in ("null_draws", "subsamples"))
    most = settings["max_samples"]
    if most is not None:
        most = int(_number(spec, "max_samples", most, minimum=max(spec.minimum_samples, 2)))
    return Plan(cases, draws, subsamples, most)


def _listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _number(spec: MetricSpec, name: str, value: object, minimum: int = 1) -> float | int:
    if name in _WHOLE:
        if isinstance(value, int) and not isinstance(value, bool) and value >= minimum:
            return int(value)
        raise ConfigError(f"{spec.name}: {name} must be a whole number of at least {minimum}, got {value!r}.")
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return float(value)
    raise ConfigError(f"{spec.name}: {name} must be a positive number, got {value!r}.")
