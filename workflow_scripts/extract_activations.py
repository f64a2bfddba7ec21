"""Rule extract_activations: one forward pass of a model over a dataset; the one rule that reads hidden layers."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from layerwise.activations.extract import Request, extract
from layerwise.activations.shards import rows_of_shard
from layerwise.models.device import keep_freed_memory, resolve, weight_bytes
from layerwise.models.manifest import verified_weights
from layerwise.models.registry import load_loader
from layerwise.progress import Progress, rule_log
from layerwise.provenance import provenance
from layerwise.records import read_record
from layerwise.samples import read_samples
from layerwise.template import filled, seen_digest

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, inputs: dict[str, str], model: dict[str, Any], collect: dict[str, Any], progress: Progress) -> None:
    """Extract; ``model`` is the config's entry, ``collect`` the readouts, recipes and storage that are wanted."""
    weights, manifest = verified_weights(Path(inputs["model"]))
    dataset = read_record(inputs["dataset"], "name", "digest")
    device = resolve(model["device"], weight_bytes(manifest["parameters"], model["dtype"]))
    loaded = load_loader(model["loader"]).load_entry(weights, model, device)
    path, template, shard = Path(inputs["samples"]), collect["template"], collect.get("shard")
    samples = rows_of_shard(read_samples(path), *shard, dataset["name"]) if shard else read_samples(path)
    request = Request(
        model=model["name"],
        model_revision=manifest["digest"],
        dtype=model["dtype"],
        dataset=dataset["name"],
        dataset_digest=seen_digest(dataset["digest"], template),
        readouts=collect["readouts"],
        recipes=collect["recipes"],
        taps=collect["taps"],
        provenance=provenance(collect["code"], None, "torch", "transformers")
        | {"template": template, **({"shard": shard} if shard else {})},
        batch_tokens=model["batch_tokens"],
        storage=collect["storage"],
        compression=collect["compression"],
        token_transform=collect["token_transform"],
    )
    extract(Path(output), loaded, filled(samples, template), path.parent, request, progress)


if "snakemake" in globals():
    if snakemake.params.model["loader"] == "text":
        # transformers imports it wherever it is there, and with it torch's compiler: a second that texts do not need.
        sys.modules["torchvision"] = None  # type: ignore[assignment]
    torch.set_num_threads(snakemake.threads)
    keep_freed_memory()
    label = f"extract_activations {snakemake.wildcards.model} x {snakemake.wildcards.dataset}"
    with rule_log(snakemake.log[0], label) as report:
        arguments = snakemake.params.model, {**snakemake.params.collect, "code": snakemake.params.code}
        main(snakemake.output[0], dict(snakemake.input.items()), *arguments, report)
