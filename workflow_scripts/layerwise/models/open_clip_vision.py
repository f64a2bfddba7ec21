"""Vision towers of open_clip, in folders as written by ``open_clip.push_to_hf_hub.save_for_hf``."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor
from torchvision.transforms import InterpolationMode

from layerwise.errors import ModelError
from layerwise.models.preprocessing import Chain, Preprocess, check_size, square, study_preprocess
from layerwise.models.timm_vision import patch_side, placed
from layerwise.models.vision_model import VisionModel

CONFIG = "open_clip_config.json"
# Folders often hold the model in the layout of transformers too, under the plain name.
WEIGHTS = ("open_clip_model.safetensors", "model.safetensors")
_TOWER = "visual."
_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def load_entry(folder: Path, entry: dict[str, Any], device: str) -> VisionModel:
    """Load as the config's ``entry`` says; see ``load``."""
    return load(folder, entry["name"], entry["dtype"], device, entry["preprocessing"], entry["image_size"])


def load(
    folder: Path, name: str, dtype: str, device: str, preprocessing: str = "model", image_size: int | None = None
) -> VisionModel:
    """Load the vision tower of an open_clip model; the text tower is neither built nor read.

    Args:
        folder: holds open_clip_config.json and open_clip_model.safetensors (or model.safetensors).
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", "cuda:N" or "mps".
        preprocessing: "model", its ``preprocess_cfg``; "study", one for all models.
        image_size: side of the square the model sees; its own where None.

    Raises:
        ModelError: missing or damaged files, missing weights, a hierarchical tower, a size that cuts patches.
    """
    try:
        described = json.loads((folder / CONFIG).read_text("utf-8"))
        towers = build(described["model_cfg"], image_size)
        trained = square(described["model_cfg"]["vision_cfg"].get("image_size", 224), name, "images")
        weights = _weights(folder)
    except ModelError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"model {name!r} cannot be loaded from {folder} ({type(error).__name__}: {reason}).") from error
    visual = towers.visual
    trunk = getattr(visual, "trunk", None)
    patch = _patch(visual, name)
    size = image_size or int(trained or 0)
    check_size(name, size, patch, trained)
    _fill(towers, weights, name, folder)
    if trunk is not None and image_size:
        visual.set_input_size(image_size)
    own = described.get("preprocess_cfg") or {}
    preprocess = study_preprocess(size) if preprocessing == "study" else _preprocess(own, size, name)
    facts = {"preprocessing": preprocessing, "size": size, "trained_size": trained, "patch": patch, "dtype": dtype}
    facts |= {"architecture": described["model_cfg"]["vision_cfg"].get("timm_model_name") or "ViT", "processor": own}
    blocks = visual.transformer.resblocks if trunk is None else trunk.blocks
    prefix = 1 if trunk is None else getattr(trunk, "num_prefix_tokens", None)
    return VisionModel(placed(visual, device, dtype), preprocess, facts, len(blocks), prefix)


def _patch(visual: Any, name: str) -> int:  # noqa: ANN401 - a vision tower of open_clip
    trunk = getattr(visual, "trunk", None)
    patch = patch_side(trunk) if trunk is not None else square(getattr(visual, "patch_size", None), name, "patches")
    if patch is None or (trunk is not None and not hasattr(trunk, "blocks")):
        kind = type(visual if trunk is None else trunk).__name__
        raise ModelError(
            f"model {name!r} ({kind}) is hierarchical or has no patch grid; layerwise reads models that are one sequence of "
            "blocks of equal width, such as ViT."
        )
    return patch


def build(model_cfg: dict[str, Any], image_size: int | None = None) -> Any:  # noqa: ANN401 - open_clip.CLIP
    """Return an untrained open_clip model with the vision tower of ``model_cfg`` and a text tower of no use.

    The model's own text tower may be one whose configuration open_clip would download.

    Args:
        model_cfg: as in open_clip_config.json.
        image_size: in place of the config's own.

    Raises:
        ModelError: a tower that would be fetched from elsewhere.
    """
    import open_clip

    vision = {**model_cfg["vision_cfg"], "timm_model_pretrained": False, "patch_dropout": 0.0}
    trunk = vision.get("timm_model_name") or ""
    if ":" in trunk or "/" in trunk:
        raise ModelError(f"the vision tower is {trunk!r}, which would be fetched; layerwise builds towers that timm names.")
    if image_size and not trunk:
        vision["image_size"] = image_size
    text = open_clip.CLIPTextCfg(context_length=2, vocab_size=2, width=8, heads=1, layers=1)
    quick = model_cfg.get("quick_gelu", False)
    return open_clip.CLIP(model_cfg["embed_dim"], open_clip.CLIPVisionCfg(**vision), text, quick_gelu=quick)


def _weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    file = next((folder / name for name in WEIGHTS if (folder / name).is_file()), folder / WEIGHTS[0])
    with safe_open(file, framework="pt") as stored:
        return {key: stored.get_tensor(key) for key in stored.keys() if key.startswith(_TOWER)}  # noqa: SIM118


def _fill(towers: Any, weights: dict[str, Tensor], name: str, folder: Path) -> None:  # noqa: ANN401 - open_clip.CLIP
    from open_clip.model import resize_pos_embed

    resize_pos_embed(weights, towers)
    try:
        found = towers.visual.load_state_dict({k.removeprefix(_TOWER): v for k, v in weights.items()}, strict=False)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"model {name!r}: {folder} holds weights of another shape ({reason}).") from error
    for keys, verb in ((found.missing_keys, "lacks"), (found.unexpected_keys, "has beyond its config")):
        if keys:
            raise ModelError(f"model {name!r}: {folder} {verb} {len(keys)} of its weights, such as {_TOWER + min(keys)!r}.")


def _preprocess(own: dict[str, Any], size: int, name: str) -> Preprocess:
    """What open_clip's evaluation transform does."""
    resize = own.get("resize_mode") or "shortest"
    if resize not in ("shortest", "squash"):
        raise ModelError(f"model {name!r} pads pictures ('resize_mode: {resize}'); write 'preprocessing: study'.")
    mode = InterpolationMode.BILINEAR if own.get("interpolation") == "bilinear" else InterpolationMode.BICUBIC
    mean, deviation = own.get("mean") or _MEAN, own.get("std") or _DEVIATION
    return Chain([size, size] if resize == "squash" else size, size, mode, mean=mean, deviation=deviation)
