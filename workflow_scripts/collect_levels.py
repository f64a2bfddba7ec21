"""Rule collect_levels: the long table levels.csv of metrics on datasets whose tokens a transform changes."""

from typing import TYPE_CHECKING

from layerwise.atomic import atomic_path
from layerwise.progress import rule_log
from layerwise.tables.collect import levels_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, records: list[str]) -> None:
    """Write the table from the JSON ``records``."""
    with atomic_path(output) as temporary:
        levels_table(records).to_csv(temporary, index=False)


if "snakemake" in globals():
    with rule_log(snakemake.log[0], "collect_levels"):
        main(snakemake.output[0], list(snakemake.input))
