"""Small result records and table rows, shared by the tests of the tables."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from layerwise.tables.frames import METRIC_COLUMNS, SCORE_COLUMNS, typed


def metric_record(curve: Iterable[float | None], **changes: Any) -> dict[str, Any]:
    """A metric record with one curve; ``changes`` replace its fields, or those of its only entry."""
    values = list(curve)
    last = len(values) - 1
    layers: list[dict[str, Any]] = []
    for layer, value in enumerate(values):
        cell = {"layer": layer, "depth": layer / last, "value": value, "normalized": value, "standard_error": 0.01}
        layers.append(cell if value is not None else cell | {"undefined": "all vectors are zero"})
    entry: dict[str, Any] = {"variant": "paper", "readout": "mean", "parameters": {"b": 1, "a": 2}, "n_samples": 50}
    entry |= {"n_excluded": 0, "null_value": 1.0, "null_normalized": 0.5, "split_half": 0.9, "layers": layers}
    record: dict[str, Any] = {"model": "m", "dataset": "d", "task": "", "metric": "dime", "unit": "nats"}
    record |= {"n_layers": last, "final_norm": True, "provenance": {}, "records": [entry]}
    for key, value in changes.items():
        (record if key in record else entry)[key] = value
    if "recipe" in changes:
        del entry["readout"]
    return record


def task_record(curves: Mapping[str, Iterable[float]], **changes: Any) -> dict[str, Any]:
    """A task record with one curve for each readout under protocol mteb."""
    readouts: dict[str, list[dict[str, Any]]] = {}
    for name, curve in curves.items():
        values = list(curve)
        readouts[name] = [
            {"layer": i, "depth": i / (len(values) - 1), "main_score": v, "scores": {"mteb": v}, "n_not_converged": 0}
            for i, v in enumerate(values)
        ]
    record: dict[str, Any] = {"model": "m", "task": "t", "type": "sts", "main_score": "cosine_spearman"}
    record |= {"dataset_digest": "abc", "data_revision": "1", "provenance": {}, "readouts": readouts, "items": None}
    return record | changes


def metric_rows(values: Iterable[float], task: str = "", **changes: Any) -> pd.DataFrame:
    """Rows of the metrics table for one curve."""
    curve = np.asarray(list(values), dtype=float)
    depth = np.arange(len(curve)) / (len(curve) - 1)
    frame = pd.DataFrame({"layer": np.arange(len(curve)), "depth": depth, "value": curve, "normalized": curve})
    fixed = {"model": "m", "dataset": f"{task}~sample" if task else "corpus", "task": task, "metric": "dime"}
    fixed |= {"variant": "paper", "readout": "mean", "recipe": "", "parameters": "{}", "tap": "residual"}
    frame = frame.assign(**(fixed | changes))
    return typed(frame.reindex(columns=[*METRIC_COLUMNS]))


def score_rows(values: Iterable[float], task: str, **changes: Any) -> pd.DataFrame:
    """Rows of the scores table for one curve."""
    curve = np.asarray(list(values), dtype=float)
    depth = np.arange(len(curve)) / (len(curve) - 1)
    frame = pd.DataFrame({"layer": np.arange(len(curve)), "depth": depth, "score": curve})
    fixed = {"model": "m", "task": task, "type": "sts", "protocol": "mteb", "readout": "mean", "tap": "residual"}
    frame = frame.assign(**(fixed | {"baseline": ""} | changes))
    return typed(frame.reindex(columns=[*SCORE_COLUMNS]))


def tables(metrics: Mapping[str, Iterable[float]], scores: Mapping[str, Iterable[float]]) -> tuple[pd.DataFrame, ...]:
    """The two tables from metric curves and score curves by task."""
    return (
        pd.concat([metric_rows(curve, task) for task, curve in metrics.items()], ignore_index=True),
        pd.concat([score_rows(curve, task) for task, curve in scores.items()], ignore_index=True),
    )


def canonical(frame: pd.DataFrame) -> str:
    """A table as text, for comparing two of them."""
    return json.dumps(json.loads(frame.to_json(orient="records")), indent=0)
