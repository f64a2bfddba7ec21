"""Tiny vision models of every family, with random weights, as their libraries write them, and pictures."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pandas as pd
import timm
import torch
from layerwise.models import aim
from layerwise.models.registry import load_loader
from layerwise.models.vision_model import VisionModel
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    Aimv2Config,
    Aimv2VisionConfig,
    AutoModel,
    BeitConfig,
    CLIPConfig,
    CLIPVisionConfig,
    DeiTConfig,
    Dinov2Config,
    Dinov2WithRegistersConfig,
    DINOv3ViTConfig,
    IJepaConfig,
    SiglipConfig,
    SiglipVisionConfig,
    ViTConfig,
    ViTMAEConfig,
)

LAYERS, WIDTH, SIDE, PATCH = 3, 32, 32, 8
_SIZES = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4}
_PLAIN = _SIZES | {"image_size": SIDE, "patch_size": PATCH, "initializer_range": 0.2}
_MLP = _PLAIN | {"intermediate_size": 64}
_TEXT = _SIZES | {"intermediate_size": 64, "vocab_size": 16, "max_position_embeddings": 8}
_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
HUGGING_FACE: dict[str, Any] = {
    "vit": ViTConfig(**_MLP),
    "mae": ViTMAEConfig(**_MLP),
    "dinov2": Dinov2Config(**_PLAIN),
    "dinov2-registers": Dinov2WithRegistersConfig(**_PLAIN, num_register_tokens=4),
    "dinov3": DINOv3ViTConfig(**_MLP, num_register_tokens=4),
    "beit-mean": BeitConfig(**_MLP, use_relative_position_bias=True),
    "beit-cls": BeitConfig(**_MLP, use_mean_pooling=False, use_absolute_position_embeddings=True),
    "clip": CLIPConfig(vision_config=_MLP, text_config=_TEXT),
    "clip-vision": CLIPVisionConfig(**_MLP),
    "siglip": SiglipConfig(vision_config=_MLP, text_config=_TEXT),
    "siglip-vision": SiglipVisionConfig(**_MLP),
    "aimv2": Aimv2Config(vision_config=_MLP, text_config=_TEXT),
    "aimv2-vision": Aimv2VisionConfig(**_MLP),
    "aimv2-native": Aimv2VisionConfig(**_MLP, is_native=True),
    "ijepa": IJepaConfig(**_MLP),
    "deit": DeiTConfig(**_MLP),
}
_SMALL = {"img_size": SIDE, "patch_size": PATCH, "embed_dim": WIDTH, "depth": LAYERS, "num_heads": 4}
TIMM: dict[str, str] = {
    "timm-vit": "vit_tiny_patch16_224",
    "timm-mae": "vit_base_patch16_224.mae",
    "timm-deit": "deit_tiny_patch16_224",
    "timm-deit-distilled": "deit_tiny_distilled_patch16_224",
    "timm-deit3": "deit3_small_patch16_224",
    "timm-eva02": "eva02_tiny_patch14_224",
    "timm-beit": "beit_base_patch16_224",
    "timm-beitv2": "beitv2_base_patch16_224",
    "timm-clip": "vit_base_patch32_clip_224",
    "timm-dinov2": "vit_small_patch14_dinov2",
    "timm-registers": "vit_small_patch14_reg4_dinov2",
    "timm-dinov3": "vit_small_patch16_dinov3",
    "timm-aimv2": "aimv2_large_patch14_224",
    "timm-siglip": "vit_base_patch16_siglip_224",
}
_NATIVE = {"image_size": SIDE, "layers": LAYERS, "width": WIDTH, "head_width": 8, "patch_size": PATCH}
# test_vit names a model of timm that is small as it is: open_clip passes no dimensions on.
_TRUNK = {"image_size": 160, "timm_model_name": "test_vit", "timm_pool": "avg", "timm_proj": "linear"}
OPEN_CLIP: dict[str, dict[str, Any]] = {
    "open_clip": {"embed_dim": 16, "vision_cfg": _NATIVE, "quick_gelu": True},
    "open_clip-pooled": {"embed_dim": 16, "vision_cfg": _NATIVE | {"final_ln_after_pool": True, "pool_type": "avg"}},
    "open_clip-timm": {"embed_dim": 16, "vision_cfg": _TRUNK},
}
# A text tower that open_clip would ask the hub about.
_HUB_TEXT = {"hf_model_name": "no-such-owner/no-such-model", "hf_tokenizer_name": "no-such-owner/no-such-model"}
AIM = aim.Layout(WIDTH, LAYERS, heads=4, patch=PATCH, mlp_ratio=2.0, image_size=SIDE)
EVERY = [*HUGGING_FACE, *TIMM, *OPEN_CLIP, "aim"]
PREFIX = dict.fromkeys(EVERY, 1) | {"deit": 2, "timm-deit-distilled": 2}
PREFIX |= dict.fromkeys(("dinov2-registers", "dinov3", "timm-registers", "timm-dinov3"), 5)
PREFIX |= {name: 0 for name in EVERY if "siglip" in name or "aim" in name or name == "ijepa"}
PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": SIDE, "width": SIDE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.4],
    "resample": 2,
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a family is read here, independently of the code under test."""

    blocks: str
    norm: str | None
    last: Callable[[Any, Tensor], Tensor]
    outputs: Callable[[Any, Tensor], list[Tensor]] | None = None


def noise(pixels: Tensor) -> dict[str, Tensor]:
    """The patch order that MAE takes."""
    patches = (pixels.shape[-1] // PATCH) ** 2
    return {"noise": torch.arange(patches).float().repeat(len(pixels), 1)}


def _hf_last(model: Any, pixels: Tensor) -> Tensor:
    extra = noise(pixels) if model.config.model_type == "vit_mae" else {}
    return model(pixel_values=pixels, **extra).last_hidden_state


def _hf_outputs(model: Any, pixels: Tensor) -> list[Tensor]:
    extra = noise(pixels) if model.config.model_type == "vit_mae" else {}
    return list(model(pixel_values=pixels, output_hidden_states=True, **extra).hidden_states)[1:-1]


def _timm_last(model: Any, pixels: Tensor) -> Tensor:
    return model.forward_features(pixels)


def _joined(spatial: list[Any], prefix: list[Tensor] | None) -> list[Tensor]:
    return [torch.cat([p, s], 1) for s, p in zip(spatial, prefix, strict=True)] if prefix else spatial


def _timm_outputs(model: Any, pixels: Tensor) -> list[Tensor]:
    _, found = model.forward_intermediates(pixels, output_fmt="NLC", return_prefix_tokens=True)
    return [torch.cat([x[1], x[0]], 1) if isinstance(x, tuple) else x for x in found]


def _clip_intermediates(model: Any, pixels: Tensor, **options: Any) -> list[Tensor]:
    found = model.forward_intermediates(pixels, output_fmt="NLC", output_extra_tokens=True, **options)
    return _joined(found["image_intermediates"], found.get("image_intermediates_prefix"))


def _clip_last(model: Any, pixels: Tensor) -> Tensor:
    return _clip_intermediates(model, pixels, normalize_intermediates=True)[-1]


_NORMLESS = {"beit-mean", "clip", "clip-vision", "timm-eva02", "timm-beit", "timm-beitv2"}
_PATHS = {"dinov2": "encoder.layer", "dinov2-registers": "encoder.layer", "dinov3": "model.layer"}
_PATHS |= {name: "encoder.layers" for name in HUGGING_FACE if name.startswith(("clip", "siglip", "aimv2"))}
_NORMS = {"dinov3": "norm"} | {name: "rms_norm" for name in HUGGING_FACE if name.startswith("aimv2")}
_NORMS |= {name: "post_layernorm" for name in HUGGING_FACE if name.startswith("siglip")}


def kind(family: str) -> Kind:
    """Where each family keeps its blocks and its final norm, written down a second time."""
    if family in HUGGING_FACE:
        norm = None if family in _NORMLESS else _NORMS.get(family, "layernorm")
        return Kind(_PATHS.get(family, "layers"), norm, _hf_last, _hf_outputs)
    if family == "open_clip":
        return Kind("transformer.resblocks", "ln_post", _clip_last, _clip_intermediates)
    if family == "open_clip-pooled":  # its norm comes after the pooling
        return Kind("transformer.resblocks", None, lambda m, x: _clip_intermediates(m, x)[-1], _clip_intermediates)
    if family == "open_clip-timm":
        return Kind("trunk.blocks", "trunk.norm", lambda m, x: m.trunk.forward_features(x), _clip_intermediates)
    return Kind("blocks", None if family in _NORMLESS else "norm", _timm_last, _timm_outputs)


def disturbed(module: Any) -> Any:
    """Norms of ones, biases of zeros and unused class tokens would hide what is and is not applied."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return module.eval()


def save(folder: Path, family: str, processor: dict[str, Any] = PROCESSOR) -> Path:
    """Write the folder of a tiny model."""
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    if family in TIMM:
        made = disturbed(timm.create_model(TIMM[family], pretrained=False, num_classes=7, **_SMALL))
        made.pretrained_cfg["input_size"] = (3, SIDE, SIDE)  # DINOv3 reads any, so timm does not note it
        timm.models.save_for_hf(made, folder, model_args=_SMALL, safe_serialization=True)
    elif family in OPEN_CLIP:
        save_open_clip(folder, OPEN_CLIP[family])
    elif family == "aim":
        save_aim(folder, disturbed(aim.build(AIM)))
    else:
        put(folder, disturbed(AutoModel.from_config(HUGGING_FACE[family])), processor)
    return folder


def put(folder: Path, module: Any, processor: dict[str, Any] = PROCESSOR) -> Path:
    """Write a folder as ``save_pretrained`` does."""
    module.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


def save_open_clip(folder: Path, model_cfg: dict[str, Any], preprocess: dict[str, Any] | None = None) -> Any:
    """Write a folder of open_clip's layout, whose text tower cannot be built offline; return the two towers."""
    text = {"context_length": 8, "vocab_size": 16, "width": 16, "heads": 2, "layers": 1}
    towers = open_clip.CLIP(**{"quick_gelu": False} | model_cfg, text_cfg=text)
    disturbed(towers)
    config = {"model_cfg": model_cfg | {"text_cfg": _HUB_TEXT}, "preprocess_cfg": preprocess or {}}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    save_file({k: v.contiguous() for k, v in towers.state_dict().items()}, folder / "open_clip_model.safetensors")
    return towers


def save_aim(folder: Path, module: nn.Module, config: dict[str, Any] | None = None) -> None:
    """Write a folder of AIM's layout, with a head that is not read."""
    state = {aim.published_name(k): v.contiguous() for k, v in module.state_dict().items() if k != "pos_embed"}
    save_file(state | {"head.linear.weight": torch.zeros(5, WIDTH)}, folder / "model.safetensors")
    given = {"img_size": SIDE, "patch_size": PATCH, "embed_dim": WIDTH, "num_blocks": LAYERS, "num_heads": 4}
    (folder / "config.json").write_text(json.dumps({"config": given if config is None else config}))


def loader(family: str) -> str:
    """The config's word."""
    if family in TIMM:
        return "timm"
    return "aim" if family == "aim" else "open_clip" if family in OPEN_CLIP else "vision"


def load(folder: Path, family: str, **changes: Any) -> VisionModel:
    """Load with the family's loader."""
    return load_loader(loader(family)).load(folder, **({"name": "tiny", "dtype": "float32", "device": "cpu"} | changes))


FRAME = pd.DataFrame({"image": [f"{i}.png" for i in range(7)]})


def paint(folder: Path) -> Path:
    """Write the pictures of ``FRAME``, of several shapes."""
    for i, size in enumerate([(32, 32), (64, 48), (33, 90), (7, 5), (32, 32), (120, 31), (1, 1)]):
        values = np.random.default_rng(i).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(values).save(folder / f"{i}.png")
    return folder


def layers(model: VisionModel, pictures: Path, rows: list[int]) -> list[Tensor]:
    """States of every layer for these pictures."""
    return layers_of(model, model.prepare(FRAME, pictures).batch(rows).inputs["pixel_values"])


def layers_of(model: VisionModel, pixels: Tensor) -> list[Tensor]:
    """States of every layer for these pixels."""
    from layerwise.models.layered import Batch

    found: list[Tensor] = []
    model.run(Batch({"pixel_values": pixels}, {}), lambda _i, states: found.append(states.clone()))
    return found
