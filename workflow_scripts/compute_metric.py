"""Rule compute_metric: one metric of one activation file, one value per layer."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from layerwise.metrics.curves import metric_records
from layerwise.metrics.registry import load_metric
from layerwise.progress import Progress, rule_log
from layerwise.provenance import provenance
from layerwise.records import write_record
from layerwise.store import Activations

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(
    output: str,
    activations: str,
    task: str,
    metric: str,
    parameters: dict[str, Any],
    origin: dict[str, Any],
    progress: Progress,
) -> None:
    """Compute ``metric`` on an activation file; ``task`` owns its dataset, or is empty."""
    with Activations(activations) as store:
        header = store.header
        records = []
        for done, (condition, part) in enumerate(parts(store)):
            tick = partial(report_part, progress, done, max(len(store.conditions), 1))
            made = metric_records(metric, part, store.readouts, store.recipes, parameters, origin["seed"], tick)
            records += [condition | record for record in made]
        record = {
            "model": header.model,
            "dataset": header.dataset,
            "task": task,
            "transform": header.token_transform.get("transform", ""),
            "metric": metric,
            "unit": load_metric(metric).SPEC.unit,
            "n_layers": header.n_layers,
            "final_norm": header.final_norm,
            "dataset_digest": header.dataset_digest,
            "provenance": origin | {"activations": header.provenance, "model_revision": header.model_revision},
            "records": records,
        }
    write_record(output, record)


def parts(store: Activations) -> Iterator[tuple[dict[str, float], Activations]]:
    """Yield level and draw with a reader of each condition of a transform of tokens; all rows where there is none."""
    if not store.conditions:
        yield {}, store
    for number, condition in enumerate(store.conditions):
        yield condition, store.under(number)


def report_part(progress: Progress, part: int, parts: int, done: int, total: int) -> None:
    """Report ``done`` of ``total`` layers of one condition as a share of all conditions."""
    progress(part * total + done, parts * total)


if "snakemake" in globals():
    cell = snakemake.wildcards
    with rule_log(snakemake.log[0], f"compute_metric {cell.metric} of {cell.model} x {cell.dataset}") as report:
        where = provenance(snakemake.params.code, snakemake.params.seed, "numpy", "scipy")
        what = snakemake.params.task, cell.metric, snakemake.params.parameters
        main(snakemake.output[0], snakemake.input[0], *what, where, report)
