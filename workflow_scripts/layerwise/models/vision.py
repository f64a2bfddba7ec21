"""Vision models in Hugging Face folders."""

import inspect
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor, nn
from torchvision.transforms import InterpolationMode, v2
from transformers import AutoImageProcessor

from layerwise.errors import ModelError
from layerwise.images import open_image
from layerwise.models.backbone import load_backbone
from layerwise.models.layered import Batch, OnLayer
from layerwise.models.layers import LayerStack, find_layers, reading

STUDY_MEAN, STUDY_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Preprocess(Protocol):
    """From a picture to the (3, H, W) tensor a model takes."""

    def __call__(self, image: Image) -> Tensor:
        """Return the tensor."""
        ...


class ImageInputs:
    """The images of one dataset, opened batch by batch."""

    def __init__(self, paths: list[Path], preprocess: Preprocess, tokens: int, prefix: int, device: torch.device) -> None:
        """Keep the paths; every image gives ``tokens`` tokens, the first ``prefix`` of which are CLS and registers."""
        self.paths, self.preprocess, self.prefix, self.device = paths, preprocess, prefix, device
        self.lengths: NDArray[np.int64] = np.full(len(paths), tokens, dtype=np.int64)

    def batch(self, rows: list[int]) -> Batch:
        """Open, preprocess and stack these rows."""
        pixels = torch.stack([self.preprocess(open_image(self.paths[row])) for row in rows])
        mask = torch.ones((len(rows), int(self.lengths[0])), dtype=torch.bool, device=self.device)
        content = mask.clone()
        content[:, : self.prefix] = False
        masks = {"all": mask, "content": content, "skip_first": content}
        return Batch({"pixel_values": pixels.to(self.device)}, masks)


class VisionModel:
    """A vision backbone (no head), read at every layer."""

    def __init__(
        self, module: nn.Module, stack: LayerStack, preprocess: Preprocess, facts: dict[str, Any], device: str
    ) -> None:
        """Place the model on its device and see what one blank image gives.

        Args:
            module: called with ``pixel_values``.
            stack: its blocks.
            preprocess: of one image.
            facts: what is recorded of the preprocessing; ``patch`` (pixels) and ``dtype`` are used here.
            device: where to run.

        Raises:
            ModelError: layers of different shape, as in hierarchical models.
        """
        self.device = torch.device(device)
        self.module, self.stack, self.preprocess = module.to(self.device).eval(), stack, preprocess
        self.dtype, self.facts = getattr(torch, facts["dtype"]), facts
        self.layer_names, self.final_norm, self.n_layers = stack.layer_names, stack.final_norm, len(stack.blocks)
        accepted = inspect.signature(module.forward).parameters
        self._options = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in accepted else {}
        self._positional = "pixel_values" not in accepted
        self.tokens, self.width, self.prefix = self._probe()

    def _probe(self) -> tuple[int, int, int]:
        from PIL import Image as pillow

        pixels = self.preprocess(pillow.new("RGB", (64, 64)))[None].to(self.device)
        shapes: list[tuple[int, ...]] = []
        self.run(Batch({"pixel_values": pixels}, {}), lambda _, states: shapes.append(tuple(states.shape)))
        if len(set(shapes)) != 1 or len(shapes[0]) != 3:
            raise ModelError(
                f"{type(self.module).__name__} is hierarchical: its layers have the shapes {sorted(set(shapes))}; layerwise "
                "reads models whose blocks all have one width and one number of tokens, such as ViT."
            )
        patches = (pixels.shape[-2] // self.facts["patch"]) * (pixels.shape[-1] // self.facts["patch"])
        _, tokens, width = shapes[0]
        if tokens < patches:
            raise ModelError(
                f"{type(self.module).__name__} gives {tokens} tokens for {patches} patches: it drops some, as "
                "MAE does, or merges them; layerwise reads models that keep them."
            )
        return tokens, width, tokens - patches

    def prepare(self, samples: pd.DataFrame, folder: Path) -> ImageInputs:
        """Locate column ``image``, whose paths are relative to ``folder``."""
        paths = [folder / name for name in samples["image"]]
        return ImageInputs(paths, self.preprocess, self.tokens, self.prefix, self.device)

    def run(self, batch: Batch, on_layer: OnLayer) -> None:
        """One forward pass over ``batch``; see ``LayeredModel``."""
        pixels = batch.inputs["pixel_values"].to(self.dtype)
        with torch.inference_mode(), reading(self.stack, on_layer):
            if self._positional:
                self.module(pixels)
            else:
                self.module(pixel_values=pixels, **self._options)


def study_preprocess(size: int) -> Preprocess:
    """Return the study's single preprocessing: shortest side 256/224 of ``size``, crop, ImageNet's mean and spread."""
    return preprocessing_chain(round(size * 256 / 224), size, InterpolationMode.BICUBIC, STUDY_MEAN, STUDY_STD)


def load_entry(folder: Path, entry: dict[str, Any], device: str) -> VisionModel:
    """Load as the config's ``entry`` says; see ``load``."""
    return load(folder, entry["name"], entry["dtype"], device, entry["preprocessing"], entry["image_size"])


def load(
    folder: Path, name: str, dtype: str, device: str, preprocessing: str = "model", image_size: int | None = None
) -> VisionModel:
    """Load a vision model from a Hugging Face folder, without remote code, from safetensors only.

    Args:
        folder: holds config, preprocessor_config and safetensors files.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", "cuda:N" or "mps".
        preprocessing: "model", what its processor does; "study", one for all models.
        image_size: side of the square the model sees; its processor's own where None.

    Raises:
        ModelError: missing or damaged files, an architecture that is not one sequence of equal blocks.
    """
    module, config, processor = load_backbone(folder, name, dtype, AutoImageProcessor)
    patch = getattr(config, "patch_size", None)
    if not isinstance(patch, int):
        raise ModelError(
            f"model {name!r} ({config.model_type}) has no patch size: layerwise reads models of one patch grid."
        )
    crop = image_size or _side(processor.crop_size if getattr(processor, "do_center_crop", False) else processor.size)
    preprocess = study_preprocess(crop) if preprocessing == "study" else _model_preprocess(processor, crop, image_size)
    facts = {"preprocessing": preprocessing, "size": crop, "patch": patch, "dtype": dtype, "processor": processor.to_dict()}
    return VisionModel(module, find_layers(module, getattr(config, "num_hidden_layers", None)), preprocess, facts, device)


def _model_preprocess(processor: Any, crop: int, asked: int | None) -> Preprocess:  # noqa: ANN401 - any image processor
    """What the model's processor does, at the size that is asked for."""
    whole = _side(processor.size)
    own = _side(processor.crop_size) if getattr(processor, "do_center_crop", False) else whole
    squashes = own == whole and not processor.size.get("shortest_edge")  # as ViT: to a square, whatever the picture's shape
    resized = [crop, crop] if squashes else round(whole * crop / own) if asked else whole
    mode = InterpolationMode.BILINEAR if int(processor.resample) == 2 else InterpolationMode.BICUBIC
    return preprocessing_chain(resized, crop, mode, processor.image_mean, processor.image_std)


def preprocessing_chain(
    resized: int | list[int],
    crop: int,
    mode: InterpolationMode,
    mean: Any,  # noqa: ANN401 - three numbers
    deviation: Any,  # noqa: ANN401
) -> Preprocess:
    """Return resize (of the shortest side, or to [height, width]), centre crop and normalisation of one image."""
    chain: Preprocess = v2.Compose(
        [
            v2.Resize(resized, interpolation=mode, antialias=True),
            v2.CenterCrop(crop),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean, deviation),
        ]
    )
    return chain


def _side(size: Any) -> int:  # noqa: ANN401 - processors give a mapping
    return int(size.get("shortest_edge") or size.get("height"))
