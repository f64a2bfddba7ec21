"""A vision transformer that learns the classes of its pictures, saved as timm does."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from layerwise.errors import DataError
from layerwise.models.training.pixels import DEVIATION, MEAN, own_preprocess, read_pixels
from layerwise.models.training.seeded import seeded


class Classes:
    """timm's ViT with a head of classes, and its labelled pictures."""

    def __init__(self, samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> None:
        """Read pictures and labels and draw the weights.

        Raises:
            DataError: no such column of labels, or one class only.
        """
        import timm

        label = options["label"]
        if label not in samples:
            raise DataError(f"there is no column {label!r} to learn; columns: {', '.join(map(str, samples.columns))}.")
        self.names = sorted(samples[label].astype(str).unique())
        if len(self.names) < 2:
            raise DataError(f"column {label!r} has one class, {self.names[0]!r}; two or more can be learned.")
        self.labels = torch.tensor([self.names.index(str(value)) for value in samples[label]])
        self.pixels = read_pixels(samples, folder, own_preprocess(options["image_size"]))
        self.rows = len(self.pixels)
        self.arguments = {
            "img_size": options["image_size"],
            "patch_size": options["patch"],
            "embed_dim": options["width"],
            "depth": options["blocks"],
            "num_heads": options["heads"],
        }

        def draw() -> nn.Module:
            made: nn.Module = timm.create_model(
                "vit_tiny_patch16_224", pretrained=False, num_classes=len(self.names), **self.arguments
            )
            return made

        self.module: Any = seeded(options["seed"], draw)

    def loss(self, rows: Tensor, _generator: torch.Generator) -> Tensor:
        """Cross-entropy of the class in nats."""
        return nn.functional.cross_entropy(self.module(self.pixels[rows]), self.labels[rows])

    def save(self, folder: Path) -> None:
        """Write a timm folder."""
        from timm.models import save_for_hf

        size = self.arguments["img_size"]
        data = {"input_size": (3, size, size), "mean": MEAN, "std": DEVIATION, "crop_pct": 1.0, "interpolation": "bicubic"}
        described = {"pretrained_cfg": data, "label_names": self.names}
        save_for_hf(self.module, folder, model_config=described, model_args=self.arguments, safe_serialization=True)


def build(samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Classes:
    """Return the objective for labelled pictures; ``options`` is the config's entry."""
    return Classes(samples, folder, options)
