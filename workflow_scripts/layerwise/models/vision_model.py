"""A vision backbone of whatever library, read at every layer."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image as pillow
from torch import Tensor, nn

from layerwise.errors import ModelError
from layerwise.images import open_image
from layerwise.models.layered import NO_TAPS, Batch, OnLayer
from layerwise.models.layers import find_layers, reading
from layerwise.models.preprocessing import Preprocess


class ImageInputs:
    """The images of one dataset, opened batch by batch."""

    def __init__(
        self, paths: list[Path], preprocess: Preprocess, size: int, tokens: int, prefix: int, device: torch.device
    ) -> None:
        """Keep the paths; each image gives ``tokens`` tokens, the first ``prefix`` of which are CLS and registers."""
        self.paths, self.preprocess, self.size, self.prefix, self.device = paths, preprocess, size, prefix, device
        self.lengths: NDArray[np.int64] = np.full(len(paths), tokens, dtype=np.int64)

    def batch(self, rows: list[int]) -> Batch:
        """Open, preprocess and stack these rows.

        Raises:
            DataError: an image that cannot be read.
            ModelError: an image of another size than the model reads, where its processor does not resize.
        """
        pixels = torch.stack([self._pixels(self.paths[row]) for row in rows])
        mask = torch.ones((len(rows), int(self.lengths[0])), dtype=torch.bool, device=self.device)
        content = mask.clone()
        content[:, : self.prefix] = False
        masks = {"all": mask, "content": content, "skip_first": content}
        return Batch({"pixel_values": pixels.to(self.device)}, masks)

    def _pixels(self, path: Path) -> Tensor:
        pixels = self.preprocess(open_image(path))
        if pixels.shape[-2:] != (self.size, self.size):
            height, width = pixels.shape[-2:]
            raise ModelError(
                f"image {path.name} stays {width} x {height} where the model reads {self.size} x {self.size} pixels: its "
                f"processor does not resize; write 'image_size: {self.size}' or 'preprocessing: study'."
            )
        return pixels


class VisionModel:
    """A vision backbone (no head), read at every layer."""

    def __init__(
        self,
        module: nn.Module,
        preprocess: Preprocess,
        facts: dict[str, Any],
        n_blocks: int | None = None,
        prefix: int | None = None,
    ) -> None:
        """Find the layers and see what one blank image gives.

        Args:
            module: called with pixels; placed and in evaluation mode.
            preprocess: of one image.
            facts: what is recorded of the preprocessing; ``size`` and ``patch`` (pixels) and ``dtype`` are used here.
            n_blocks: how many blocks its config promises, where known.
            prefix: how many tokens precede the patches, where the library says so.

        Raises:
            ModelError: layers of different shape, as in hierarchical models, or another prefix than promised.
        """
        self.module, self.preprocess, self.facts = module, preprocess, facts
        self.device = next(module.parameters()).device
        self.dtype = getattr(torch, facts["dtype"])
        accepted = inspect.signature(module.forward).parameters
        self._options = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in accepted else {}
        self._positional = "pixel_values" not in accepted
        self._masks_patches = "noise" in accepted
        blank = self.preprocess(pillow.new("RGB", (facts["size"],) * 2))[None].to(self.device)
        self._try(blank)
        self.stack = find_layers(module, lambda: self._forward(blank), n_blocks)
        self.layer_names, self.final_norm, self.n_layers = (
            self.stack.layer_names,
            self.stack.final_norm,
            len(self.stack.blocks),
        )
        self.tokens, self.width, self.prefix = self._probe(blank)
        if prefix not in (None, self.prefix):
            raise ModelError(
                f"{type(module).__name__} puts {self.prefix} tokens beside its patches and says {prefix}; layerwise reads "
                "models of one patch grid after their class and register tokens."
            )

    def _try(self, pixels: Tensor) -> None:
        try:
            self._forward(pixels)
        except Exception as error:
            size, trained = self.facts["size"], self.facts.get("trained_size")
            advice = "layerwise reads models that take pixels alone"
            if trained not in (None, size):
                advice = f"it does not interpolate its positions: write 'image_size: {trained}', at which it was trained"
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
            raise ModelError(
                f"{type(self.module).__name__} cannot read {size} x {size} pixels ({reason}); {advice}."
            ) from error

    def _probe(self, pixels: Tensor) -> tuple[int, int, int]:
        shapes: list[tuple[int, ...]] = []
        self.run(Batch({"pixel_values": pixels}, {}), lambda _, states: shapes.append(tuple(states.shape)))
        if len(set(shapes)) != 1 or len(shapes[0]) != 3:
            raise ModelError(
                f"{type(self.module).__name__} is hierarchical: its layers have the shapes {sorted(set(shapes))}; layerwise "
                "reads models whose blocks all have one width and one number of tokens, such as ViT."
            )
        patches = self._patches(pixels)
        _, tokens, width = shapes[0]
        if tokens < patches:
            raise ModelError(
                f"{type(self.module).__name__} gives {tokens} tokens for {patches} patches: it drops or merges some; "
                "layerwise reads models that keep them."
            )
        return tokens, width, tokens - patches

    def _patches(self, pixels: Tensor) -> int:
        return (pixels.shape[-2] // self.facts["patch"]) * (pixels.shape[-1] // self.facts["patch"])

    def prepare(self, samples: pd.DataFrame, folder: Path) -> ImageInputs:
        """Locate column ``image``, whose paths are relative to ``folder``."""
        paths = [folder / name for name in samples["image"]]
        return ImageInputs(paths, self.preprocess, self.facts["size"], self.tokens, self.prefix, self.device)

    def run(self, batch: Batch, on_layer: OnLayer, taps: Mapping[str, OnLayer] = NO_TAPS) -> None:
        """One forward pass over ``batch``; see ``LayeredModel``."""
        with reading(self.stack, on_layer, taps):
            self._forward(batch.inputs["pixel_values"])

    def _forward(self, pixels: Tensor) -> None:
        pixels = pixels.to(self.dtype)
        options: dict[str, Any] = dict(self._options)
        if self._masks_patches:  # MAE shuffles its patches unless told the order
            order = torch.arange(self._patches(pixels), dtype=torch.float32, device=self.device)
            options["noise"] = order.expand(len(pixels), -1)
        with torch.inference_mode():
            if self._positional:
                self.module(pixels)
            else:
                self.module(pixel_values=pixels, **options)
