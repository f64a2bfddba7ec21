"""Tables and figures of the study's published numbers, and the comparison with ours.

Usage: python tools/published.py DIR [OURS=FAMILY/SIZE/REVISION ...]. Used by `make published DIR=... MODEL=...`.
DIR is a folder with mteb_scores.csv and metrics.csv, or a released results tree. Reads results/tables/scores.csv where
a model of ours is named; writes results/tables/published_*.csv and results/figures/published_*.png and .pdf.
"""

import sys
from pathlib import Path

import pandas as pd
from layerwise.atomic import write_text
from layerwise.errors import ConfigError, LayerwiseError
from layerwise.figures.published import draw_scores, draw_selection
from layerwise.figures.style import save
from layerwise.tables.frames import SCORE_COLUMNS, read_long
from layerwise.tables.published import compare, published_tables
from layerwise.tables.published_files import Published, read_published

TABLES, FIGURES = Path("results/tables"), Path("results/figures")


def named_models(arguments: list[str]) -> dict[str, str]:
    """Read OURS=FAMILY/SIZE/REVISION.

    Raises:
        ConfigError: an argument is not of this form, or names one of our models twice.
    """
    models: dict[str, str] = {}
    for argument in arguments:
        ours, _, theirs = argument.partition("=")
        if not ours or theirs.count("/") != 2 or ours in models:
            raise ConfigError(
                f"MODEL={argument} does not pair a model of ours with a published one; write each of ours once, such as "
                "MODEL=pythia-410m=Pythia/410m/main."
            )
        models[ours] = theirs
    return models


def comparison(published: Published, models: dict[str, str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the table of ``compare``; without a model or without our scores it is empty, and a note says why."""
    empty = pd.DataFrame(columns=[*SCORE_COLUMNS])
    if not models:
        return compare(published, empty, {})[0], [
            "Nothing is compared: name a model of ours with MODEL=OURS=FAMILY/SIZE/REVISION."
        ]
    if not (TABLES / "scores.csv").is_file():
        return compare(published, empty, {})[0], [
            f"Nothing is compared: there is no {TABLES / 'scores.csv'}; run 'make run' first."
        ]
    return compare(published, read_long(TABLES / "metrics.csv", TABLES / "scores.csv")[1], models)


def main(arguments: list[str]) -> int:
    """Write and print everything; return 1 where the folder or the models cannot be used."""
    if not arguments or not arguments[0]:
        print("Name the folder of published results: make published DIR=FOLDER.", file=sys.stderr)
        return 1
    try:
        models = named_models(arguments[1:])
        published = read_published(arguments[0])
        tables, notes = published_tables(published)
        tables["published_comparison"], more = comparison(published, models)
        for name, table in tables.items():
            write_text(TABLES / f"{name}.csv", table.to_csv(index=False))
        for name, figure in (("scores", draw_scores(tables)), ("selection", draw_selection(tables))):
            save(figure, FIGURES / f"published_{name}.pdf", FIGURES / f"published_{name}.png")
    except LayerwiseError as error:
        print(error, file=sys.stderr)
        return 1
    print("Published scores in points: the best single layer and the last, mean over the tasks\n")
    print(tables["published_summary"].round(1).to_string(index=False))
    wide = tables["published_selection"].pivot(
        index=["family", "size", "revision", "n_tasks"], columns="selector", values="score"
    )
    wide = wide.reindex(columns=tables["published_selection"]["selector"].unique())
    order = pd.MultiIndex.from_frame(tables["published_selection"][wide.index.names]).unique()
    wide = wide.reindex(order)
    print("\nThe same, choosing a layer for each task, on the tasks that have metrics\n")
    print(wide.round(1).reset_index().rename_axis(columns=None).to_string(index=False))
    print("".join(f"\n{note}" for note in [*notes, *more]))
    print(f"\nTables: {TABLES}/published_*.csv   Figures: {FIGURES}/published_scores.png, published_selection.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
