"""A masked language model: BERT, filling in 15 % of the tokens."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from layerwise.models.training.next_token import IGNORED, save, texts_of
from layerwise.models.training.seeded import seeded
from layerwise.models.training.tokens import ENCODER, encode, train_tokenizer

_SHARE, _MASKED, _REPLACED = 0.15, 0.8, 0.1  # of the chosen tokens, so many are masked and so many replaced


class MaskedTokens:
    """BERT with its head, and its texts."""

    def __init__(self, texts: list[str], options: dict[str, Any]) -> None:
        """Train the tokenizer and draw the weights; ``options`` is the config's entry."""
        self.tokenizer = train_tokenizer(texts, options["vocabulary"], ENCODER, options["tokens"])
        self.ids, self.mask = encode(self.tokenizer, texts, options["tokens"])
        self.rows, self.vocabulary = len(self.ids), len(self.tokenizer)
        config = BertConfig(
            vocab_size=self.vocabulary,
            hidden_size=options["width"],
            num_hidden_layers=options["blocks"],
            num_attention_heads=options["heads"],
            intermediate_size=4 * options["width"],
            max_position_embeddings=options["tokens"],
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=self.tokenizer.pad_token_id,
        )

        def draw() -> BertForMaskedLM:
            return BertForMaskedLM(config)

        self.module: Any = seeded(options["seed"], draw)

    def loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Cross-entropy of the chosen tokens in nats."""
        ids, mask = self.ids[rows], self.mask[rows]
        longest = int(mask.sum(1).max())
        ids, mask = ids[:, :longest], mask[:, :longest]
        changed, labels = self.hide(ids, generator)
        found: Tensor = self.module(input_ids=changed, attention_mask=mask, labels=labels).loss
        return found

    def hide(self, ids: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Choose 15 % of the tokens of every text, at least one, and hide them as BERT does.

        Args:
            ids: (B, T).
            generator: of what is chosen and replaced.

        Returns:
            (B, T) ids with the chosen tokens masked (80 %), replaced by any token (10 %) or kept, and (B, T) labels: the
            chosen tokens, ``IGNORED`` elsewhere.
        """
        content = ids >= len(ENCODER)  # the special tokens come first in the vocabulary
        draw = torch.rand(ids.shape, generator=generator).masked_fill(~content, 2.0)
        wanted = (content.sum(1) * _SHARE).round().clamp(min=1)
        chosen = (draw.argsort(1).argsort(1) < wanted[:, None]) & content
        fate = torch.rand(ids.shape, generator=generator)
        other = torch.randint(len(ENCODER), self.vocabulary, ids.shape, generator=generator)
        changed = torch.where(chosen & (fate < _MASKED), int(self.tokenizer.mask_token_id or 0), ids)
        changed = torch.where(chosen & (fate >= _MASKED) & (fate < _MASKED + _REPLACED), other, changed)
        return changed, ids.masked_fill(~chosen, IGNORED)

    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder with its tokenizer."""
        save(self.module, folder)
        self.tokenizer.save_pretrained(folder)


def build(samples: pd.DataFrame, _folder: Path, options: dict[str, Any]) -> MaskedTokens:
    """Return the objective for texts; ``options`` is the config's entry."""
    return MaskedTokens(texts_of(samples), options)
