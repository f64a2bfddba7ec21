"""Rule trace_training: training_dynamics.csv, what becomes of every layer over the checkpoints of each run."""

from typing import TYPE_CHECKING

from layerwise.atomic import write_text
from layerwise.progress import rule_log
from layerwise.tables.dynamics import training_dynamics
from layerwise.tables.frames import read_long

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, metrics: str, scores: str, records: dict[str, list[str]], headline_readout: str) -> None:
    """Join metrics.csv, scores.csv, the layer similarities and the training records of all checkpoints."""
    long = read_long(metrics, scores)
    table = training_dynamics(*long, records["similarities"], records["trainings"], headline_readout)
    write_text(output, table.to_csv(index=False))


if "snakemake" in globals():
    with rule_log(snakemake.log[0], "trace_training"):
        given = snakemake.input
        files = {name: list(given.get(name, [])) for name in ("similarities", "trainings")}
        main(snakemake.output[0], given.metrics, given.scores, files, snakemake.params.headline_readout)
