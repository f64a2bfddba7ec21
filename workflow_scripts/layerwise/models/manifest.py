"""manifest.json of a model: what its files are and where they came from; loaders check the files against it."""

import json
from pathlib import Path
from typing import Any

from layerwise.errors import ModelError
from layerwise.packages import file_digest
from layerwise.records import read_record

WEIGHTS = "weights"


def describe(folder: Path) -> dict[str, Any]:
    """Return architecture, layers, hidden size and the sha256 and size of every file below ``folder``.

    Raises:
        ModelError: no config.json, or one that asks for code from outside.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} holds no readable config.json ({error}); a Hugging Face folder is needed.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} holds a {type(config).__name__}, not a mapping; a Hugging Face folder is needed.")
    refuse_code(config, folder)
    files = {
        str(file.relative_to(folder)): {"sha256": file_digest(file), "bytes": file.stat().st_size}
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    if not any(name.endswith(".safetensors") for name in files):
        raise ModelError(f"{folder} holds no .safetensors file; convert the weights (pickle formats are never loaded).")
    return {
        "architecture": (config.get("architectures") or [config.get("model_type")])[0],
        "model_type": config.get("model_type"),
        "n_layers": config.get("num_hidden_layers"),
        "hidden_size": config.get("hidden_size"),
        "files": files,
    }


def refuse_code(config: dict[str, Any], folder: Path) -> None:
    """Refuse a config.json that names code to run.

    Raises:
        ModelError: ``auto_map`` or ``_attn_implementation_internal`` is there, at the top or in the config of a part.
    """
    for key in ("auto_map", "_attn_implementation_internal"):
        if key in config:
            raise ModelError(f"{folder / 'config.json'} asks to run code of its own ({key!r}); layerwise never does that.")
    for part in config.values():
        if isinstance(part, dict):
            refuse_code(part, folder)


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
