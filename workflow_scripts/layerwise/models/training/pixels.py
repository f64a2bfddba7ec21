"""The pictures of a dataset as the model that is trained on them will see them."""

import json
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from layerwise.images import open_image
from layerwise.models.preprocessing import Chain, Preprocess

MEAN = DEVIATION = (0.5, 0.5, 0.5)
_BICUBIC = 3  # Pillow's code


def own_preprocess(size: int) -> Preprocess:
    """Return what ``write_processor`` describes: a square of ``size`` pixels, values from -1 to 1."""
    return Chain([size, size], size, mean=MEAN, deviation=DEVIATION, even=False)


def write_processor(folder: Path, size: int) -> None:
    """Describe the preprocessing as transformers does."""
    described = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": size, "width": size},
        "resample": _BICUBIC,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(MEAN),
        "image_std": list(DEVIATION),
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(described, indent=1) + "\n", "utf-8")


def read_pixels(samples: pd.DataFrame, folder: Path, preprocess: Preprocess) -> Tensor:
    """Return the pictures as (N, 3, S, S) float32.

    Args:
        samples: rows with a column ``image``, paths relative to ``folder``.
        folder: of samples.parquet.
        preprocess: of one picture.

    Raises:
        DataError: a picture that cannot be read.
    """
    return torch.stack([preprocess(open_image(folder / name)) for name in samples["image"]])


def patches(pixels: Tensor, side: int) -> Tensor:
    """Cut pictures into patches with zero mean and unit variance each; a patch of one colour becomes zeros.

    Args:
        pixels: (B, 3, S, S), all channels on one scale: else every grey patch would show the same contrast of channels.
        side: of a patch.

    Returns:
        (B, K, 3 * side * side), patches in reading order.
    """
    count, channels, height, width = pixels.shape
    cut = pixels.reshape(count, channels, height // side, side, width // side, side).permute(0, 2, 4, 3, 5, 1)
    flat = cut.reshape(count, -1, side * side * channels)
    spread = (flat.var(-1, keepdim=True) + 1e-6).sqrt()
    return (flat - flat.mean(-1, keepdim=True)) / spread
