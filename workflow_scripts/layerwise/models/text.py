"""Text models in Hugging Face folders: decoders and encoders."""

import functools
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from layerwise.errors import ModelError
from layerwise.models.backbone import load_backbone
from layerwise.models.layered import NO_TAPS, Batch, OnLayer
from layerwise.models.layers import find_layers, reading

# These count positions from padding_idx + 1; with right padding their own default is right.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet", "esm", "longformer"}


class OwnTokenizer:
    """Opens the tokenizer that a folder holds."""

    @staticmethod
    def from_pretrained(folder: Path, **options: Any) -> PreTrainedTokenizerBase:  # noqa: ANN401
        """Return it as saved: for some model types transformers 5 builds the family's own pipeline over a generic one."""
        file = folder / "tokenizer_config.json"
        described = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        generic = described.get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
        opener = PreTrainedTokenizerFast if generic and (folder / "tokenizer.json").is_file() else AutoTokenizer
        opened: PreTrainedTokenizerBase = opener.from_pretrained(folder, **options)
        return opened


class TextInputs:
    """Tokenised texts of one dataset."""

    def __init__(self, ids: list[list[int]], special: list[list[int]], pad_id: int, device: torch.device) -> None:
        """Keep token ids and special-token flags."""
        self.ids, self.special, self.pad_id, self.device = ids, special, pad_id, device
        self.lengths = np.array([len(tokens) for tokens in ids], dtype=np.int64)

    def with_tokens(self, ids: list[list[int]], special: list[list[int]]) -> "TextInputs":
        """Return the same inputs with other tokens."""
        return TextInputs(ids, special, self.pad_id, self.device)

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

    def __init__(
        self, module: nn.Module, tokenizer: PreTrainedTokenizerBase, max_tokens: int, bidirectional: bool = False
    ) -> None:
        """Find the layers; see ``load`` for the checks.

        Args:
            module: the backbone, placed and in evaluation mode.
            tokenizer: its own.
            max_tokens: longer texts are truncated.
            bidirectional: every token sees every other one, also in a decoder, as LLM2Vec was trained.
        """
        self.module, self.tokenizer, self.max_tokens, self.bidirectional = module, tokenizer, max_tokens, bidirectional
        config: Any = module.config
        embeddings: Any = module.get_input_embeddings()  # type: ignore[operator]
        self.device = embeddings.weight.device
        self.width, self._vocabulary = int(config.hidden_size), int(embeddings.num_embeddings)
        accepted = inspect.signature(module.forward).parameters
        self._positions = "position_ids" in accepted and config.model_type not in _OFFSET_POSITIONS
        self._options = {"use_cache": False} if "use_cache" in accepted else {}
        probe = TextInputs([[self._pad_id] * 3], [[0] * 3], self._pad_id, self.device).batch([0])
        self.stack = find_layers(module, lambda: self._forward(probe), config.num_hidden_layers)
        self.n_layers, self.layer_names, self.final_norm = (
            len(self.stack.blocks),
            self.stack.layer_names,
            self.stack.final_norm,
        )

    def prepare(self, samples: pd.DataFrame, _folder: Path | None = None) -> TextInputs:
        """Tokenise column ``text``, truncated to ``max_tokens``; an empty text becomes one special token.

        Raises:
            ModelError: the tokenizer writes a token that the model has no embedding for, or none for most texts.
        """
        texts = samples["text"].tolist()
        encoded = self.tokenizer(
            texts, truncation=True, max_length=self.max_tokens, return_special_tokens_mask=True, padding=False
        )
        lost = sum(not tokens and bool(text.strip()) for text, tokens in zip(texts, encoded["input_ids"], strict=True))
        if lost > len(texts) / 2:
            kind = type(self.tokenizer).__name__
            raise ModelError(f"tokenizer {kind} writes no token for {lost} of {len(texts)} texts; use the model's own.")
        empty = next(t for t in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self._pad_id) if t is not None)
        ids = [list(tokens) or [empty] for tokens in encoded["input_ids"]]
        special = [list(flags) or [1] for flags in encoded["special_tokens_mask"]]
        highest = max(map(max, ids))
        if highest >= self._vocabulary:
            raise ModelError(f"the tokenizer writes token {highest} of {self._vocabulary} known ones; use the model's own.")
        return TextInputs(ids, special, self._pad_id, self.device)

    @property
    def ordinary_tokens(self) -> NDArray[np.int64]:
        """The ids of the tokenizer that are not special and that the model has an embedding for."""
        every = np.arange(min(len(self.tokenizer), self._vocabulary))
        return np.setdiff1d(every, np.array(self.tokenizer.all_special_ids, dtype=np.int64))

    @functools.cached_property
    def causal(self) -> bool:
        """Whether the states of a token depend on no later token, seen in a pass over two inputs that differ at the end."""
        first = np.resize(self.ordinary_tokens, 8)
        second = np.concatenate([first[:5], np.resize(self.ordinary_tokens[::-1], 3)])
        batch = TextInputs([first.tolist(), second.tolist()], [[0] * 8] * 2, self._pad_id, self.device).batch([0, 1])
        differences = []

        def compare(_layer: int, states: Tensor) -> None:
            early = states[:, :5].float()
            differences.append(float((early[0] - early[1]).abs().max() / early.abs().max().clamp_min(1e-30)))

        self.run(batch, compare)
        return max(differences) < 1e-3

    @property
    def facts(self) -> dict[str, Any]:
        """What is recorded of the tokenisation."""
        attention = "bidirectional" if self.bidirectional else "model"
        return {"max_tokens": self.max_tokens, "tokenizer": type(self.tokenizer).__name__, "attention": attention}

    @property
    def _pad_id(self) -> int:
        """The padding token, or 0: padded positions are masked, so any id of the vocabulary serves."""
        return self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0

    def run(self, batch: Batch, on_layer: OnLayer, taps: Mapping[str, OnLayer] = NO_TAPS) -> None:
        """One forward pass over ``batch``; see ``LayeredModel``."""
        with reading(self.stack, on_layer, taps):
            self._forward(batch)

    def _forward(self, batch: Batch) -> None:
        inputs: dict[str, Tensor | bool] = {**batch.inputs, **self._options}
        mask = batch.masks["all"]
        if self._positions:
            inputs["position_ids"] = torch.arange(mask.shape[1], device=self.device).expand(mask.shape)
        if self.bidirectional:  # a mask of four dimensions is taken as it is by every decoder of transformers
            inputs["attention_mask"] = mask[:, None, None, :].expand(-1, 1, mask.shape[1], -1)
        with torch.inference_mode():
            self.module(**inputs)


def load_entry(folder: Path, entry: dict[str, Any], device: str) -> TextModel:
    """Load as the config's ``entry`` says; see ``load``."""
    return load(folder, entry["name"], entry["dtype"], entry["max_tokens"], device, entry["attention"])


def load(folder: Path, name: str, dtype: str, max_tokens: int, device: str, attention: str = "model") -> TextModel:
    """Load a text model from a Hugging Face folder, without remote code, from safetensors only.

    Args:
        folder: holds config, tokenizer and safetensors files.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16"; never the checkpoint's own by default.
        max_tokens: longer texts are truncated.
        device: "cpu", "cuda", "cuda:N", "mps" or "split" (spread over the visible GPUs).
        attention: "model", its own; "bidirectional", the causal mask removed, as LLM2Vec does.

    Raises:
        ModelError: missing or damaged files, missing weights, an unknown architecture, more tokens than the model has
            positions, or no attention whose mask could be removed.
    """
    module, tokenizer = load_backbone(folder, name, dtype, OwnTokenizer, "text", device)
    config: Any = module.config
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and config.model_type in _OFFSET_POSITIONS:
        positions -= config.pad_token_id + 1
    if positions is not None and max_tokens > positions:
        raise ModelError(f"model {name!r} has {positions} positions; write 'max_tokens: {positions}' or fewer.")
    if attention == "bidirectional" and getattr(config, "_attn_implementation", None) != "sdpa":
        raise ModelError(f"model {name!r} ({config.model_type}) has no attention mask to remove; write 'attention: model'.")
    return TextModel(module, tokenizer, max_tokens, attention == "bidirectional")
