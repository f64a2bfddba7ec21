"""Pythia-410M's scores against the published ones: layers 15, 17 and 24 of STSBenchmark and STS12, normed and raw.

Usage: python tools/reproduce.py DIR CORES. Used by `make reproduce-paper DIR=... `. DIR is the folder that `make published`
reads. Says that nothing was run where the hub cannot be reached and its cache does not hold the model.
"""

import subprocess
import sys
from pathlib import Path

import pandas as pd
from layerwise.errors import LayerwiseError
from layerwise.tables.frames import read_long
from layerwise.tables.published import compare
from layerwise.tables.published_files import read_published

CONFIG = "configs/reproduce-paper.yaml"
MODEL, PUBLISHED = "pythia-410m", "Pythia/410m/main"
LAYERS = (15, 17, 24)
WITHIN = 0.5
TABLES = Path("results/tables")


def run(cores: str) -> bool:
    """Run the study up to its scores; return whether it succeeded."""
    command = [sys.executable, "tools/run.py", "--cores", cores, "--configfile", CONFIG, "--quiet", "rules"]
    return subprocess.run([*command, "--", str(TABLES / "scores.csv")], check=False).returncode == 0


def verdict(comparison: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Return the rows of the layers in question, and whether every normed score is within half a point.

    Args:
        comparison: from ``tables.published.compare``: task, layer, readout, published, ours and difference in points.
    """
    rows = comparison[comparison["layer"].isin(LAYERS)].sort_values(["task", "readout", "layer"])
    normed = rows[rows["readout"] == "mean_normed"]
    return rows, len(normed) == 2 * len(LAYERS) and bool((normed["difference"].abs() <= WITHIN).all())


def main(arguments: list[str]) -> int:
    """Run, compare and print; return 1 where it was not run or does not agree."""
    if not arguments or not arguments[0]:
        print("Name the folder of published results: make reproduce-paper DIR=FOLDER.", file=sys.stderr)
        return 1
    try:
        published = read_published(arguments[0])
        if not run(arguments[1] if len(arguments) > 1 else "2"):
            print("Not reproduced: the study did not run (above: why). It needs the hub, or its cache.", file=sys.stderr)
            return 1
        ours = read_long(TABLES / "metrics.csv", TABLES / "scores.csv")[1]
        comparison, _ = compare(published, ours, {MODEL: PUBLISHED})
    except LayerwiseError as error:
        print(error, file=sys.stderr)
        return 1
    rows, agrees = verdict(comparison)
    print(rows[["task", "readout", "layer", "published", "ours", "difference"]].round(2).to_string(index=False))
    print(f"\nNormed scores within {WITHIN} points of the published ones: {'yes' if agrees else 'NO'}.")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
