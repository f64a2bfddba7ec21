"""Image tasks of the attention probe, which reads tokens and so is trained while the model runs, not looked up."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from layerwise.errors import DataError
from layerwise.images import open_image
from layerwise.progress import Progress
from layerwise.tasks.attention_probe import OnLayer, Pass, Probed, Training, train_and_test
from layerwise.tasks.files import read_rows
from layerwise.tasks.image_task import ImageTask
from layerwise.tasks.image_task import gold as gold
from layerwise.tasks.image_task import samples as samples

ITEM_KINDS = {"attention_probe": "correct"}
VERSIONS = ("torch",)
PROTOCOL, READOUT = "attention_probe", "attention"
_PIXELS = 16


def load(folder: Path) -> ImageTask:
    """Read the files of a task.

    Raises:
        FileError: a file is missing or damaged.
        DataError: a class has one train image only.
    """
    task = ImageTask(folder)
    classes, counts = np.unique(task.labels["train"], return_counts=True)
    if counts.min() < 2:
        code = classes[counts.argmin()]
        rare = next(row.get("label_name", code) for row in read_rows(folder / "train.jsonl") if row["label"] == code)
        raise DataError(
            f"task {task.name!r}: class {rare!r} has one train image, an attention probe needs two; raise 'train' or add "
            "images of it."
        )
    return task


def images(task: ImageTask, samples: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return the rows of samples.parquet that the task asks for, its train images first, and their (N,) classes.

    Raises:
        DataError: an image of the task is not there.
    """
    ids = task.ids["train"] + task.ids["test"]
    absent = sorted(set(ids) - set(samples["id"]))
    if absent:
        raise DataError(f"task {task.name!r} asks for image {absent[0]!r}, which its dataset does not hold; run again.")
    labels = np.concatenate([task.labels["train"], task.labels["test"]])
    return samples.set_index("id", drop=False).loc[ids].reset_index(drop=True), labels


def training(task: ImageTask) -> Training:
    """Return how the config says to train."""
    options = task.options
    names = ("epochs", "batch", "learning_rate", "weight_decay", "heads")
    return Training(tuple(options["seeds"]), options["seed"], **{name: options[name] for name in names})


def result(task: ImageTask, probed: Probed) -> dict[str, Any]:
    """Return the parts of a task's record that the probes give: ``readouts``, ``items`` and ``probe``.

    The score of a layer is the mean accuracy over seeds, its ``standard_error`` that of this mean over seeds (None for
    one seed); an item is the share of seeds that are right about the image.
    """
    last, accuracy = len(probed.correct) - 1, probed.correct.mean(axis=2)
    n_seeds = accuracy.shape[1]
    layers = [
        {
            "layer": layer,
            "depth": layer / last,
            "main_score": float(scores.mean()),
            "scores": {PROTOCOL: float(scores.mean())},
            "standard_error": float(scores.std(ddof=1) / n_seeds**0.5) if n_seeds > 1 else None,
            "seed_scores": scores.tolist(),
            "train_loss": probed.train_loss[layer].tolist(),
        }
        for layer, scores in enumerate(accuracy)
    ]
    items = probed.correct.mean(axis=1).round(6).tolist()
    names = ("seeds", "epochs", "batch", "learning_rate", "weight_decay")
    facts = {"tokens": "all", "heads": probed.heads} | {name: task.options[name] for name in names}
    kept = {"protocol": PROTOCOL, "kind": ITEM_KINDS[task.type], "gold": gold(task), "readouts": {READOUT: items}}
    return {"readouts": {READOUT: layers}, "items": kept, "probe": facts | {"n_train": len(task.labels["train"])}}


def baselines(task: ImageTask, frame: pd.DataFrame, folder: Path) -> list[dict[str, Any]]:
    """Return majority, and raw pixels: the same probe, trained in the same way, on one token of 16 x 16 x 3 values."""
    train = task.labels["train"].tolist()
    commonest = max(sorted(set(train)), key=train.count)
    found_images, labels = images(task, frame)
    paths = [folder / name for name in found_images["image"]]
    found = train_and_test(_pixels(paths), labels, len(train), training(task), Progress("baseline raw_pixels"))
    values = {
        "majority": float(np.mean(task.labels["test"] == commonest)),
        "raw_pixels": float(found.correct.mean()),
    }
    return [{"baseline": name, "protocol": PROTOCOL, "score": value} for name, value in values.items()]


def _pixels(paths: list[Path]) -> Pass:
    def run(rows: list[int], on_layer: OnLayer) -> None:
        opened = [np.asarray(open_image(paths[row]).resize((_PIXELS, _PIXELS)), dtype=np.float32) for row in rows]
        on_layer(0, torch.from_numpy(np.stack(opened)).flatten(1)[:, None])

    return run
