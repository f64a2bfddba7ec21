"""Bring the files of a model into results/models/{model}/weights, whatever its source."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from layerwise.atomic import room_for
from layerwise.checkpoints import FOLDER, folder_name
from layerwise.errors import ModelError
from layerwise.models import dinov2_onnx, gguf
from layerwise.models.hub_choice import ADAPTER, PICKLED
from layerwise.models.manifest import WEIGHTS, describe, verified_weights
from layerwise.packages import file_digest, package_path, package_version
from layerwise.records import read_record, write_record

_PICKLED_ONLY = "{} holds pickled weights only ({}), which can run code; convert to safetensors."
_NEEDED = (".json", ".safetensors", ".txt", ".model", ".jinja", ".md")


def download(manifest: Path, name: str, source: dict[str, Any], parent: Path | None = None, loader: str = "text") -> None:
    """Make ``weights/`` beside ``manifest`` and write the manifest last.

    Args:
        manifest: results/models/{name}/manifest.json.
        name: of the model.
        source: the config's entry: ``{path: FOLDER}``, ``{hub: ORG/NAME, revision: ...}``, either with ``adapters: [...]``,
            ``{package: NAME, folder | file: PATH}``, ``{random: {like: MODEL, seed: N}}`` or ``{train: {...}, step: N}``.
        parent: manifest of the model that a random one is like, or training.json of the run that a checkpoint is of.
        loader: the config's word: decides which files of a hub repository are needed.

    Raises:
        ModelError, DataError: the source is missing, damaged or of a refused kind.
        FileError: the disk is full.
    """
    folder = manifest.parent / WEIGHTS
    building, parts = (manifest.parent / f".{WEIGHTS}.{stage}" for stage in ("building", "parts"))
    try:
        with room_for(manifest):
            for temporary in (building, parts):
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir(parents=True)
            if parent is not None:
                facts = (_untrained if source.get("random") else _checkpoint)(building, source, parent)
            elif source.get("adapters"):
                facts = _adapted(building, parts, name, source, loader)
            else:
                facts = _fill(building, name, source, loader)
            facts |= describe(building)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(building, folder)
    finally:
        for temporary in (building, parts):
            shutil.rmtree(temporary, ignore_errors=True)
    listing = "".join(f"{path}\x1f{file['sha256']}\x1e" for path, file in sorted(facts["files"].items()))
    digest = hashlib.sha256(listing.encode()).hexdigest()
    write_record(manifest, {"name": name, "source": source, "digest": digest, **facts})


def _untrained(building: Path, source: dict[str, Any], twin: Path) -> dict[str, Any]:
    from layerwise.models import untrained

    weights, record = verified_weights(twin)
    conversion = untrained.build(weights, source["random"]["seed"], building)
    return {"revision": f"random:{record['digest'][:16]}", "conversion": conversion, "licence": None}


def _checkpoint(building: Path, source: dict[str, Any], record: Path) -> dict[str, Any]:
    """A checkpoint of a run, whose files must still be those that training wrote."""
    facts = read_record(record, "name", "objective", "options", "checkpoints")
    found = next((point for point in facts["checkpoints"] if point["step"] == source["step"]), None)
    folder = record.parent / FOLDER / folder_name(source["step"])
    wanted = found["files"] if found else {}
    damaged = [name for name, sha256 in wanted.items() if not _is(folder / name, sha256)]
    if found is None or damaged:
        what = damaged[0] if damaged else "of step " + str(source["step"])
        raise ModelError(f"checkpoint {folder} {what} is missing or altered; delete {record} and run again.")
    _link_files(folder, building)
    kept = {key: found[key] for key in ("step", "train_loss", "heldout_loss")}
    origin = {"from": "training", "run": facts["name"], "objective": facts["objective"], "seed": facts["options"]["seed"]}
    return {"revision": f"training:{file_digest(record)[:16]}", "conversion": {**origin, **kept}, "licence": None}


def _is(file: Path, sha256: str) -> bool:
    return file.is_file() and file_digest(file) == sha256


def _adapted(building: Path, parts: Path, name: str, source: dict[str, Any], loader: str) -> dict[str, Any]:
    """A model with adapters merged into it; the parts are fetched before the first is opened."""
    from layerwise.models import adapters

    base = parts / "base"
    base.mkdir()
    facts = _fill(base, name, source, loader)
    folders: list[tuple[str, Path]] = []
    recorded: list[dict[str, Any]] = []
    for i, entry in enumerate(source["adapters"]):
        folder = parts / f"adapter-{i}"
        folder.mkdir()
        folders.append((entry.get("hub") or entry["path"], folder))
        origin = _fill_adapter(folder, name, entry)
        sums = {file: file_digest(folder / file) for file in ADAPTER if (folder / file).is_file()}
        recorded.append({**entry, **origin, "files": sums})
    describe(base)
    merged = adapters.merge(base, folders, building)
    return facts | {"conversion": {"from": "adapters", "adapters": recorded, **merged}}


def _fill_adapter(folder: Path, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    if entry.get("hub"):
        return _fill_from_hub(folder, name, entry, "adapter")
    origin = Path(entry["path"]).expanduser()
    if not origin.is_dir():
        raise ModelError(f"adapter folder {str(origin)!r} does not exist (looked in {Path.cwd()}).")
    for file in origin.iterdir():
        if file.name in ADAPTER:
            _link(file, folder / file.name)
        elif file.name.endswith(PICKLED) and not (origin / ADAPTER[1]).is_file():
            raise ModelError(_PICKLED_ONLY.format(origin, file.name))
    return {}


def _fill(building: Path, name: str, source: dict[str, Any], loader: str) -> dict[str, Any]:
    if source.get("hub"):
        facts = _fill_from_hub(building, name, source, loader)
        return {**facts, "conversion": None, "licence": _licence(building)}
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


def _fill_from_hub(building: Path, name: str, source: dict[str, Any], loader: str) -> dict[str, Any]:
    from layerwise.models import hub  # here, so that other sources start without it

    files, facts = hub.fetch(hub.Repository(source["hub"], source.get("revision") or "main", loader, name))
    for file, path in files.items():
        _link(path, building / file)
    return facts


def _link_files(origin: Path, building: Path) -> None:
    """Link the files a loader needs (copy across file systems), refusing a folder that has pickled weights only."""
    if not origin.is_dir():
        raise ModelError(f"{origin} is not a folder; a Hugging Face folder is needed ('file:' takes a .gguf).")
    files = [file for file in sorted(origin.iterdir()) if file.is_file() and not file.name.startswith(".")]
    # transformers would apply an adapter that lies beside the weights, unasked.
    safe = [file for file in files if file.suffix in _NEEDED and file.name not in ADAPTER]
    pickled = [file.name for file in files if file.name.endswith(PICKLED)]
    if not any(file.suffix == ".safetensors" for file in safe):
        if pickled:
            raise ModelError(_PICKLED_ONLY.format(origin, pickled[0]))
        if any(file.name in ADAPTER for file in files):
            raise ModelError(f"{origin} is an adapter; give the model it was trained on, and this under 'adapters'.")
    for file in safe:
        _link(file, building / file.name)


def _link(file: Path, target: Path) -> None:
    try:
        os.link(file.resolve(), target)
    except OSError:
        shutil.copyfile(file, target)


def _licence(folder: Path) -> str | None:
    """The licence that the model card's front matter states."""
    card = folder / "README.md"
    lines = card.read_text("utf-8").splitlines()[:60] if card.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("license:")), None)
