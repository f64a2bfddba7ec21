"""Text tasks: mteb's evaluators on stored vectors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from layerwise.tasks.baselines import baselines as text_baselines
from layerwise.tasks.benchmark import TaskFiles
from layerwise.tasks.encoder import Stored, Vectors
from layerwise.tasks.outcome import Score
from layerwise.tasks.recording import recorded_texts
from layerwise.tasks.score import ITEM_KINDS, gold
from layerwise.tasks.score import score as score_vectors

__all__ = ["VERSIONS", "baselines", "benchmark", "gold", "item_kind", "load", "samples", "score"]

VERSIONS = ("mteb", "scikit-learn")


def load(folder: Path) -> TaskFiles:
    """Read the files of a task."""
    return TaskFiles(folder)


def samples(folder: Path, _parent: pd.DataFrame | None, _parent_folder: Path) -> pd.DataFrame:
    """Return every text the task asks for, once: id (its hash), split and text."""
    return recorded_texts(folder)


def baselines(files: TaskFiles, frame: pd.DataFrame, _folder: Path) -> list[dict[str, Any]]:
    """Return ``{baseline, protocol, score}`` of every baseline."""
    return text_baselines(files, frame["text"].tolist(), score_vectors, _majority(files))


def score(files: TaskFiles, rows: Mapping[str, int], vectors: Vectors) -> Score:
    """Score vectors (N, D), whose row of a text is ``rows[hash]``."""
    return score_vectors(files, Stored(files.name, rows, vectors))


def item_kind(files: TaskFiles) -> str:
    """Return what the items of the task are."""
    return ITEM_KINDS[files.type]


def benchmark(files: TaskFiles) -> dict[str, Any]:
    """Return what the record says of the task in mteb's words, and its prompt, which is none."""
    metadata = files.fresh().metadata
    facts = {"local": True, "task": metadata.name, **metadata.dataset, "split": "test", "subset": "default"}
    facts["dataset"] = facts.pop("path")
    own = {"subsets": ["default"], "languages": {"default": list(metadata.eval_langs)}, "main_score": files.main_score}
    return {"benchmark": facts | own, "prompt": None, "items_absent": ""}


def _majority(files: TaskFiles) -> float:
    """Return the score of a constant answer."""
    labels = gold(files)
    if files.type == "classification":
        train = list(files.dataset["train"]["label"])
        return labels.count(max(sorted(set(train)), key=train.count)) / len(labels)
    return sum(labels) / len(labels) if files.type == "pair_classification" else 0.0
