"""Vision models of timm, in folders as written by ``timm.models.save_for_hf``."""

import json
import math
from pathlib import Path
from typing import Any

import torch
from torchvision.transforms import InterpolationMode

from layerwise.errors import ModelError
from layerwise.models.layers import find_layers
from layerwise.models.vision import VisionModel, preprocessing_chain, study_preprocess


def load_entry(folder: Path, entry: dict[str, Any], device: str) -> VisionModel:
    """Load as the config's ``entry`` says; see ``load``."""
    return load(folder, entry["name"], entry["dtype"], device, entry["preprocessing"], entry["image_size"])


def load(
    folder: Path, name: str, dtype: str, device: str, preprocessing: str = "model", image_size: int | None = None
) -> VisionModel:
    """Load a timm model from a folder with its config.json and safetensors, without its head.

    Args:
        folder: holds config.json with ``architecture``, and model.safetensors.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", "cuda:N" or "mps".
        preprocessing: "model", the pretrained configuration's; "study", one for all models.
        image_size: side of the square the model sees; its own where None.

    Raises:
        ModelError: missing or damaged files, an unknown or hierarchical architecture.
    """
    import timm
    from safetensors import safe_open
    from timm.data import resolve_data_config

    try:
        described = json.loads((folder / "config.json").read_text("utf-8"))
        sized: dict[str, Any] = {"img_size": image_size} if image_size else {}
        with safe_open(folder / "model.safetensors", framework="pt") as stored:
            keys = set(stored.keys())
        module = timm.create_model(f"local-dir:{folder.resolve()}", pretrained=True, num_classes=0, **sized)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"model {name!r} cannot be loaded from {folder} ({type(error).__name__}: {reason}).") from error
    patch = getattr(getattr(module, "patch_embed", None), "patch_size", None)
    if not patch or not hasattr(module, "blocks"):
        raise ModelError(
            f"model {name!r} ({described.get('architecture')}) is hierarchical or has no patch grid; layerwise reads models "
            "that are one sequence of blocks of equal width, such as ViT."
        )
    lost = sorted(key for key in module.state_dict() if key.startswith("blocks.") and key not in keys)
    if lost and any(key.startswith("blocks.") for key in keys):  # timm would leave them random
        raise ModelError(f"model {name!r}: {folder} lacks {len(lost)} of its weights, such as {lost[0]!r}.")
    data = resolve_data_config({}, model=module)
    crop = image_size or int(data["input_size"][-1])
    resized = math.floor(crop / float(data.get("crop_pct") or 1.0))  # as timm rounds
    mode = InterpolationMode.BILINEAR if data["interpolation"] == "bilinear" else InterpolationMode.BICUBIC
    own = preprocessing_chain(resized, crop, mode, data["mean"], data["std"])
    side = patch if isinstance(patch, int) else int(patch[0])
    facts = {"preprocessing": preprocessing, "size": crop, "patch": side, "dtype": dtype, "processor": _plain(data)}
    chosen = study_preprocess(crop) if preprocessing == "study" else own
    return VisionModel(module.to(getattr(torch, dtype)), find_layers(module), chosen, facts, device)


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}
