"""A tiny model on the disk and an extraction that takes long enough to be stopped."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from layerwise.activations import extract as module
from layerwise.activations.extract import Request, extract
from layerwise.models.text import TextModel, load

from tests import builders

READOUTS = [
    {"name": "mean", "norm": "none", "tokens": "all", "pool": "mean"},
    {"name": "mean_normed", "norm": "final", "tokens": "all", "pool": "mean"},
]
RECIPES = ["raw", "centre_unit"]
Extraction = Callable[..., None]


def request(**changes: Any) -> Request:
    """What to collect; batches of one row, so that there are many moments to stop at."""
    facts = {
        "model": "m",
        "model_revision": "r",
        "dtype": "float32",
        "dataset": "d",
        "dataset_digest": "x",
        "provenance": {},
    }
    return Request(**facts | {"readouts": READOUTS, "recipes": RECIPES, "batch_tokens": 1} | changes)


def quiet(_done: int, _total: int) -> None:
    """Print no progress."""


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Llama of three layers with random weights."""
    return builders.save(tmp_path_factory.mktemp("model"), "llama")


@pytest.fixture(scope="session")
def model(weights: Path) -> TextModel:
    """The same, loaded."""
    return load(weights, name="m", dtype="float32", max_tokens=24, device="cpu")


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Fifty samples of different lengths."""
    return builders.samples([1 + 7 * i % 23 for i in range(50)])


@pytest.fixture(scope="module")
def extraction(model: TextModel, frame: pd.DataFrame) -> Iterator[Extraction]:
    """Write an activation file in several windows."""

    def run(path: Path, progress: Callable[[int, int], None] = quiet, samples: pd.DataFrame = frame, **changes: Any) -> None:
        extract(path, model, samples, path.parent, request(**changes), progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "windows", functools.partial(module.windows, budget=60_000))
        yield run
