"""Rule compute_metric: one metric of one activation file, one value per layer."""

from typing import TYPE_CHECKING, Any

from layerwise.metrics.curves import records_of_all
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
        seed = origin["seed"]
        records = records_of_all(metric, store, store.readouts, store.recipes, parameters, seed, progress)
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


if "snakemake" in globals():
    cell = snakemake.wildcards
    with rule_log(snakemake.log[0], f"compute_metric {cell.metric} of {cell.model} x {cell.dataset}") as report:
        where = provenance(snakemake.params.code, snakemake.params.seed, "numpy", "scipy")
        what = snakemake.params.task, cell.metric, snakemake.params.parameters
        main(snakemake.output[0], snakemake.input[0], *what, where, report)
