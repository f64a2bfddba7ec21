"""manifest.json of a model: what its files are and where they came from; loaders check the files against it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from layerwise.errors import ModelError
from layerwise.models.configs import read_mapping, refuse_code
from layerwise.models.weight_files import count_parameters
from layerwise.packages import file_digest
from layerwise.records import read_record

WEIGHTS = "weights"
_OPEN_CLIP = "open_clip_config.json"
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "layers")
_WIDTH = ("hidden_size", "n_embd", "d_model", "dim", "width", "num_features")


def describe(folder: Path) -> dict[str, Any]:
    """Return architecture, layers, hidden size, number of parameters, and the sha256 and size of every file.

    Args:
        folder: a Hugging Face, timm or OpenCLIP folder. What its configuration does not say is None.

    Raises:
        ModelError: no configuration, one that asks for code from outside, or weights that are missing or damaged.
    """
    clip = not (folder / "config.json").exists() and (folder / _OPEN_CLIP).is_file()
    config = read_mapping(folder / (_OPEN_CLIP if clip else "config.json"))
    refuse_code(sorted(folder.rglob("*")))
    files = {
        str(file.relative_to(folder)): {"sha256": file_digest(file), "bytes": file.stat().st_size}
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    if not any(name.endswith(".safetensors") for name in files):
        raise ModelError(f"{folder} holds no .safetensors file; convert the weights (pickle formats are never loaded).")
    sizes = _part(config, "model_cfg", "vision_cfg") if clip else config
    classes = config.get("architectures")
    named = classes[0] if isinstance(classes, list) and classes else config.get("architecture") or config.get("model_type")
    return {
        "architecture": "open_clip" if clip else named,
        "model_type": config.get("model_type"),
        "n_layers": _number(sizes, _LAYERS),
        "hidden_size": _number(sizes, _WIDTH),
        "parameters": count_parameters(folder),
        "files": files,
    }


def _part(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        inner = config.get(key)
        config = inner if isinstance(inner, dict) else {}
    return config


def _number(config: dict[str, Any], keys: Iterable[str]) -> int | None:
    return next((config[key] for key in keys if type(config.get(key)) is int), None)


def verified_weights(manifest: Path) -> tuple[Path, dict[str, Any]]:
    """Return the weights folder beside ``manifest`` and the manifest, after checking every file's size and sha256.

    Raises:
        ModelError: a file is missing or altered.
    """
    record = read_record(manifest, "name", "source", "digest", "files")
    folder = manifest.parent / WEIGHTS
    for name, expected in record["files"].items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != expected["bytes"] or file_digest(file) != expected["sha256"]:
            raise ModelError(f"{file} is missing or altered since it was downloaded; delete {manifest} and run again.")
    return folder, record
