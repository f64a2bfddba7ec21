"""Vision models of timm, in folders as written by ``timm.models.save_for_hf``."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from layerwise.errors import ModelError
from layerwise.models.preprocessing import check_size, study_preprocess
from layerwise.models.vision_model import VisionModel

# Parts beyond the last layer: no readout sees them, so the files may lack them.
_BEYOND = ("fc_norm.", "head.", "head_dist.", "attn_pool.")


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
        ModelError: missing or damaged files, an unknown or hierarchical architecture, a size that cuts patches.
    """
    from timm.data import create_transform, resolve_data_config

    try:
        architecture = json.loads((folder / "config.json").read_text("utf-8")).get("architecture")
        module = _build(folder, image_size)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"model {name!r} cannot be loaded from {folder} ({type(error).__name__}: {reason}).") from error
    patch = patch_side(module)
    if not patch or not hasattr(module, "blocks"):
        raise ModelError(
            f"model {name!r} ({architecture}) is hierarchical or has no patch grid; layerwise reads models "
            "that are one sequence of blocks of equal width, such as ViT."
        )
    lost = sorted(key for key, value in module.named_parameters() if value.isnan().any() and not key.startswith(_BEYOND))
    if lost:
        raise ModelError(f"model {name!r}: {folder} lacks {len(lost)} of its weights, such as {lost[0]!r}.")
    data = resolve_data_config({}, model=module)
    trained = int(data["input_size"][-1])
    size = image_size or trained
    check_size(name, size, patch, trained)
    data["input_size"] = (3, size, size)
    preprocess = study_preprocess(size) if preprocessing == "study" else create_transform(**data, is_training=False)
    facts = {"preprocessing": preprocessing, "size": size, "trained_size": trained, "patch": patch, "dtype": dtype}
    facts |= {"architecture": architecture, "processor": _plain(data)}
    module = placed(module, device, dtype)
    return VisionModel(module, preprocess, facts, len(module.blocks), getattr(module, "num_prefix_tokens", None))


def _build(folder: Path, image_size: int | None) -> Any:  # noqa: ANN401 - any model of timm
    """Build the model with NaN for weights and fill it from the file: timm says nothing of those it does not find."""
    import timm
    from safetensors.torch import load_file

    sized: dict[str, Any] = {"img_size": image_size} if image_size else {}
    weights: dict[str, Tensor] = load_file(folder / "model.safetensors")
    module: Any = timm.create_model(f"local-dir:{folder.resolve()}", pretrained=False, num_classes=0, **sized)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(math.nan)
    # As timm does it, which renames and resizes weights by architecture; never from a file it would choose itself.
    adapt = getattr(sys.modules[type(module).__module__], "checkpoint_filter_fn", None)
    source = {**module.pretrained_cfg, "source": "", "state_dict": weights}
    timm.models.load_pretrained(module, source, num_classes=0, filter_fn=adapt, strict=False)
    return module


def patch_side(module: Any) -> int | None:  # noqa: ANN401 - any model of timm
    """Return the side of the patches in pixels, None where there is no grid of squares."""
    patch = getattr(getattr(module, "patch_embed", None), "patch_size", None)
    sides = {patch} if isinstance(patch, int) else set(patch or ())
    return int(sides.pop()) if len(sides) == 1 else None


def placed(module: nn.Module, device: str, dtype: str) -> Any:  # noqa: ANN401 - the module
    """Return the module on its device, in its dtype, in evaluation mode."""
    where = "cuda" if device == "split" else device  # no vision model of these libraries needs more than one GPU
    return module.to(torch.device(where), getattr(torch, dtype)).eval()


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}
