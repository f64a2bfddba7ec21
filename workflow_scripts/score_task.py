"""Rule score_task: scores of every layer and readout of a model on one task, looked up, not encoded again."""

from pathlib import Path
from typing import TYPE_CHECKING

from layerwise.costs.layers import token_moments
from layerwise.progress import Progress, rule_log
from layerwise.provenance import provenance
from layerwise.records import read_record, write_record
from layerwise.store import Activations
from layerwise.tasks.layers import scored_layers
from layerwise.tasks.registry import load_kind

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, activations: str, spec: str, code: str, seed: int, progress: Progress) -> None:
    """Score the layers in an activation file on the task whose spec.json is ``spec``."""
    kind = load_kind(read_record(spec, "options")["options"]["type"])
    files = kind.load(Path(spec).parent)
    record = {"task": files.name, "type": files.type, "main_score": files.main_score, **kind.benchmark(files)}
    with Activations(activations) as store:
        scored = scored_layers(kind, files, store, progress)
        header, tokens = store.header, token_moments(store.n_tokens)
    record |= {"model": header.model, "model_revision": header.model_revision}
    record |= {"dataset_digest": header.dataset_digest, "data_revision": files.spec["digest"]}
    record |= {"tokens": tokens}
    write_record(output, record | {"provenance": provenance(code, seed, *kind.VERSIONS)} | scored)


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"score_task {snakemake.wildcards.task} of {snakemake.wildcards.model}") as report:
        main(
            snakemake.output[0],
            snakemake.input.activations,
            snakemake.input.spec,
            snakemake.params.code,
            snakemake.params.seed,
            report,
        )
