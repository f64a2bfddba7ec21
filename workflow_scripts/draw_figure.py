"""Rule draw_figure: one figure from the tables, as PDF and PNG."""

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from layerwise.figures.reading import read_tables
from layerwise.figures.registry import load_figure, resolve
from layerwise.figures.style import save
from layerwise.progress import rule_log

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(outputs: dict[str, str], name: str, tables: dict[str, str], options: dict[str, Any]) -> None:
    """Draw the figure whose file name is ``name``."""
    mpl.use("Agg")
    figure, own = resolve(name)
    drawn = load_figure(figure).draw(read_tables(tables), **own, **options)
    save(drawn, outputs["pdf"], outputs["png"])


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"draw_figure {snakemake.wildcards.figure}"):
        main(
            dict(snakemake.output.items()),
            snakemake.wildcards.figure,
            dict(snakemake.input.items()),
            snakemake.params.options,
        )
