"""Rule prepare_dataset: write samples.parquet, pairs.parquet and manifest.json of one dataset."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise.data.prepare import derived, from_dataset, from_source
from layerwise.progress import rule_log

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(samples: str, name: str, parent: str | None, recipe: dict[str, Any]) -> None:
    """Prepare dataset ``name``; ``recipe`` holds ``source`` with ``kind``, or the options of a derivation."""
    folder = Path(samples).parent
    if "transform" in recipe:
        derived(folder, name, Path(str(parent)).parent, recipe)
    elif parent is not None:
        from_dataset(folder, name, Path(parent).parent, recipe["sample"])
    else:
        from_source(folder, name, recipe["kind"], recipe["source"], recipe["sample"])


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"prepare_dataset {snakemake.wildcards.dataset}"):
        main(
            snakemake.output.samples,
            snakemake.wildcards.dataset,
            snakemake.input.get("parent"),
            snakemake.params.recipe,
        )
