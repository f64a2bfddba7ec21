"""missing.csv: every expected cell that is absent, and every undefined one, with the reason."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from layerwise.tables.frames import METRIC_KEY, typed
from layerwise.tables.reading import ranges


def missing_table(
    metrics: pd.DataFrame,
    scores: pd.DataFrame,
    expected: Iterable[Mapping[str, str]] = (),
    gaps: Iterable[Mapping[str, str]] = (),
) -> pd.DataFrame:
    """List every expected cell that is absent, with the reason, and every undefined cell with its layers.

    Args:
        metrics: from ``metrics_table``.
        scores: from ``scores_table``.
        expected: what the workflow asked for: ``stage`` ("metrics" or "tasks"), ``model``, ``dataset``, ``task``,
            ``metric`` and ``reason``; an empty reason means the cell should exist.
        gaps: ``model``, ``task`` and ``reason`` of what else the records of a task do not give.

    Returns:
        stage, model, dataset, task, metric, variant, readout, recipe, parameters, tap, protocol, layers ("0, 3-5"; empty
        where the whole file is absent), reason; sorted.

    Raises:
        ValueError: an expected cell of another stage.
    """
    metrics, scores = typed(metrics), typed(scores)
    there: dict[str, set[Any]] = {
        "metrics": set(zip(metrics["model"], metrics["dataset"], metrics["metric"], strict=True)),
        "tasks": set(zip(scores["model"], scores["task"], strict=True)),
    }
    rows = [row for cell in expected if (row := _absent(cell, there)) is not None]
    rows += _undefined_rows(metrics[metrics["value"].isna()], "metrics")
    unscored = scores[scores["score"].isna()].assign(undefined="the task recorded no score")
    rows += _undefined_rows(unscored, "tasks")
    rows += [{"stage": "tasks", "dataset": gap["task"], **gap} for gap in gaps]
    columns = ["stage", "model", "dataset", "task", *METRIC_KEY[2:-1], "protocol", "layers", "reason"]
    frame = typed(pd.DataFrame(rows, columns=columns))
    return frame.drop_duplicates().sort_values(columns).reset_index(drop=True)


def _absent(cell: Mapping[str, str], there: Mapping[str, set[Any]]) -> dict[str, str] | None:
    stage = cell["stage"]
    if stage not in there:
        raise ValueError(f"an expected cell has stage 'metrics' or 'tasks', got {stage!r}")
    names = ("model", "dataset", "metric") if stage == "metrics" else ("model", "task")
    if tuple(cell.get(name, "") for name in names) in there[stage]:
        return None
    return {**cell, "reason": cell.get("reason") or "requested, but its result file is not there"}


def _undefined_rows(frame: pd.DataFrame, stage: str) -> list[dict[str, str]]:
    keys = ["model", "task", "readout", "undefined"]
    keys += ["dataset", "metric", "variant", "recipe", "parameters"] if stage == "metrics" else ["protocol"]
    rows = []
    for values, group in frame.groupby(keys):
        row = dict(zip(keys, map(str, values), strict=True))
        reason = row.pop("undefined")
        rows.append(row | {"stage": stage, "layers": ranges(group["layer"].dropna()), "reason": reason})
    return rows
