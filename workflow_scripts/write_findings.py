"""Rule write_findings: what the study found, in ten lines, as Markdown and for the report."""

from typing import TYPE_CHECKING, Any

from layerwise.atomic import write_text
from layerwise.progress import rule_log
from layerwise.tables.finding import Options, read_results
from layerwise.tables.findings import findings, markdown, page

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(outputs: dict[str, str], tables: dict[str, str], title: str, options: dict[str, Any]) -> None:
    """Write the findings of ``tables`` twice."""
    lines = findings(read_results(tables), Options(**options))
    write_text(outputs["markdown"], markdown(title, lines))
    write_text(outputs["page"], page(title, lines))


if "snakemake" in globals():
    with rule_log(snakemake.log[0], "write_findings"):
        given = snakemake.params
        main(dict(snakemake.output.items()), dict(snakemake.input.items()), given.title, given.options)
