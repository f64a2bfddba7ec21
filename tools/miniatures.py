"""Print what the miniatures learned: the loss of each run's own objective on held-out samples, before and after.

Usage: python tools/miniatures.py. Used by `make miniatures` after the run; reads results/tables/training_dynamics.csv. Its
exit status is 1 where a run does not beat its random start by a tenth.
"""

import sys
from pathlib import Path

import pandas as pd

TABLE = Path("results/tables/training_dynamics.csv")
CLEARLY = 0.9


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run that was trained here: its last step, and both held-out losses.

    Args:
        table: training_dynamics.csv.
    """
    points = table.dropna(subset=["heldout_loss"]).drop_duplicates(["model", "step"]).sort_values(["model", "step"])
    rows = points.groupby("model", sort=False).agg(
        steps=("step", "last"),
        checkpoints=("step", "size"),
        before=("heldout_loss", "first"),
        after=("heldout_loss", "last"),
    )
    return rows.assign(learned=rows["after"] < CLEARLY * rows["before"]).reset_index()


def main() -> int:
    """Print the table; return 1 where it is not there or a run has not learned."""
    if not TABLE.is_file():
        print(f"There is no {TABLE} yet: run 'make miniatures' first.", file=sys.stderr)
        return 1
    rows = summary(pd.read_csv(TABLE, keep_default_na=False, na_values=[""]))
    print("Loss of each objective on held-out samples, at random weights and after training\n")
    print(f"{'run':<14} {'steps':>6} {'checkpoints':>12} {'before':>8} {'after':>8}")
    for row in rows.itertuples():
        mark = "" if row.learned else "   not learned"
        print(f"{row.model:<14} {row.steps:>6} {row.checkpoints:>12} {row.before:>8.3f} {row.after:>8.3f}{mark}")
    print(f"\nTable: {TABLE}   Figures: results/figures/dynamics~RUN.png   Report: results/report.html")
    return 0 if len(rows) and rows["learned"].all() else 1


if __name__ == "__main__":
    sys.exit(main())
