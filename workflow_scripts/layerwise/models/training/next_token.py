"""Predicting the next token, whatever the architecture."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

from layerwise.models.training.tokens import DECODER, encode, train_tokenizer

IGNORED = -100


class NextToken:
    """A decoder of transformers, or a state space, and its texts."""

    def __init__(self, texts: list[str], options: dict[str, Any]) -> None:
        """Train the tokenizer; ``module`` is set by the family's file.

        Args:
            texts: of the dataset.
            options: the config's entry: ``vocabulary``, ``tokens``.
        """
        self.module: Any = None
        self.tokenizer = train_tokenizer(texts, options["vocabulary"], DECODER, options["tokens"])
        self.ids, self.mask = encode(self.tokenizer, texts, options["tokens"])
        self.rows = len(self.ids)

    def special(self) -> dict[str, int]:
        """Ids of the special tokens, as a configuration of transformers names them."""
        ids = {name: getattr(self.tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
        return {f"{name}_token_id": number for name, number in ids.items()}

    def loss(self, rows: Tensor, _generator: torch.Generator) -> Tensor:
        """Cross-entropy of the next token in nats, padding left out."""
        ids, mask = self.ids[rows], self.mask[rows]
        longest = int(mask.sum(1).max())
        ids, mask = ids[:, :longest], mask[:, :longest]
        labels = ids.masked_fill(mask == 0, IGNORED)
        found: Tensor = self.module(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False).loss
        return found

    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder with its tokenizer."""
        save(self.module, folder)
        self.tokenizer.save_pretrained(folder)


def save(module: Any, folder: Path) -> None:  # noqa: ANN401 - any model of transformers
    """Write the weights and the configuration of a model of transformers, without a progress bar."""
    disable_progress_bar()
    module.save_pretrained(folder, safe_serialization=True)


def texts_of(samples: pd.DataFrame) -> list[str]:
    """Return the texts of a dataset."""
    return [str(text) for text in samples["text"]]
