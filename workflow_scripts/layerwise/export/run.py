"""One export: cut, write, load as a user would, compare with the stored vectors, and only then say that it is there."""

import dataclasses
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from layerwise.errors import ModelError
from layerwise.export import timing
from layerwise.export.card import card
from layerwise.export.cut import parameters, shortened
from layerwise.export.form import Form, form, tolerance
from layerwise.export.registry import load_folder
from layerwise.packages import file_digest
from layerwise.records import write_record

MODEL = "model"
SAMPLES, TIMED = 16, 2


@dataclasses.dataclass(frozen=True)
class Request:
    """What is exported and where it comes from.

    Attributes:
        name: of the export. loader, dtype: the config's words.
        layer: after which the model is cut. chosen: a sentence on how it was chosen.
        readout: the config's entry.
        base: manifest of the whole model.
        scores: task -> score at the layer and at the last.
        provenance: of the code.
    """

    name: str
    loader: str
    dtype: str
    layer: int
    chosen: str
    readout: Mapping[str, str]
    base: dict[str, Any]
    scores: dict[str, dict[str, Any]]
    provenance: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Stored:
    """Vectors of the study that the export must give again.

    Attributes:
        dataset: whose. samples: (N) rows of samples.parquet. where: the folder that image paths are relative to.
        vectors: (N, D). half: they are stored in float16.
    """

    dataset: str
    samples: pd.DataFrame
    where: Path
    vectors: NDArray[np.float64]
    half: bool


def export(manifest: Path, loaded: Any, source: Path, request: Request, stored: Stored) -> None:  # noqa: ANN401 - a LayeredModel
    """Write ``model/`` beside ``manifest``, and the manifest last; killed before that, nothing looks whole.

    Args:
        manifest: results/export/{name}/manifest.json.
        loaded: the whole model, on the CPU; it is cut here.
        source: the folder it was loaded from.
        request: see ``Request``.
        stored: see ``Stored``.

    Raises:
        ModelError: no standard folder gives this readout of this layer, or the one written gives other vectors.
    """
    final, building = manifest.parent / MODEL, manifest.parent / f".{MODEL}.building"
    manifest.unlink(missing_ok=True)
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    modality = "text" if request.loader == "text" else "image"
    shape = form(request.layer, loaded.n_layers, request.readout, loaded.final_norm is not None, modality)
    facts: dict[str, Any] = {"parameters": {"before": parameters(loaded.module)}, "width": int(loaded.width)}
    try:
        facts["seconds"] = _seconds(loaded, shape, stored)
        folder = load_folder(request.loader)
        known = folder.write(building, loaded, shape, source)
        facts["parameters"]["after"] = parameters(loaded.module)
        loaded.module = loaded.stack = loaded.final_norm = None  # its memory, before the cut one is loaded beside it
        facts["verified"] = _verified(folder, building, shape, known, request, stored)
        facts |= _facts(request, shape, stored, building)
        code, note = folder.usage(f"results/export/{request.name}/{MODEL}", shape, known)
        (building / "README.md").write_text(card(facts, shape, folder.LIBRARY, code, note), "utf-8")
        for file in building.glob("*.safetensors"):
            file.chmod(0o644)  # its library lets nobody else read it
        shutil.rmtree(final, ignore_errors=True)
        os.replace(building, final)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    files = {
        str(file.relative_to(final)): {"sha256": file_digest(file), "bytes": file.stat().st_size}
        for file in sorted(final.rglob("*"))
        if file.is_file()
    }
    write_record(manifest, {**facts, "library": folder.LIBRARY, "files": files, "provenance": request.provenance})


def _facts(request: Request, shape: Form, stored: Stored, building: Path) -> dict[str, Any]:
    base = request.base
    before = sum(file["bytes"] for name, file in base["files"].items() if name.endswith(".safetensors"))
    return {
        "name": request.name,
        "base_model": {key: base.get(key) for key in ("name", "source", "revision", "digest", "licence")},
        "layer": shape.layer,
        "n_layers": shape.n_layers,
        "blocks": shape.kept,
        "depth": shape.layer / shape.n_layers,
        "chosen": request.chosen,
        "readout": dict(shape.readout),
        "dtype": request.dtype,
        "scores": request.scores,
        "bytes": {"before": before, "after": sum(file.stat().st_size for file in building.glob("*.safetensors"))},
        "timed": min(TIMED, len(stored.samples)),
        "unit": "text" if request.loader == "text" else "image",
    }


def _seconds(loaded: Any, shape: Form, stored: Stored) -> dict[str, float]:  # noqa: ANN401 - a LayeredModel
    """Median seconds of a forward pass over a few samples, whole and cut."""
    inputs = loaded.prepare(stored.samples.head(TIMED), stored.where)
    batch = inputs.batch(list(range(len(inputs.lengths))))

    def run() -> None:
        loaded.run(batch, _ignore)

    return timing.in_turns(run, lambda: shortened(loaded.module, loaded.stack, shape.kept))


def _ignore(_layer: int, _states: torch.Tensor) -> None:
    """Read nothing."""


def _verified(
    folder: Any,  # noqa: ANN401 - a module of this package
    building: Path,
    shape: Form,
    known: dict[str, Any],
    request: Request,
    stored: Stored,
) -> dict[str, Any]:
    """Load what was written as a user does and compare its vectors with the stored ones."""
    place = f"export {request.name!r} (layer {shape.layer}, readout {shape.name!r})"
    try:
        found, dtype = folder.vectors(building, stored.samples, stored.where, shape, known)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{place}: what was written does not load ({type(error).__name__}: {reason}); this kind of model cannot be "
            f"exported with {folder.LIBRARY} yet: take the entry out of 'export'."
        ) from error
    if dtype != request.dtype:
        raise ModelError(
            f"{place}: the folder loads in {dtype}, the vectors were made in {request.dtype}; write that dtype."
        )
    if found.shape != stored.vectors.shape:
        raise ModelError(f"{place}: it gives vectors of shape {found.shape}, {stored.vectors.shape} are stored.")
    allowed = tolerance(request.dtype, stored.half)
    difference = float(np.abs(found - stored.vectors).max() / np.abs(stored.vectors).max())
    if not difference <= allowed:
        raise ModelError(
            f"{place}: its vectors differ from the stored ones by {difference:.1e} of the largest number, {allowed:.0e} is "
            "allowed; write another readout, or 'dtype: float32' and 'device: cpu' for the model."
        )
    return {"dataset": stored.dataset, "samples": len(found), "difference": difference, "allowed": allowed}
