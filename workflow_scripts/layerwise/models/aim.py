"""AIM v1 (El-Nouby et al., 2024, arXiv 2401.08541), as a configuration of timm's VisionTransformer plus a map of names.

Pre-training was prefix-causal; the released inference, and this, lets every patch see every other one.
"""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from layerwise.errors import ModelError
from layerwise.models.preprocessing import check_size, study_preprocess
from layerwise.models.timm_vision import placed
from layerwise.models.vision_model import VisionModel

# Names in the published files, and in timm.
_NAMES = (("preprocessor.patchifier.", "patch_embed."), ("trunk.post_trunk_norm.", "norm."), ("trunk.blocks.", "blocks."))
_INSIDE = ((".norm_1.", ".norm1."), (".norm_2.", ".norm2."))
_READ = ("preprocessor.", "trunk.")
_HEAD_WIDTH = 128  # of all published sizes


@dataclasses.dataclass(frozen=True)
class Layout:
    """The dimensions of an AIM model."""

    width: int
    depth: int
    heads: int
    patch: int
    mlp_ratio: float
    image_size: int


def load_entry(folder: Path, entry: dict[str, Any], device: str) -> VisionModel:
    """Load as the config's ``entry`` says; see ``load``."""
    return load(folder, entry["name"], entry["dtype"], device, entry["preprocessing"], entry["image_size"])


def load(
    folder: Path, name: str, dtype: str, device: str, preprocessing: str = "model", image_size: int | None = None
) -> VisionModel:
    """Load an AIM v1 trunk from a folder in the published layout; its attention head is not read.

    Args:
        folder: holds config.json and safetensors files.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", "cuda:N" or "mps".
        preprocessing: "model" or "study", which are the same here: the study took AIM's for all models.
        image_size: side of the square the model sees; its own where None. Positions are computed for any.

    Raises:
        ModelError: missing or damaged files, missing weights, a size that cuts patches.
    """
    try:
        described = layout(folder)
        size = image_size or described.image_size
        check_size(name, size, described.patch, described.image_size)
        weights = {timm_name(key): value for key, value in _tensors(folder).items()}
        module = build(dataclasses.replace(described, image_size=size))
        found = module.load_state_dict(weights, strict=False)
    except ModelError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"model {name!r} cannot be loaded from {folder} ({type(error).__name__}: {reason}).") from error
    missing = sorted(published_name(key) for key in found.missing_keys if key != "pos_embed")
    for keys, verb in ((missing, "lacks"), (sorted(map(published_name, found.unexpected_keys)), "has beyond AIM v1")):
        if keys:
            raise ModelError(f"model {name!r}: {folder} {verb} {len(keys)} of its weights, such as {keys[0]!r}.")
    facts = {"preprocessing": preprocessing, "size": size, "trained_size": described.image_size, "patch": described.patch}
    facts |= {"dtype": dtype, "architecture": "AIM v1", "layout": dataclasses.asdict(described)}
    return VisionModel(placed(module, device, dtype), study_preprocess(size), facts, described.depth, 0)


def layout(folder: Path) -> Layout:
    """Read the dimensions from the shapes of the weights; the number of heads and the image size from the config.

    Raises:
        ModelError: not AIM v1, a config that contradicts the weights, or no number of heads.
    """
    shapes = _shapes(folder)
    try:
        width, _, patch, _ = shapes["preprocessor.patchifier.proj.weight"]
        hidden, _ = shapes["trunk.blocks.0.mlp.fc1.weight"]
    except (KeyError, ValueError):
        raise ModelError(f"{folder} holds no AIM v1 weights (preprocessor.patchifier, trunk.blocks).") from None
    depth = 1 + max(int(key.split(".")[2]) for key in shapes if key.startswith("trunk.blocks."))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config = config.get("config", config)  # as written by huggingface_hub's mixin
    for key, value in (("embed_dim", width), ("num_blocks", depth), ("patch_size", patch)):
        if config.get(key, value) != value:
            raise ModelError(f"{folder / 'config.json'} says {key} {config[key]}, the weights have {value}; correct one.")
    heads = config.get("num_heads") or (width // _HEAD_WIDTH if width % _HEAD_WIDTH == 0 else 0)
    if not heads or width % heads:
        raise ModelError(f"{folder / 'config.json'} has no num_heads that divides the width {width}; add it.")
    return Layout(width, depth, heads, patch, hidden / width, config.get("img_size", 224))


def build(described: Layout) -> nn.Module:
    """Return timm's VisionTransformer with AIM's dimensions and positions; its weights are timm's own initialisation."""
    from timm.models.vision_transformer import VisionTransformer

    norm = functools.partial(nn.LayerNorm, eps=1e-6)
    module: Any = VisionTransformer(
        img_size=described.image_size,
        patch_size=described.patch,
        embed_dim=described.width,
        depth=described.depth,
        num_heads=described.heads,
        mlp_ratio=described.mlp_ratio,
        qkv_bias=False,
        proj_bias=False,
        class_token=False,
        global_pool="avg",
        num_classes=0,
        norm_layer=norm,
        embed_norm_layer=norm,
        fc_norm=False,
        final_norm=True,
    )
    with torch.no_grad():
        module.pos_embed.copy_(positions(described.image_size // described.patch, described.width))
    return module


def positions(side: int, width: int) -> Tensor:
    """Return sines and cosines of the column, then of the row: (side * side, width) for patches in reading order."""
    rates = 1.0 / 10000 ** (torch.arange(width // 4, dtype=torch.float64) / (width / 4))
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angles = [axis.reshape(-1, 1) * rates for axis in (column, row)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], dim=1).float()


def timm_name(published: str) -> str:
    """Return timm's name of a weight."""
    for theirs, ours in _NAMES:
        if published.startswith(theirs):
            published = ours + published.removeprefix(theirs)
    for theirs, ours in _INSIDE:
        published = published.replace(theirs, ours)
    return published


def published_name(name: str) -> str:
    """Return the published name of a weight of timm."""
    for theirs, ours in _NAMES:
        if name.startswith(ours):
            name = theirs + name.removeprefix(ours)
            break
    for theirs, ours in _INSIDE:
        name = name.replace(ours, theirs)
    return name


def is_aim(folder: Path) -> bool:
    """Whether the weights in ``folder`` are named as those of AIM v1."""
    return any(key.startswith("preprocessor.patchifier.") for key in _shapes(folder))


def _shapes(folder: Path) -> dict[str, list[int]]:
    from safetensors import safe_open

    shapes: dict[str, list[int]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as stored:
            shapes |= {key: stored.get_slice(key).get_shape() for key in stored.keys()}  # noqa: SIM118
    return shapes


def _tensors(folder: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    tensors: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as stored:
            tensors |= {key: stored.get_tensor(key) for key in stored.keys() if key.startswith(_READ)}  # noqa: SIM118
    return tensors
