"""Rule collect_records: the long tables metrics.csv and scores.csv, and missing.csv with every absent cell."""

from typing import TYPE_CHECKING, Any

import pandas as pd
from layerwise.atomic import atomic_path
from layerwise.progress import rule_log
from layerwise.tables.collect import metrics_table, scores_table, without_outcomes
from layerwise.tables.missing import missing_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(outputs: dict[str, str], records: dict[str, list[str]], expected: list[dict[str, Any]]) -> None:
    """Write the tables named in ``outputs`` from the JSON ``records``."""
    metrics = metrics_table(records["metrics"])
    scores = scores_table(records["tasks"], records["baselines"])
    gaps = without_outcomes(records["tasks"])
    tables = {"metrics": metrics, "scores": scores, "missing": missing_table(metrics, scores, expected, gaps)}
    for name, table in tables.items():
        write_csv(table, outputs[name])


def write_csv(table: pd.DataFrame, path: str) -> None:
    """Write a table atomically."""
    with atomic_path(path) as temporary:
        table.to_csv(temporary, index=False)


if "snakemake" in globals():
    with rule_log(snakemake.log[0], "collect_records"):
        files = {name: list(snakemake.input.get(name, [])) for name in ("metrics", "tasks", "baselines")}
        main(dict(snakemake.output.items()), files, snakemake.params.expected)
