"""Tasks on disk, with rows whose right answers are known."""

from typing import Any

import numpy as np
import pandas as pd
from layerwise.config import TaskEntry
from layerwise.tasks.benchmark import TaskFiles
from layerwise.tasks.encoder import Stored, text_key

TYPES = ("classification", "clustering", "pair_classification", "sts")


def options(kind: str, **changes: Any) -> dict[str, Any]:
    """The config's entry of a task, with its defaults."""
    needed: dict[str, Any] = {
        "classification": {"label": "label", "train": 60},
        "clustering": {"label": "label"},
        "pair_classification": {"pairs": "next", "group": "group"},
        "sts": {"pairs": "scored"},
    }[kind]
    return TaskEntry(name="t", type=kind, dataset="d", **needed | changes).model_dump(exclude={"name"})


def rows(kind: str, n: int = 60) -> dict[str, pd.DataFrame]:
    """Rows of a task of this type: three classes, or pairs."""
    labels = [i % 3 for i in range(n)]
    if kind == "classification":
        parts = {
            split: pd.DataFrame({"text": [f"{split} text {i}" for i in range(n)], "label": labels})
            for split in ("train", "test")
        }
        return {split: part.assign(label_name=part["label"].map("abc".__getitem__)) for split, part in parts.items()}
    if kind == "clustering":
        return {"test": pd.DataFrame({"sentences": [f"text {i}" for i in range(n)], "labels": [f"c{i}" for i in labels]})}
    pairs = {"sentence1": [f"first {i}" for i in range(n)], "sentence2": [f"second {i}" for i in range(n)]}
    if kind == "pair_classification":
        return {"test": pd.DataFrame(pairs | {"labels": [i % 2 for i in range(n)]})}
    return {"test": pd.DataFrame(pairs | {"score": np.linspace(0, 5, n).round(3)})}


def texts_of(files: TaskFiles) -> list[str]:
    """Every text of a task, once."""
    columns = ("text", "sentences", "sentence1", "sentence2")
    found = [t for part in files.dataset.values() for c in columns if c in part.column_names for t in part[c]]
    return list(dict.fromkeys(found))


def encoder(files: TaskFiles, vector) -> Stored:
    """Vectors of a task's texts: ``vector(text)``."""
    texts = texts_of(files)
    return Stored(
        files.name,
        {text_key(text): i for i, text in enumerate(texts)},
        np.array([vector(text) for text in texts], dtype=float),
    )
