"""The untrained twin of a model: its configuration, tokenizer and processor with fresh random weights."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from layerwise.errors import ModelError
from layerwise.models import aim, open_clip_vision
from layerwise.models.mae_positions import set_positions


def build(like: Path, seed: int, folder: Path) -> dict[str, Any]:
    """Write to ``folder`` what is in ``like``, with weights drawn by the library's own initialisation from ``seed``.

    Args:
        like: weights folder of the trained model, from Hugging Face, timm, open_clip (vision tower only) or AIM v1.
        seed: of the weights.
        folder: an empty folder.

    Returns:
        Facts for the manifest.

    Raises:
        ModelError: the architecture cannot be built from its configuration.
    """
    for file in like.iterdir():
        if file.suffix not in (".safetensors", ".md") and not file.name.endswith(".index.json"):
            shutil.copyfile(file, folder / file.name)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            _draw(like, folder)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"no untrained twin can be built from {like} ({type(error).__name__}: {reason}).") from error
    return {"from": "random", "seed": seed, "stored_dtype": "float32", "note": "random weights, never trained"}


def _draw(like: Path, folder: Path) -> None:
    path = folder / "config.json"
    described = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if (folder / open_clip_vision.CONFIG).is_file():  # beside it, the same model may lie in the layout of transformers
        _open_clip(folder)
    if "architecture" in described:
        _timm(described, folder)
    elif aim.is_aim(like):
        _aim(like, folder)
    elif "model_type" in described:
        _hugging_face(folder)
    elif not (folder / open_clip_vision.CONFIG).is_file():
        raise ModelError("its config.json names no model_type and no architecture")


def _hugging_face(folder: Path) -> None:
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    made = AutoModel.from_config(config, dtype=torch.float32)
    set_positions(made)
    made.save_pretrained(folder)


def _timm(described: dict[str, Any], folder: Path) -> None:
    import timm

    model = timm.create_model(described["architecture"], pretrained=False, **described.get("model_args", {}))
    _save(folder / "model.safetensors", model.state_dict())


def _open_clip(folder: Path) -> None:
    described = json.loads((folder / open_clip_vision.CONFIG).read_text("utf-8"))
    visual = open_clip_vision.build(described["model_cfg"]).visual
    _save(folder / open_clip_vision.WEIGHTS[0], {f"visual.{key}": value for key, value in visual.state_dict().items()})


def _aim(like: Path, folder: Path) -> None:
    state = aim.build(aim.layout(like)).state_dict()
    named = {aim.published_name(key): value for key, value in state.items() if key != "pos_embed"}
    _save(folder / "model.safetensors", named)


def _save(file: Path, state: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file({key: value.contiguous() for key, value in state.items()}, file)
