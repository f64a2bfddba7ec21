"""Rule probe_attention: attention probes of every layer on one task, trained while the frozen model runs over its images."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from layerwise.costs.layers import token_moments
from layerwise.models.device import resolve, weight_bytes
from layerwise.models.layered import OnLayer
from layerwise.models.manifest import verified_weights
from layerwise.models.registry import load_loader
from layerwise.progress import Progress, rule_log
from layerwise.provenance import provenance
from layerwise.records import read_record, write_record
from layerwise.samples import read_samples
from layerwise.tasks import attention_task
from layerwise.tasks.attention_probe import train_and_test

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, inputs: dict[str, str], model: dict[str, Any], code: str, progress: Progress) -> None:
    """Train and test; ``model`` is the config's entry, ``inputs["spec"]`` the task's spec.json."""
    task = attention_task.load(Path(inputs["spec"]).parent)
    dataset, samples = read_record(inputs["dataset"], "digest"), Path(inputs["samples"])
    images, labels = attention_task.images(task, read_samples(samples))
    weights, manifest = verified_weights(Path(inputs["model"]))
    device = resolve(model["device"], weight_bytes(manifest["parameters"], model["dtype"]))
    loaded = load_loader(model["loader"]).load_entry(weights, model, device)
    opened = loaded.prepare(images, samples.parent)

    def run(rows: list[int], on_layer: OnLayer) -> None:
        loaded.run(opened.batch(rows), on_layer)

    probed = train_and_test(run, labels, len(task.ids["train"]), attention_task.training(task), progress)
    origin = provenance(code, task.options["seed"], *attention_task.VERSIONS, "transformers")
    origin |= {"model_revision": manifest["digest"], "dtype": model["dtype"], "input": loaded.facts}
    record = {"model": model["name"], "task": task.name, "type": task.type, "main_score": task.main_score}
    record |= {"dataset_digest": dataset["digest"], "data_revision": task.spec["digest"], "provenance": origin}
    record |= {"tokens": token_moments(opened.lengths)}
    write_record(output, record | attention_task.result(task, probed))


if "snakemake" in globals():
    torch.set_num_threads(snakemake.threads)
    with rule_log(snakemake.log[0], f"probe_attention {snakemake.wildcards.task} of {snakemake.wildcards.model}") as report:
        main(
            snakemake.output[0],
            dict(snakemake.input.items()),
            snakemake.params.model,
            snakemake.params.code,
            report,
        )
