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

__all__ = ["ITEM_KINDS", "VERSIONS", "baselines", "gold", "load", "samples", "score"]

VERSIONS = ("mteb", "scikit-learn")


def load(folder: Path) -> TaskFiles:
    """Read the files of a task."""
    return TaskFiles(folder)


def samples(folder: Path, _parent: pd.DataFrame, _parent_folder: Path) -> pd.DataFrame:
    """Return every text the task asks for, once: id (its hash), split and text."""
    return recorded_texts(folder)


def baselines(files: TaskFiles, frame: pd.DataFrame, _folder: Path) -> list[dict[str, Any]]:
    """Return ``{baseline, protocol, score}`` of every baseline."""
    return text_baselines(files, frame["text"].tolist())


def score(files: TaskFiles, rows: Mapping[str, int], vectors: Vectors) -> Score:
    """Score vectors (N, D), whose row of a text is ``rows[hash]``."""
    return score_vectors(files, Stored(files.name, rows, vectors))
