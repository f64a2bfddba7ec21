"""Rule build_table: a table computed from the long tables: layer_summary, correlations or layer_selection."""

from typing import TYPE_CHECKING, Any

from layerwise.atomic import atomic_path
from layerwise.progress import Progress, rule_log
from layerwise.tables.frames import read_long
from layerwise.tables.items import item_store
from layerwise.tables.registry import load_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, table: str, inputs: dict[str, Any], options: dict[str, Any], progress: Progress) -> None:
    """Build ``table`` from metrics.csv, scores.csv and the per-item outcomes in the task records."""
    long = read_long(inputs["metrics"], inputs["scores"])
    items = item_store(inputs["tasks"], progress)
    built = load_table(table).build(*long, items, progress=progress, **options)
    with atomic_path(output) as temporary:
        built.to_csv(temporary, index=False)


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"build_table {snakemake.wildcards.table}") as report:
        given = snakemake.input
        files = {"metrics": given.metrics, "scores": given.scores, "tasks": list(given.get("tasks", []))}
        main(snakemake.output[0], snakemake.wildcards.table, files, snakemake.params.options, report)
