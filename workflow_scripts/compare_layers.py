"""Rule compare_layers: linear CKA of every layer to the layer before and to the last checkpoint of the run."""

from typing import TYPE_CHECKING, Any

from layerwise.errors import FileError
from layerwise.metrics.layer_similarity import similarity_records
from layerwise.progress import Progress, rule_log
from layerwise.provenance import provenance
from layerwise.records import write_record
from layerwise.store import Activations

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, own: str, final: str, origin: dict[str, Any], progress: Progress) -> None:
    """Compare the layers in the activation file ``own`` with those of the last checkpoint in ``final``."""
    with Activations(own) as store, Activations(final) as last:
        header, other = store.header, last.header
        if (header.dataset_digest, header.n_layers) != (other.dataset_digest, other.n_layers):
            raise FileError(f"{own} and {final} differ in their samples or layers; delete both and run again.")
        readouts = [name for name in store.readouts if name in last.readouts]
        record = {
            "model": header.model,
            "final": other.model,
            "dataset": header.dataset,
            "n_layers": header.n_layers,
            "dataset_digest": header.dataset_digest,
            "provenance": origin | {"model_revision": header.model_revision, "final_revision": other.model_revision},
            "records": similarity_records(store, last, readouts, origin["seed"], progress),
        }
    write_record(output, record)


if "snakemake" in globals():
    cell = snakemake.wildcards
    with rule_log(snakemake.log[0], f"compare_layers of {cell.model} x {cell.dataset}") as report:
        where = provenance(snakemake.params.code, snakemake.params.seed, "numpy")
        main(snakemake.output[0], snakemake.input.own, snakemake.input.final, where, report)
