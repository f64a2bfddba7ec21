"""The published numbers as the study's own files: a tree of mteb results and pickles, written from tables."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from layerwise.tables.published_files import METRIC_COLUMNS, SCORE_COLUMNS
from layerwise.tables.published_tree import TASK_OF_DATASET

ROOT = Path(__file__).resolve().parents[3]

DATASET_OF_TASK = {task: dataset for dataset, task in TASK_OF_DATASET.items()}
MODEL = {"family": "Pythia", "size": "410m", "revision": "main"}
THEIR_NAMES = {"prompt_entropy": "entropy_prompt", "dataset_entropy": "entropy_dataset"}


def published_folder() -> Path:
    """Folder of the published curves, or skip."""
    folder = Path(os.environ.get("LAYERWISE_REFERENCE", ROOT.parent / "shared" / "reference")) / "published"
    if not folder.is_dir():
        pytest.skip(f"the published curves are not there: no folder {folder} (set LAYERWISE_REFERENCE)")
    return folder


def small_scores(curves: dict[str, list[float]], **model: str) -> pd.DataFrame:
    """Rows of mteb_scores.csv for one curve per task."""
    rows = [
        {"layer": layer, "task": task, "subset_order": 0, "subset": "default", "main_score": score}
        for task, curve in curves.items()
        for layer, score in enumerate(curve)
    ]
    frame = pd.DataFrame(rows).assign(**(MODEL | model), mteb_version="1.14.19", dataset_revision="abc")
    return frame[[*SCORE_COLUMNS]]


def small_metrics(curves: dict[str, list[float]], metric: str = "dime", **model: str) -> pd.DataFrame:
    """Rows of metrics.csv for one raw curve per task."""
    rows = [
        {"dataset": DATASET_OF_TASK[task], "task": task, "layer": layer, "value": value}
        for task, curve in curves.items()
        for layer, value in enumerate(curve)
    ]
    frame = pd.DataFrame(rows).assign(**(MODEL | model), split="test", metric=metric, normalization="raw")
    return frame[[*METRIC_COLUMNS]]


def write_csv(folder: Path, scores: pd.DataFrame, metrics: pd.DataFrame | None = None) -> Path:
    """Write the CSV form."""
    folder.mkdir(parents=True, exist_ok=True)
    scores.to_csv(folder / "mteb_scores.csv", index=False)
    if metrics is not None:
        metrics.to_csv(folder / "metrics.csv", index=False)
    return folder


def write_tree(folder: Path, scores: pd.DataFrame, metrics: pd.DataFrame, protocol: int = 4) -> Path:
    """Write the released form: a JSON file per layer and task, a pickle per metric and dataset."""
    for key, rows in scores.groupby(["family", "size", "revision", "layer", "task"]):
        family, size, revision, layer, task = key
        subsets = [
            {"accuracy": 0.5, "main_score": row["main_score"], "hf_subset": row["subset"], "languages": ["eng-Latn"]}
            for row in rows.sort_values("subset_order").to_dict("records")
        ]
        result = {"dataset_revision": rows["dataset_revision"].iloc[0], "task_name": task, "evaluation_time": 1.5}
        result |= {"mteb_version": rows["mteb_version"].iloc[0], "scores": {"test": subsets}}
        path = folder / family / size / revision / "mteb" / f"layer_{layer}" / f"{task}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result))
        (path.parent / "model_meta.json").write_text("{}")
    metrics = metrics.sort_values("layer")
    for key, rows in metrics.groupby(["family", "size", "revision", "dataset", "split", "metric"]):
        family, size, revision, dataset, split, metric = key
        curves = {str(name): part["value"].to_numpy() for name, part in rows.groupby("normalization")}
        whole = {name: list(curve) if name == "raw" else curve.astype(np.float64) for name, curve in curves.items()}
        name = THEIR_NAMES.get(metric, metric)
        path = folder / family / size / revision / "metrics" / dataset / split / f"{name}.pkl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(whole, protocol=protocol))
    return folder
