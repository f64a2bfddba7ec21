"""Rule download_model: bring a model's files into results/models/{model}/weights and describe them in manifest.json."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise.models.snapshot import download
from layerwise.progress import rule_log

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(manifest: str, name: str, source: dict[str, Any], parent: str | None, loader: str) -> None:
    """Download model ``name`` from ``source``, or make it of ``parent``: the model it is a twin of, or its training run."""
    download(Path(manifest), name, source, Path(parent) if parent else None, loader)


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"download_model {snakemake.wildcards.model}"):
        main(
            snakemake.output[0],
            snakemake.wildcards.model,
            snakemake.params.source,
            snakemake.input.get("parent"),
            snakemake.params.loader,
        )
