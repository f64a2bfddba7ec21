"""CLIP: pictures and captions made of their labels, each to find the other among those of its batch."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from transformers import CLIPConfig, CLIPModel

from layerwise.errors import DataError
from layerwise.models.training.next_token import save
from layerwise.models.training.pixels import own_preprocess, read_pixels, write_processor
from layerwise.models.training.seeded import seeded
from layerwise.models.training.tokens import CAPTION, encode, train_tokenizer

_TEXT_BLOCKS, _LONGEST = 4, 48


class Pairs:
    """CLIP's two towers, and its pictures with their captions."""

    def __init__(self, samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> None:
        """Read the pictures, train the tokenizer on the captions and draw the weights.

        Raises:
            DataError: no such column.
        """
        self.size = options["image_size"]
        self.pixels = read_pixels(samples, folder, own_preprocess(self.size))
        written = captions(samples, options["caption"])
        self.tokenizer = train_tokenizer(written, options["vocabulary"], CAPTION, _LONGEST)
        self.ids, self.mask = encode(self.tokenizer, written, _LONGEST)
        self.rows = len(self.ids)
        shared = {
            "hidden_size": options["width"],
            "intermediate_size": 4 * options["width"],
            "num_attention_heads": options["heads"],
            "projection_dim": options["width"],
        }
        text = {
            "num_hidden_layers": _TEXT_BLOCKS,
            "vocab_size": len(self.tokenizer),
            "max_position_embeddings": _LONGEST,
            "bos_token_id": self.tokenizer.bos_token_id,
            "eos_token_id": self.tokenizer.eos_token_id,
            "pad_token_id": self.tokenizer.pad_token_id,
        }
        vision = {"num_hidden_layers": options["blocks"], "image_size": self.size, "patch_size": options["patch"]}
        config = CLIPConfig(text_config=shared | text, vision_config=shared | vision, projection_dim=options["width"])

        def draw() -> CLIPModel:
            return CLIPModel(config)

        self.module: Any = seeded(options["seed"], draw)

    def loss(self, rows: Tensor, _generator: torch.Generator) -> Tensor:
        """InfoNCE over the batch, both ways, in nats; log of the batch size for a model that knows nothing."""
        given = {"input_ids": self.ids[rows], "attention_mask": self.mask[rows], "pixel_values": self.pixels[rows]}
        found: Tensor = self.module(**given, return_loss=True).loss
        return found

    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder with its tokenizer and image processor."""
        save(self.module, folder)
        self.tokenizer.save_pretrained(folder)
        write_processor(folder, self.size)


def captions(samples: pd.DataFrame, columns: list[str]) -> list[str]:
    """Return such as "letter B, font DejaVuSans, quadrant upper left" for columns of labels.

    Raises:
        DataError: a column is not there.
    """
    absent = [column for column in columns if column not in samples]
    if absent:
        raise DataError(f"there is no column {absent[0]!r} to write captions of; columns: {', '.join(samples.columns)}.")
    rows = zip(*(samples[column].astype(str) for column in columns), strict=True)
    return [", ".join(f"{name} {value}" for name, value in zip(columns, row, strict=True)) for row in rows]


def build(samples: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Pairs:
    """Return the objective for labelled pictures; ``options`` is the config's entry."""
    return Pairs(samples, folder, options)
