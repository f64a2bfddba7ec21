"""The driver: one metric of one activation file, as JSON-ready records."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layerwise.errors import ConfigError
from layerwise.metrics.cases import plan as make_plan
from layerwise.metrics.nulls import Nulls
from layerwise.metrics.pooled_curves import pooled_records
from layerwise.metrics.registry import load_metric
from layerwise.metrics.resampling import draw_subset
from layerwise.metrics.spec import Activations, Conditioned
from layerwise.metrics.token_curves import token_records

__all__ = ["Activations", "metric_records", "records_of_all"]


def metric_records(
    metric: str,
    activations: Activations,
    readouts: Sequence[str],
    recipes: Sequence[str],
    parameters: Mapping[str, Any],
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Compute one metric for every tap, layer, readout or recipe, variant and parameter value.

    Args:
        metric: a registry name.
        activations: what is read.
        readouts: for metrics of pooled vectors and views; ignored by token metrics.
        recipes: for token metrics; ignored by the others. Effective rank makes records of both. Where there are any, a
            metric that is defined for certain recipes only (``SPEC.recipes``) makes records of those.
        parameters: the config entry's mapping, see ``cases.plan``.
        seed: of permutations, halves and null draws, >= 0. The result does not depend on the order of layers.
        progress: called with (done, total) layers.

    Returns:
        Records with: tap, n_available (N), variant, readout or recipe, parameters, n_samples (`max_samples` of them, where
        there are more), n_excluded, null_value, null_normalized, split_half, layers. Each layer has layer, depth (= layer /
        L), value, normalized, standard_error, and `undefined` (the reason) where it has no value. InfoNCE and DiME add
        null_broken_pairs to every layer and its mean to the record; LiDAR adds saturated and delta_spearman {"0.01": r,
        "100": r}. Nothing in it is NaN or infinite.

    Raises:
        ConfigError: unknown metric, parameter, variant or recipe, a negative seed, or nothing to compute: no readout or
            recipe given, or a variant that none of them has.
    """
    module = load_metric(metric)
    plan = make_plan(module.SPEC, parameters)
    if seed < 0:
        raise ConfigError(f"{metric}: seed must not be negative, got {seed}.")
    names = {
        pooled_records: readouts if set(module.SPEC.needs) & {"pooled", "views"} else [],
        token_records: (module.SPEC.recipes or recipes) if recipes and "tokens" in module.SPEC.needs else [],
    }
    available = activations.n_samples
    chosen = draw_subset(available, plan.max_samples, seed)
    if chosen is not None:
        activations = activations.among(chosen)
    read = {tap: activations.at(tap) for tap in activations.taps}
    tick = _ticker(sum(map(len, names.values())) * sum(len(one.layers) for one in read.values()), progress)
    nulls = Nulls(module, plan.null_draws, seed)  # sizes do not depend on the tap
    records: list[dict[str, Any]] = []
    for tap, one in read.items():
        for make in (pooled_records, token_records):
            for name in names[make]:
                made = make(module, one, name, plan, nulls, tick)
                records += [{"tap": tap, "n_available": available, **record} for record in made]
    absent = {case.variant for case in plan.cases} - {record["variant"] for record in records}
    if absent:
        raise ConfigError(
            f"{metric}: variant {min(absent)!r} has no value for parameters {dict(parameters)}, "
            f"readouts {list(readouts)} and recipes {list(recipes)}; add what it needs or leave it out."
        )
    return records


def records_of_all(
    metric: str,
    activations: Conditioned,
    readouts: Sequence[str],
    recipes: Sequence[str],
    parameters: Mapping[str, Any],
    seed: int,
    progress: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """Return the ``metric_records`` of a file; under a transform of tokens those of every condition.

    Args are those of ``metric_records``; a record of a condition has its ``level`` and ``draw`` besides.
    """
    if not activations.conditions:
        return metric_records(metric, activations, readouts, recipes, parameters, seed, progress)
    records: list[dict[str, Any]] = []
    many = len(activations.conditions)
    for number, condition in enumerate(activations.conditions):
        part = activations.under(number)
        made = metric_records(metric, part, readouts, recipes, parameters, seed, _share(progress, number, many))
        records += [{**condition, **record} for record in made]
    return records


def _share(progress: Callable[[int, int], None], part: int, parts: int) -> Callable[[int, int], None]:
    """Report the layers of one condition as a share of all conditions."""
    return lambda done, total: progress(part * total + done, parts * total)


def _ticker(total: int, progress: Callable[[int, int], None] | None) -> Callable[[], None]:
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return tick
