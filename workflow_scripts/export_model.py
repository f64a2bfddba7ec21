"""Rule export_model: a model cut at the chosen layer, in a folder that standard libraries load, and checked."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from layerwise.api import layer_scores
from layerwise.errors import FileError
from layerwise.export.choose import chosen_layer, scores_at
from layerwise.export.run import SAMPLES, Request, Stored, export
from layerwise.models.manifest import verified_weights
from layerwise.models.registry import load_loader
from layerwise.progress import rule_log
from layerwise.provenance import provenance
from layerwise.samples import read_samples
from layerwise.store import Activations
from layerwise.template import filled

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, inputs: dict[str, str], entry: dict[str, Any], model: dict[str, Any], origin: dict[str, Any]) -> None:
    """Export; ``entry`` and ``model`` are the config's, ``entry["readout"]`` the whole readout and ``chosen_by`` a pair."""
    readout = entry["readout"]
    wanted = {"model": entry["model"], "layer": entry["layer"], "readout": readout["name"]}
    layer, chosen = chosen_layer(wanted, entry["chosen_by"], inputs)
    weights, manifest = verified_weights(Path(inputs["model"]))
    stored = stored_vectors(inputs, readout["name"], layer, manifest["digest"])
    scores = layer_scores(inputs["scores"]) if "scores" in inputs else None
    found = scores_at(scores, entry["model"], readout["name"], layer) if scores else {}
    loaded = load_loader(model["loader"]).load_entry(weights, model, "cpu")
    what = entry["name"], model["loader"], model["dtype"], layer, chosen, readout, manifest, found, origin
    export(Path(output), loaded, weights, Request(*what), stored)


def stored_vectors(inputs: dict[str, str], readout: str, layer: int, revision: str) -> Stored:
    """Return the first samples of the dataset that was read, with their vectors."""
    samples = read_samples(inputs["samples"]).head(SAMPLES)
    with Activations(inputs["activations"]) as store:
        if store.header.model_revision != revision or store.ids[: len(samples)] != samples["id"].tolist():
            raise FileError(f"{store.path} was made from other weights or samples; delete it and run again.")
        vectors = store.rows(readout, min(layer, store.n_layers))[: len(samples)]
        half = store.file[f"readout/{readout}/000"].dtype == "float16"
        samples = filled(samples, store.header.provenance.get("template", ""))
        return Stored(store.header.dataset, samples, Path(inputs["samples"]).parent, vectors, half)


if "snakemake" in globals():
    torch.set_num_threads(snakemake.threads)
    with rule_log(snakemake.log[0], f"export_model {snakemake.wildcards.export}"):
        where = provenance(snakemake.params.code, None, "torch", "transformers", "sentence-transformers", "timm")
        configured = snakemake.params.entry, snakemake.params.model
        main(snakemake.output[0], dict(snakemake.input.items()), *configured, where)
