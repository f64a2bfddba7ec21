"""A state-space language model: Mamba, predicting the next token; without its GPU kernels it runs token by token."""

from pathlib import Path
from typing import Any

import pandas as pd
from transformers import MambaConfig, MambaForCausalLM

from layerwise.models.training.next_token import NextToken, texts_of
from layerwise.models.training.seeded import seeded

_STATE = 8


def build(samples: pd.DataFrame, _folder: Path, options: dict[str, Any]) -> NextToken:
    """Return the objective for texts; ``options`` is the config's entry."""
    made = NextToken(texts_of(samples), options)
    config = MambaConfig(
        vocab_size=len(made.tokenizer),
        hidden_size=options["width"],
        num_hidden_layers=options["blocks"],
        state_size=_STATE,
        **made.special(),
    )

    def draw() -> MambaForCausalLM:
        return MambaForCausalLM(config)

    made.module = seeded(options["seed"], draw)
    return made
