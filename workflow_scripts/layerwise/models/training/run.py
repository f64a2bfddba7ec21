"""One training run: every checkpoint as a model folder, and training.json last, which says what each holds."""

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from layerwise.checkpoints import FOLDER, folder_name
from layerwise.errors import LayerwiseError
from layerwise.models.training.loop import Losses, Schedule, fit
from layerwise.models.training.registry import load_objective
from layerwise.packages import file_digest
from layerwise.records import write_record


@dataclasses.dataclass(frozen=True)
class Run:
    """What is trained, for the record.

    Attributes:
        name: of the run; its checkpoints are the models ``{name}@step{K}``.
        options: the config's entry (``config_training.TrainSource``).
        dataset_digest: of the samples.
        provenance: of the code.
    """

    name: str
    options: dict[str, Any]
    dataset_digest: str
    provenance: dict[str, Any]


def train(
    record: Path, run: Run, samples: pd.DataFrame, folder: Path, progress: Callable[[int, int], None] | None = None
) -> None:
    """Train a miniature and write ``checkpoints/step{K}`` beside ``record``, then ``record``.

    The same run gives the same bytes with the same number of threads and the same versions.

    Args:
        record: results/models/{name}/training.json.
        run: see there.
        samples: of the dataset.
        folder: of samples.parquet, to which paths of images are relative.
        progress: called with (done, total) steps.

    Raises:
        ModelError: the run diverges; DataError: labels that are not there. Nothing is left then, not even the checkpoints
            of an earlier run.
    """
    final, building = record.parent / FOLDER, record.parent / f".{FOLDER}.building"
    options = run.options
    for leftover in (final, building):
        shutil.rmtree(leftover, ignore_errors=True)
    building.mkdir(parents=True)
    saved: list[dict[str, Any]] = []
    try:
        objective = load_objective(options["objective"]).build(samples, folder, options)

        def keep(losses: Losses) -> None:
            place = building / folder_name(losses.step)
            place.mkdir()
            objective.save(place)
            files = {file.name: file_digest(file) for file in sorted(place.iterdir())}
            saved.append({**dataclasses.asdict(losses), "files": files})

        points = tuple(options["checkpoints"])
        schedule = Schedule(options["steps"], points, options["batch"], options["learning_rate"], options["seed"])
        trained_on, held_out = fit(objective, schedule, keep, progress)
        os.replace(building, final)
    except LayerwiseError as error:
        raise type(error)(f"{options['objective']} on {options['dataset']!r}: {error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    facts = {
        "name": run.name,
        "objective": options["objective"],
        "dataset": options["dataset"],
        "dataset_digest": run.dataset_digest,
        "options": options,
        "parameters": sum(parameter.numel() for parameter in objective.module.parameters()),
        "n_train": trained_on,
        "n_heldout": held_out,
        "threads": torch.get_num_threads(),
        "provenance": run.provenance,
        "checkpoints": saved,
    }
    write_record(record, facts)
