"""A causal language model: GPT-NeoX, the architecture of Pythia, predicting the next token."""

from pathlib import Path
from typing import Any

import pandas as pd
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from layerwise.models.training.next_token import NextToken, texts_of
from layerwise.models.training.seeded import seeded


def build(samples: pd.DataFrame, _folder: Path, options: dict[str, Any]) -> NextToken:
    """Return the objective for texts; ``options`` is the config's entry."""
    made = NextToken(texts_of(samples), options)
    config = GPTNeoXConfig(
        vocab_size=len(made.tokenizer),
        hidden_size=options["width"],
        num_hidden_layers=options["blocks"],
        num_attention_heads=options["heads"],
        intermediate_size=4 * options["width"],
        max_position_embeddings=options["tokens"],
        **made.special(),
    )

    def draw() -> GPTNeoXForCausalLM:
        return GPTNeoXForCausalLM(config)

    made.module = seeded(options["seed"], draw)
    return made
