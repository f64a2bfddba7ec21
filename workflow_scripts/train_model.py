"""Rule train_model: train a small model on a dataset of the study and save it at chosen steps, as ordinary model folders."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from layerwise.models.training.run import Run, train
from layerwise.progress import Progress, rule_log
from layerwise.provenance import provenance
from layerwise.records import read_record
from layerwise.samples import read_samples

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, name: str, inputs: dict[str, str], options: dict[str, Any], code: str, progress: Progress) -> None:
    """Train the run ``name`` as the config's entry ``options`` says, and write its record to ``output``."""
    dataset, samples = read_record(inputs["dataset"], "digest"), Path(inputs["samples"])
    where = provenance(code, options["seed"], "torch", "transformers", "timm", "tokenizers")
    run = Run(name, options, dataset["digest"], where)
    train(Path(output), run, read_samples(samples), samples.parent, progress)


if "snakemake" in globals():
    torch.set_num_threads(snakemake.threads)
    with rule_log(snakemake.log[0], f"train_model {snakemake.wildcards.run}") as report:
        what = snakemake.params.options, snakemake.params.code
        main(snakemake.output[0], snakemake.wildcards.run, dict(snakemake.input.items()), *what, report)
