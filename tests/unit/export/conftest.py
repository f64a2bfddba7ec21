"""An export of a tiny model, compared with vectors that extraction made."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.activations.extract import Request as Extraction
from layerwise.activations.extract import extract
from layerwise.export import run as export_run
from layerwise.export.run import Request, Stored, export
from layerwise.models.manifest import describe
from layerwise.models.registry import load_loader
from layerwise.records import read_record
from layerwise.store import Activations

from tests import builders, vision_builders

READOUTS: dict[str, dict[str, str]] = {
    "mean": {"norm": "none", "tokens": "all", "pool": "mean"},
    "mean_normed": {"norm": "final", "tokens": "all", "pool": "mean"},
    "weighted_mean": {"norm": "none", "tokens": "all", "pool": "weighted_mean"},
    "weighted_normed": {"norm": "final", "tokens": "all", "pool": "weighted_mean"},
    "last_normed": {"norm": "final", "tokens": "all", "pool": "last"},
    "first_normed": {"norm": "final", "tokens": "all", "pool": "first"},
    "content": {"norm": "final", "tokens": "content", "pool": "mean"},
    "content_weighted": {"norm": "final", "tokens": "content", "pool": "weighted_mean"},
}
READOUTS = {name: {"name": name, **readout} for name, readout in READOUTS.items()}
ENTRY = {"dtype": "float32", "attention": "model", "max_tokens": 24, "preprocessing": "model", "image_size": None}


@dataclasses.dataclass
class Bench:
    """A tiny model in a folder, its stored vectors, and exports of it."""

    folder: Path
    loader: str
    entry: dict[str, Any]
    samples: pd.DataFrame
    where: Path
    target: Path

    def export(self, layer: int, readout: str, **changes: Any) -> dict[str, Any]:
        """Export and return the manifest; ``changes`` are of the request or the stored vectors."""
        request, stored = self.request(layer, readout), self.stored(layer, readout)
        for key, value in changes.items():
            part = request if hasattr(request, key) else stored
            object.__setattr__(part, key, value)
        export(self.target / "manifest.json", self.load(), self.folder, request, stored)
        return read_record(self.target / "manifest.json")

    def load(self) -> Any:
        return load_loader(self.loader).load_entry(self.folder, self.entry, "cpu")

    def request(self, layer: int, readout: str) -> Request:
        base = {"name": "tiny", "source": {"path": "x"}, "revision": None, "digest": "d" * 64, "licence": "mit"}
        base |= describe(self.folder)
        scores = {"topic": {"layer": 0.9, "last": 0.8}}
        what = "cut", self.loader, self.entry["dtype"], layer, "given in the configuration", READOUTS[readout]
        return Request(*what, base, scores, {"code": "0" * 16})

    def stored(self, layer: int, readout: str) -> Stored:
        file = self.target.parent / "stored.h5"
        if not file.is_file():
            facts = {"model": "tiny", "model_revision": "d", "dataset": "texts", "dataset_digest": "e", "provenance": {}}
            asked = Extraction(dtype=self.entry["dtype"], readouts=[*READOUTS.values()], recipes=[], **facts)
            extract(file, self.load(), self.samples, self.where, asked, lambda *_: None)
        with Activations(file) as store:
            return Stored("texts", self.samples, self.where, store.rows(readout, layer), False)

    @property
    def model(self) -> Path:
        return self.target / export_run.MODEL


@pytest.fixture
def text_bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(family: str, **entry: Any) -> Bench:
        folder = builders.save(tmp_path / family, family)
        samples = builders.samples([5, 9, 1, 30, 7, 12, 3, 20])
        return Bench(folder, "text", ENTRY | {"name": "tiny"} | entry, samples, tmp_path, tmp_path / "export")

    return make


@pytest.fixture
def vision_bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(family: str, **entry: Any) -> Bench:
        folder = vision_builders.save(tmp_path / family, family)
        samples = vision_builders.FRAME.head(6)
        frame = samples.assign(id=samples["image"], source_id=samples["image"], view=0, split="test")
        pictures = tmp_path / "pictures"
        pictures.mkdir()
        vision_builders.paint(pictures)
        full = ENTRY | {"name": "tiny"} | entry
        return Bench(folder, vision_builders.loader(family), full, frame, pictures, tmp_path / "export")

    return make


def largest_difference(found: np.ndarray, stored: Stored) -> float:
    return float(np.abs(np.asarray(found, dtype=float) - stored.vectors).max() / np.abs(stored.vectors).max())
