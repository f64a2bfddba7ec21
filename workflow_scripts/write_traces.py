"""Rule write_traces: what a model of the study writes for the samples of a dataset, as a dataset of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from layerwise.data.traces import sources, write_traces
from layerwise.models.device import resolve, weight_bytes
from layerwise.models.generation import Writer
from layerwise.models.manifest import verified_weights
from layerwise.progress import Progress, rule_log

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(
    output: str, name: str, inputs: dict[str, str], model: dict[str, Any], recipe: dict[str, Any], progress: Progress
) -> None:
    """Write dataset ``name``; ``model`` is the config's entry of the writer, ``recipe`` holds ``source`` and ``sample``."""
    options, parent = recipe["source"], Path(inputs["parent"]).parent
    weights, manifest = verified_weights(Path(inputs["model"]))
    frame = sources(parent, recipe["sample"])
    device = resolve(model["device"], weight_bytes(manifest["parameters"], model["dtype"]))
    writer = Writer(weights, model["name"], model["dtype"], device)
    prompts = writer.prompts(frame["text"].tolist(), options["prompt"], options["chat"], options["system"])
    traces = writer.write(prompts, options["max_new_tokens"], options["batch"], progress)
    facts = {"model": model["name"], "digest": manifest["digest"], "dtype": model["dtype"]}
    written = {"options": options, "writer": facts, "sample": recipe["sample"]}
    write_traces(Path(output).parent, name, parent, frame, traces, written)


if "snakemake" in globals():
    torch.set_num_threads(snakemake.threads)
    with rule_log(snakemake.log[0], f"write_traces {snakemake.wildcards.dataset}") as report:
        what = snakemake.params.model, snakemake.params.recipe
        main(snakemake.output.samples, snakemake.wildcards.dataset, dict(snakemake.input.items()), *what, report)
