"""Text models in Hugging Face folders: decoders and encoders."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from layerwise.errors import ModelError
from layerwise.models.backbone import load_backbone
from layerwise.models.layered import Batch, OnLayer
from layerwise.models.layers import find_layers, reading

# These count positions from padding_idx + 1; with right padding their own default is right.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet", "esm", "longformer"}


class TextInputs:
    """Tokenised texts of one dataset."""

    def __init__(self, ids: list[list[int]], special: list[list[int]], pad_id: int, device: torch.device) -> None:
        """Keep token ids and special-token flags."""
        self.ids, self.special, self.pad_id, self.device = ids, special, pad_id, device
        self.lengths = np.array([len(tokens) for tokens in ids], dtype=np.int64)

    def batch(self, rows: list[int]) -> Batch:
        """Pad these rows on the right."""
        longest = int(self.lengths[rows].max())
        ids = torch.full((len(rows), longest), self.pad_id, dtype=torch.long)
        content = torch.zeros((len(rows), longest), dtype=torch.bool)
        for i, row in enumerate(rows):
            ids[i, : len(self.ids[row])] = torch.tensor(self.ids[row])
            content[i, : len(self.ids[row])] = ~torch.tensor(self.special[row], dtype=torch.bool)
        mask = torch.arange(longest) < torch.from_numpy(self.lengths[rows])[:, None]
        inputs = {"input_ids": ids.to(self.device), "attention_mask": mask.long().to(self.device)}
        after_first = mask.clone()
        after_first[:, 0] = False
        masks = {"all": mask, "content": content, "skip_first": after_first}
        return Batch(inputs, {name: flags.to(self.device) for name, flags in masks.items()})


class TextModel:
    """A Hugging Face text backbone (no head), read at every layer."""

    def __init__(self, module: nn.Module, tokenizer: PreTrainedTokenizerBase, max_tokens: int, device: str) -> None:
        """Place the model on its device; see ``load`` for the checks."""
        self.device = torch.device(device)
        self.module, self.tokenizer, self.max_tokens = module.to(self.device).eval(), tokenizer, max_tokens
        config: Any = module.config
        self.stack = find_layers(module, config.num_hidden_layers)
        self.n_layers, self.width = len(self.stack.blocks), int(config.hidden_size)
        self._vocabulary = int(config.vocab_size)
        self.layer_names, self.final_norm = self.stack.layer_names, self.stack.final_norm
        accepted = inspect.signature(module.forward).parameters
        self._positions = "position_ids" in accepted and config.model_type not in _OFFSET_POSITIONS
        self._options = {"use_cache": False} if "use_cache" in accepted else {}

    def prepare(self, samples: pd.DataFrame, _folder: Path | None = None) -> TextInputs:
        """Tokenise column ``text``, truncated to ``max_tokens``; an empty text becomes one special token.

        Raises:
            ModelError: the tokenizer writes a token that the model has no embedding for.
        """
        texts = samples["text"].tolist()
        encoded = self.tokenizer(
            texts, truncation=True, max_length=self.max_tokens, return_special_tokens_mask=True, padding=False
        )
        empty = next(t for t in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self._pad_id) if t is not None)
        ids = [list(tokens) or [empty] for tokens in encoded["input_ids"]]
        special = [list(flags) or [1] for flags in encoded["special_tokens_mask"]]
        highest = max(map(max, ids))
        if highest >= self._vocabulary:
            raise ModelError(f"the tokenizer writes token {highest} of {self._vocabulary} known ones; use the model's own.")
        return TextInputs(ids, special, self._pad_id, self.device)

    @property
    def facts(self) -> dict[str, Any]:
        """What is recorded of the tokenisation."""
        return {"max_tokens": self.max_tokens, "tokenizer": type(self.tokenizer).__name__}

    @property
    def _pad_id(self) -> int:
        """The padding token, or 0: padded positions are masked, so any id of the vocabulary serves."""
        return self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0

    def run(self, batch: Batch, on_layer: OnLayer) -> None:
        """One forward pass over ``batch``; see ``LayeredModel``."""
        inputs: dict[str, Tensor | bool] = {**batch.inputs, **self._options}
        if self._positions:
            shape = batch.masks["all"].shape
            inputs["position_ids"] = torch.arange(shape[1], device=self.device).expand(shape)
        with torch.inference_mode(), reading(self.stack, on_layer):
            self.module(**inputs)


def load_entry(folder: Path, entry: dict[str, Any], device: str) -> TextModel:
    """Load as the config's ``entry`` says; see ``load``."""
    return load(folder, entry["name"], entry["dtype"], entry["max_tokens"], device)


def load(folder: Path, name: str, dtype: str, max_tokens: int, device: str) -> TextModel:
    """Load a text model from a Hugging Face folder, without remote code, from safetensors only.

    Args:
        folder: holds config, tokenizer and safetensors files.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16"; never the checkpoint's own by default.
        max_tokens: longer texts are truncated.
        device: "cpu", "cuda", "cuda:N" or "mps".

    Raises:
        ModelError: missing or damaged files, missing weights, an unknown architecture, or more tokens than the model has
            positions.
    """
    module, config, tokenizer = load_backbone(folder, name, dtype, AutoTokenizer, attn_implementation="sdpa")
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and config.model_type in _OFFSET_POSITIONS:
        positions -= config.pad_token_id + 1
    if positions is not None and max_tokens > positions:
        raise ModelError(f"model {name!r} has {positions} positions; write 'max_tokens: {positions}' or fewer.")
    return TextModel(module, tokenizer, max_tokens, device)
