"""AIM (El-Nouby et al., 2024): every patch is drawn from those before it; a prefix of random length sees itself whole."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from layerwise.models import aim
from layerwise.models.preprocessing import study_preprocess
from layerwise.models.training.pixels import DEVIATION, MEAN, patches, read_pixels
from layerwise.models.training.seeded import seeded

_CHANNELS = 3


class NextPatch:
    """AIM's trunk with a head of two layers, and its pictures."""

    def __init__(self, samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> None:
        """Read the pictures, prepared as the loader does, and draw the weights."""
        width, patch, size = options["width"], options["patch"], options["image_size"]
        self.layout = aim.Layout(width, options["blocks"], options["heads"], patch, 4.0, size)
        as_loaded = study_preprocess(size)
        self.pixels = read_pixels(samples, folder, as_loaded)
        one_scale = dataclasses.replace(as_loaded, mean=MEAN, deviation=DEVIATION)
        self.targets = patches(read_pixels(samples, folder, one_scale), patch)
        self.rows = len(self.pixels)

        def draw() -> nn.ModuleDict:
            head = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, _CHANNELS * patch**2))
            made = nn.ModuleDict({"trunk": aim.build(self.layout), "head": head})
            made["trunk"].pos_embed.requires_grad_(False)  # computed, and not in the file
            return made

        self.module: Any = seeded(options["seed"], draw)

    def loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Mean squared error of the normalised pixels of every patch behind the prefix; 1 for average grey."""
        target = self.targets[rows]
        count = target.shape[1]
        prefix = torch.randint(1, count, (len(rows),), generator=generator)
        states = self.module["trunk"].forward_features(self.pixels[rows], attn_mask=prefix_mask(prefix, count))
        drawn = self.module["head"](states[:, :-1])
        error = (drawn - target[:, 1:]).square().mean(-1)
        behind = torch.arange(1, count) >= prefix[:, None]
        return (error * behind).sum() / behind.sum()

    def save(self, folder: Path) -> None:
        """Write a folder in the published layout; the head lies in it, and no loader reads it."""
        from safetensors.torch import save_file

        state = {aim.published_name(key): value for key, value in self.module["trunk"].state_dict().items()}
        state |= {f"head.{key}": value for key, value in self.module["head"].state_dict().items()}
        state.pop("pos_embed")
        folder.mkdir(parents=True, exist_ok=True)
        save_file({key: value.contiguous() for key, value in state.items()}, folder / "model.safetensors")
        sizes = self.layout
        described = {
            "img_size": sizes.image_size,
            "patch_size": sizes.patch,
            "embed_dim": sizes.width,
            "num_blocks": sizes.depth,
            "num_heads": sizes.heads,
        }
        (folder / "config.json").write_text(json.dumps(described, indent=1) + "\n", "utf-8")


def prefix_mask(prefix: Tensor, count: int) -> Tensor:
    """Return (B, 1, count, count) bool, True where a patch (row) sees another (column): those before, and the prefix.

    Args:
        prefix: (B,) how many patches form the prefix.
        count: patches of a picture.
    """
    order = torch.arange(count)
    before = order[None, :] <= order[:, None]
    inside = order[None, None, :] < prefix[:, None, None]
    return (before[None] | inside)[:, None]


def build(samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> NextPatch:
    """Return the objective for pictures; ``options`` is the config's entry."""
    return NextPatch(samples, folder, options)
