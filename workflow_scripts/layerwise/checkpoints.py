"""Checkpoints of a training run, which are models named ``NAME@stepN``, whether trained here or of the hub."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from layerwise.errors import ConfigError

FOLDER = "checkpoints"  # beside training.json
_NAME = re.compile(r"(?P<run>.+)@step(?P<step>[0-9]{1,12})")


class Checkpoint(NamedTuple):
    """A model as the state of a run after so many steps."""

    run: str
    step: int


def folder_name(step: int) -> str:
    """Return the name of the folder in ``FOLDER`` that holds the model after ``step`` steps."""
    return f"step{step}"


def checkpoint_name(run: str, step: int) -> str:
    """Return the name of the model that ``run`` is after ``step`` steps."""
    return f"{run}@step{step}"


def checkpoint(model: str) -> Checkpoint | None:
    """Return what the name of a model says; None where it is no checkpoint's."""
    found = _NAME.fullmatch(model)
    return Checkpoint(found["run"], int(found["step"])) if found else None


def run_of(model: str) -> str:
    """Return the run that a model is a checkpoint of.

    Raises:
        ConfigError: its name is no checkpoint's.
    """
    found = checkpoint(model)
    if found is None:
        raise ConfigError(f"model {model!r} is no checkpoint of a run; its name would be NAME@stepN.")
    return found.run


def runs(models: Iterable[str]) -> dict[str, dict[int, str]]:
    """Return the runs with two checkpoints or more among ``models``: run to step to model, steps ascending."""
    found: dict[str, dict[int, str]] = {}
    for model in dict.fromkeys(models):
        point = checkpoint(model)
        if point is not None:
            found.setdefault(point.run, {}).setdefault(point.step, model)
    return {run: dict(sorted(steps.items())) for run, steps in found.items() if len(steps) > 1}


def finals(models: Iterable[str]) -> dict[str, str]:
    """Return every checkpoint of a run of two or more, the last one included, with the last one's name."""
    return {model: list(steps.values())[-1] for steps in runs(models).values() for model in steps.values()}


def earlier(models: Iterable[str]) -> set[str]:
    """Return the checkpoints that are not the last of their run."""
    return {model for model, last in finals(models).items() if model != last}
