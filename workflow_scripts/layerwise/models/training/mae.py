"""A masked autoencoder: three quarters of the patches are hidden, their normalised pixels are to be drawn."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from transformers import ViTMAEConfig, ViTMAEForPreTraining

from layerwise.models.mae_positions import set_positions
from layerwise.models.training.next_token import save
from layerwise.models.training.pixels import own_preprocess, read_pixels, write_processor
from layerwise.models.training.seeded import seeded

_DECODER_BLOCKS = 2


class MaskedPatches:
    """ViT-MAE with its decoder, and its pictures."""

    def __init__(self, samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> None:
        """Read the pictures and draw the weights."""
        width, self.size = options["width"], options["image_size"]
        self.pixels = read_pixels(samples, folder, own_preprocess(self.size))
        self.rows, self.patches = len(self.pixels), (self.size // options["patch"]) ** 2
        config = ViTMAEConfig(
            hidden_size=width,
            num_hidden_layers=options["blocks"],
            num_attention_heads=options["heads"],
            intermediate_size=4 * width,
            image_size=self.size,
            patch_size=options["patch"],
            decoder_hidden_size=width,
            decoder_num_hidden_layers=_DECODER_BLOCKS,
            decoder_num_attention_heads=options["heads"],
            decoder_intermediate_size=4 * width,
            mask_ratio=0.75,
            norm_pix_loss=True,
        )

        def draw() -> ViTMAEForPreTraining:
            made = ViTMAEForPreTraining(config)
            set_positions(made)
            return made

        self.module: Any = seeded(options["seed"], draw)

    def loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Mean squared error of the hidden patches; 1 for a patch of average grey."""
        noise = torch.rand((len(rows), self.patches), generator=generator)
        found: Tensor = self.module(pixel_values=self.pixels[rows], noise=noise).loss
        return found

    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder with its image processor."""
        save(self.module, folder)
        write_processor(folder, self.size)


def build(samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> MaskedPatches:
    """Return the objective for pictures; ``options`` is the config's entry."""
    return MaskedPatches(samples, folder, options)
