"""Bring the files of a model into results/models/{model}/weights, whatever its source."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from layerwise.errors import ModelError
from layerwise.models import dinov2_onnx, gguf
from layerwise.models.manifest import WEIGHTS, describe, verified_weights
from layerwise.packages import package_path, package_version
from layerwise.records import write_record

_NEEDED = (".json", ".safetensors", ".txt", ".model", ".jinja", ".md")
_REFUSED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")


def download(manifest: Path, name: str, source: dict[str, Any], twin: Path | None = None) -> None:
    """Make ``weights/`` beside ``manifest`` and write the manifest last.

    Args:
        manifest: results/models/{name}/manifest.json.
        name: of the model.
        source: the config's entry: ``{path: FOLDER}`` or ``{package: NAME, folder | file: PATH}`` or
            ``{random: {like: MODEL, seed: N}}``.
        twin: manifest of the model that a random one is like.

    Raises:
        ModelError, DataError: the source is missing, damaged or of a refused kind.
    """
    folder = manifest.parent / WEIGHTS
    building = manifest.parent / f".{WEIGHTS}.building"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        facts = _untrained(building, source, twin) if twin is not None else _fill(building, source)
        facts |= describe(building)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(building, folder)
    listing = "".join(f"{path}\x1f{file['sha256']}\x1e" for path, file in sorted(facts["files"].items()))
    digest = hashlib.sha256(listing.encode()).hexdigest()
    write_record(manifest, {"name": name, "source": source, "digest": digest, **facts})


def _untrained(building: Path, source: dict[str, Any], twin: Path) -> dict[str, Any]:
    from layerwise.models import untrained

    weights, record = verified_weights(twin)
    conversion = untrained.build(weights, source["random"]["seed"], building)
    return {"revision": f"random:{record['digest'][:16]}", "conversion": conversion, "licence": None}


def _fill(building: Path, source: dict[str, Any]) -> dict[str, Any]:
    if source.get("path"):
        origin = Path(source["path"]).expanduser()
        if not origin.is_dir():
            raise ModelError(f"model folder {str(origin)!r} does not exist (looked in {Path.cwd()}).")
        _link_files(origin, building)
        return {"revision": None, "conversion": None, "licence": _licence(building)}
    version = package_version(source["package"])
    if source.get("file"):
        convert = dinov2_onnx.convert if source["file"].endswith(".onnx") else gguf.convert
        conversion = convert(package_path(source["package"], source["file"]), building)
    else:
        _link_files(package_path(source["package"], source["folder"]), building)
        conversion = None
    return {
        "revision": f"{source['package']}=={version}",
        "conversion": conversion,
        "licence": (conversion or {}).get("licence") or _licence(building),
    }


def _link_files(origin: Path, building: Path) -> None:
    """Link the files a loader needs (copy across file systems), refusing a folder that has pickled weights only."""
    if not origin.is_dir():
        raise ModelError(f"{origin} is not a folder; a Hugging Face folder is needed ('file:' takes a .gguf).")
    files = [file for file in sorted(origin.iterdir()) if file.is_file() and not file.name.startswith(".")]
    safe = [file for file in files if file.suffix in _NEEDED]
    pickled = [file.name for file in files if file.suffix in _REFUSED]
    if pickled and not any(file.suffix == ".safetensors" for file in safe):
        raise ModelError(f"{origin} holds pickled weights only ({pickled[0]}), which can run code; convert to safetensors.")
    for file in safe:
        try:
            os.link(file.resolve(), building / file.name)
        except OSError:
            shutil.copyfile(file, building / file.name)


def _licence(folder: Path) -> str | None:
    """The licence that the model card's front matter states."""
    card = folder / "README.md"
    lines = card.read_text("utf-8").splitlines()[:60] if card.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("license:")), None)
