"""Rule join_shards: one activation file of what several jobs extracted."""

from pathlib import Path
from typing import TYPE_CHECKING

from layerwise.activations.shards import join
from layerwise.progress import Progress, rule_log
from layerwise.records import read_record
from layerwise.samples import read_samples
from layerwise.template import seen_digest

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(
    output: str,
    shards: list[str],
    inputs: dict[str, str],
    model: str,
    template: str,
    compression: str | None,
    progress: Progress,
) -> None:
    """Join ``shards``, which must be of the model, dataset and samples in ``inputs``."""
    dataset = read_record(inputs["dataset"], "name", "digest")
    expected = {
        "model": model,
        "model_revision": read_record(inputs["model"], "digest")["digest"],
        "dataset": dataset["name"],
        "dataset_digest": seen_digest(dataset["digest"], template),
    }
    ids = read_samples(inputs["samples"], ["id"])["id"].tolist()
    join(Path(output), [Path(shard) for shard in shards], ids, expected, compression, progress)


if "snakemake" in globals():
    cell = snakemake.wildcards
    with rule_log(snakemake.log[0], f"join_shards {cell.model} x {cell.dataset}") as report:
        given = {key: value for key, value in snakemake.input.items() if key != "shards"}
        how = snakemake.params.template, snakemake.params.compression
        main(snakemake.output[0], snakemake.input.shards, given, cell.model, *how, report)
