"""Image tasks: k-NN and a linear probe on stored vectors."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize

from layerwise.errors import DataError, FileError
from layerwise.images import open_image
from layerwise.records import read_record
from layerwise.tasks.files import read_rows
from layerwise.tasks.outcome import Score
from layerwise.tasks.probes import cross_validated_probe, linear_probe

ITEM_KINDS = {"image_classification": "correct"}
VERSIONS = ("scikit-learn",)
NEIGHBOURS = 10
_PIXELS = 32

Vectors = NDArray[np.float64]


class ImageTask:
    """The rows of one task: ids of images and their labels, by split."""

    def __init__(self, folder: Path) -> None:
        """Read spec.json and the rows.

        Raises:
            FileError: a file is missing or damaged.
        """
        spec = read_record(folder / "spec.json", "name", "options", "splits", "digest")
        self.spec, self.name, self.options = spec, spec["name"], spec["options"]
        self.type, self.main_score = self.options["type"], "accuracy"
        try:
            rows = {split: pd.DataFrame(read_rows(folder / f"{split}.jsonl")) for split in ("train", "test")}
            self.ids = {split: frame["id"].tolist() for split, frame in rows.items()}
            self.labels = {split: frame["label"].to_numpy() for split, frame in rows.items()}
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"{folder} cannot be read as a task ({error}); delete it and run again.") from error


def load(folder: Path) -> ImageTask:
    """Read the files of a task."""
    return ImageTask(folder)


def samples(folder: Path, parent: pd.DataFrame, parent_folder: Path) -> pd.DataFrame:
    """Return the images of the task, with paths relative to its own folder, and their split."""
    task = load(folder)
    splits = {identifier: split for split, ids in task.ids.items() for identifier in ids}
    frame = parent[parent["id"].isin(splits)][["id", "image", "sha256"]].copy()
    prefix = os.path.relpath(parent_folder, folder.parent)
    frame["image"] = [f"{prefix}/{name}" for name in frame["image"]]
    frame["split"] = frame["id"].map(splits)
    return frame


def gold(task: ImageTask) -> list[Any]:
    """Return the true label of every item, in the order of ``Score.items``."""
    splits = ("train", "test") if task.options["folds"] else ("test",)
    return [int(label) for split in splits for label in task.labels[split]]


def item_kind(task: ImageTask) -> str:
    """Return what the items of the task are."""
    return ITEM_KINDS[task.type]


def benchmark(_task: ImageTask) -> dict[str, Any]:
    """Return nothing: no evaluator of mteb scores the task."""
    return {}


def score(task: ImageTask, rows: Mapping[str, int], vectors: Vectors) -> Score:
    """Score vectors (N, D), whose row of an image is ``rows[id]``.

    Protocols: ``knn``, ten neighbours by cosine, from the train rows to the test rows; ``standardised``, the linear
    probe (cross-validated over all rows where the task has ``folds``), whose outcomes are the items.

    Raises:
        DataError: an image of the task has no vector.
    """
    absent = next((i for ids in task.ids.values() for i in ids if i not in rows), None)
    if absent is not None:
        raise DataError(f"task {task.name!r} asks for image {absent!r}, which its activation file does not hold; run again.")
    train, test = (vectors[[rows[identifier] for identifier in task.ids[split]]] for split in ("train", "test"))
    labels, folds, seed = task.labels, task.options["folds"], task.options["seed"]
    neighbours = KNeighborsClassifier(min(NEIGHBOURS, len(train)), weights="distance").fit(normalize(train), labels["train"])
    knn = float(np.mean(neighbours.predict(normalize(test)) == labels["test"]))
    if folds:
        together = np.concatenate([labels["train"], labels["test"]])
        items = cross_validated_probe(np.vstack([train, test]), together, folds, seed)
    else:
        items = linear_probe(train, labels["train"], test, labels["test"], seed)
    return Score({"knn": knn, "standardised": float(items.mean())}, 0, [float(item) for item in items])


def baselines(task: ImageTask, frame: pd.DataFrame, folder: Path) -> list[dict[str, Any]]:
    """Return majority, and raw pixels (32 x 32, RGB) under every protocol."""
    pixels = np.stack([_pixels(folder / name) for name in frame["image"]])
    scores = score(task, {identifier: row for row, identifier in enumerate(frame["id"])}, pixels).scores
    train = task.labels["train"].tolist()
    commonest = max(sorted(set(train)), key=train.count)
    majority = float(np.mean(task.labels["test"] == commonest))
    return [
        {"baseline": name, "protocol": protocol, "score": value}
        for protocol, own in scores.items()
        for name, value in (("majority", majority), ("raw_pixels", own))
    ]


def _pixels(path: Path) -> Vectors:
    return np.asarray(open_image(path).resize((_PIXELS, _PIXELS)), dtype=np.float64).ravel() / 255.0
