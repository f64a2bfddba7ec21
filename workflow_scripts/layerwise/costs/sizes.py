"""How large a model is, read from headers and configurations: no weight is loaded."""

import dataclasses
import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

Shapes = Mapping[str, tuple[int, ...]]

_BLOCK = re.compile(r"(?:^|\.)(?:layers?|blocks|resblocks|blk|h)\.(\d+)\.")
_IMAGE_TOWER = re.compile(r"(?:^|\.)(?:vision_model|visual|vision_tower)\.")
_PREFIX = re.compile(r"(?:cls_token|class_embedding|class_token|reg_token|register_tokens)$")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_WIDTH = ("hidden_size", "n_embd", "d_model", "num_features")
_CONFIGURATIONS = ("config.json", "open_clip_config.json")
_MAXIMUM_HEADER = 100_000_000
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class ModelSize:
    """What the costs of a model depend on.

    Attributes:
        n_layers: L.
        width: D.
        parameters: all of them.
        block_parameters: those inside the blocks, which every token meets.
        patch: side of a patch in pixels; 0 for text.
        prefix: class and register tokens before the patches.
        image_size: side of the image it was trained on; 0 where unknown.
        store_bytes: of its files; 0 where unknown.
    """

    n_layers: int
    width: int
    parameters: int
    block_parameters: int
    patch: int = 0
    prefix: int = 0
    image_size: int = 0
    store_bytes: int = 0

    def weight_bytes(self, dtype: str) -> int:
        """Bytes of the weights in memory."""
        return self.parameters * (4 if dtype == "float32" else 2)

    def image_tokens(self, image_size: int | None) -> int | None:
        """Tokens of one image, where the patches are known."""
        size = image_size or self.image_size
        return (size // self.patch) ** 2 + self.prefix if self.patch and size else None


def from_shapes(shapes: Shapes, loader: str = "text", config: Mapping[str, Any] = NOTHING) -> ModelSize | None:
    """Return the size of a model whose tensors have these shapes, or None where no numbered blocks are found.

    Args:
        shapes: by name, as in safetensors, GGUF or ONNX files.
        loader: the config's word; of a model with two towers, only the one that is read counts.
        config: its configuration, whose words go before what is guessed from the shapes.
    """
    own = tower(shapes, loader)
    numbered = {name: found.group(1) for name in own if (found := _BLOCK.search(name))}
    if not numbered:
        return None
    inside = [name for name in own if name in numbered or _anonymous(name, own[name])]
    first = [own[name][0] for name in numbered if numbered[name] == "0" and len(own[name]) == 1]
    width = _number(config, _WIDTH) or (statistics.mode(first) if first else 0)
    n_layers = _number(config, _LAYERS) or 1 + max(map(int, numbered.values()))
    patches = [shape for shape in own.values() if len(shape) == 4 and shape[1] == 3]
    return ModelSize(
        n_layers=n_layers,
        width=width,
        parameters=_numbers(shapes.values()),
        block_parameters=_numbers(own[name] for name in inside),
        patch=patches[0][-1] if patches and loader != "text" else 0,
        prefix=sum(math.prod(shape[:-1]) for name, shape in own.items() if _PREFIX.search(name)),
        image_size=_image_size(config),
    )


def from_config(config: Mapping[str, Any]) -> ModelSize | None:
    """Return the size that a Hugging Face configuration says, to a few percent; None where it says too little."""
    n_layers, width = _number(config, _LAYERS), _number(config, _WIDTH)
    if not n_layers or not width:
        return None
    inner = _number(config, ("intermediate_size", "n_inner", "ffn_dim")) or 4 * width
    heads = _number(config, ("num_attention_heads", "n_head")) or 1
    shared = (_number(config, ("num_key_value_heads",)) or heads) / heads
    gated = "silu" in str(config.get("hidden_act", "")) or "gated" in str(config.get("hidden_activation", ""))
    block = int(2 * width**2 * (1 + shared)) + (3 if gated else 2) * width * inner
    patch = config.get("patch_size") if isinstance(config.get("patch_size"), int) else 0
    prefix = 1 + (_number(config, ("num_register_tokens",)) or 0) if patch else 0
    total = n_layers * block + width * (_number(config, ("vocab_size",)) or 0)
    return ModelSize(n_layers, width, total, n_layers * block, patch or 0, prefix, _image_size(config))


def from_folder(folder: Path, loader: str = "text") -> ModelSize | None:
    """Return the size of the model in a Hugging Face, timm or OpenCLIP folder; None where it holds none."""
    config = _configuration(folder, loader)
    files = sorted(folder.glob("*.safetensors"))
    size = None
    if files:
        shapes = {name: shape for file in files for name, shape in safetensors_shapes(file).items()}
        size = from_shapes(shapes, loader, config)
        stored = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        size = dataclasses.replace(size, store_bytes=stored) if size else None
    return size or (from_config(config) if config else None)


def safetensors_shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes in the header of a safetensors file; none where it is damaged, which the loader will say."""
    try:
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length)) if length < _MAXIMUM_HEADER else {}
        return {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def from_converted(file: Path, loader: str) -> ModelSize | None:
    """Return the size of a model that a GGUF or ONNX file holds, with the float32 bytes it will be stored in."""
    if file.suffix == ".gguf":
        from gguf import GGUFReader

        shapes = {tensor.name: tuple(map(int, tensor.shape)) for tensor in GGUFReader(file).tensors}
    else:
        import onnx

        constants = onnx.load(str(file)).graph.initializer
        shapes = {each.name: tuple(each.dims) for each in constants if not each.name.startswith("decoder.")}
    size = from_shapes(shapes, loader)
    return dataclasses.replace(size, store_bytes=4 * size.parameters) if size else None


def block_of(name: str) -> int | None:
    """Return the number of the block that a tensor belongs to, None for one outside the blocks."""
    found = _BLOCK.search(name)
    return int(found.group(1)) if found else None


def tower(shapes: Shapes, loader: str) -> dict[str, tuple[int, ...]]:
    """Return the tensors of the tower that is read: of a model with two, the one for images or the one for text."""
    image = {name for name in shapes if _IMAGE_TOWER.search(name)}
    kept = image if loader != "text" else shapes.keys() - image
    return {name: shape for name, shape in shapes.items() if not image or name in kept}


def _anonymous(name: str, shape: tuple[int, ...]) -> bool:
    """Whether it is one of the matrices that an ONNX export left without a name."""
    return name.startswith("onnx::MatMul") and len(shape) == 2


def _numbers(shapes: Iterable[tuple[int, ...]]) -> int:
    return sum(map(math.prod, shapes))


def _configuration(folder: Path, loader: str) -> dict[str, Any]:
    """The configuration of what is read: a tower's own part, where it has one, and what its processor says of images."""
    content = next((found for name in _CONFIGURATIONS if (found := _mapping(folder / name))), {})
    keys = ("text_config",) if loader == "text" else ("vision_config", "model_cfg", "vision_cfg", "pretrained_cfg")
    for key in keys:
        content = {**content, **content[key]} if isinstance(content.get(key), dict) else content
    processor = _mapping(folder / "preprocessor_config.json")
    seen = processor.get("crop_size") or processor.get("size")
    if isinstance(seen, dict):
        seen = seen.get("height") or seen.get("shortest_edge")
    return {**content, "image_size": seen} if type(seen) is int else content


def _mapping(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _number(config: Mapping[str, Any], keys: Iterable[str]) -> int | None:
    return next((config[key] for key in keys if type(config.get(key)) is int), None)


def _image_size(config: Mapping[str, Any]) -> int:
    found = config.get("image_size") or config.get("input_size") or 0
    found = found[-1] if isinstance(found, list) and found else found
    return found if type(found) is int else 0
