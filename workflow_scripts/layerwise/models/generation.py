"""Text that a model writes: greedy decoding with a cache, from a Hugging Face folder and without remote code."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from layerwise.errors import ModelError
from layerwise.models.text import OwnTokenizer

_OPTIONS: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}


@dataclasses.dataclass(frozen=True)
class Written:
    """A prompt with what was written: ``n_tokens`` of both as tokenised; ``finished``: the model ended by itself."""

    text: str
    n_tokens: int
    finished: bool


class Writer:
    """A causal language model with its head and tokenizer."""

    def __init__(self, folder: Path, name: str, dtype: str, device: str) -> None:
        """Load it.

        Args:
            folder: holds config, tokenizer and safetensors files.
            name: of the model, for messages.
            dtype: "float32", "bfloat16" or "float16".
            device: "cpu", "cuda", "cuda:N", "mps" or "split".

        Raises:
            ModelError: the folder cannot be loaded, or is no model that writes text.
        """
        disable_progress_bar()
        try:
            config = AutoConfig.from_pretrained(folder, **_OPTIONS)
            self.tokenizer: PreTrainedTokenizerBase = OwnTokenizer.from_pretrained(folder, **_OPTIONS)
            self.module, loading = AutoModelForCausalLM.from_pretrained(
                folder,
                config=config,
                dtype=getattr(torch, dtype),
                use_safetensors=True,
                output_loading_info=True,
                **({"device_map": "auto"} if device == "split" else {}),
                **_OPTIONS,
            )
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"model {name!r} cannot write text ({type(error).__name__}: {reason}).") from error
        missing = sorted(loading["missing_keys"])
        if missing:
            raise ModelError(f"model {name!r} cannot write text: its files lack {missing[0]!r}; use a model with its head.")
        self.name = name
        self.module = (self.module if device == "split" else self.module.to(torch.device(device))).eval()
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.convert_ids_to_tokens(0)

    def prompts(self, texts: list[str], template: str, chat: bool, system: str) -> list[str]:
        """Return what the model is given for each text: ``template`` with the text in place of ``{text}``.

        With ``chat`` it is the user's turn in the chat template of the tokenizer, after ``system`` where that is not empty.

        Raises:
            ModelError: the tokenizer has no chat template.
        """
        filled = [template.replace("{text}", text) for text in texts]
        if not chat:
            return filled
        if not self.tokenizer.chat_template:
            raise ModelError(f"model {self.name!r} has no chat template; write 'chat: false'.")
        start = [{"role": "system", "content": system}] if system else []
        turns = [[*start, {"role": "user", "content": text}] for text in filled]
        written = [
            str(self.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)) for turn in turns
        ]
        return [text.removeprefix(self._opening) for text in written]

    @property
    def _opening(self) -> str:
        """The token that the tokenizer puts before every text by itself: a chat template that writes it would double it."""
        bos = self.tokenizer.bos_token_id
        adds = bos is not None and self.tokenizer("a")["input_ids"][:1] == [bos]
        return str(self.tokenizer.bos_token) if adds else ""

    def write(self, prompts: list[str], most: int, batch: int, progress: Callable[[int, int], None]) -> list[Written]:
        """Continue every prompt greedily by at most ``most`` tokens, ``batch`` prompts of similar length at a time.

        A prompt's own tokens are never cut. The order of the result is that of ``prompts``.

        Raises:
            ModelError: a prompt and its continuation need more positions than the model has.
        """
        lengths = [len(tokens) for tokens in self.tokenizer(prompts)["input_ids"]]
        positions = getattr(self.module.config, "max_position_embeddings", None)
        if positions is not None and max(lengths) + most > positions:
            raise ModelError(
                f"model {self.name!r} has {positions} positions, a prompt of {max(lengths)} tokens and "
                f"'max_new_tokens: {most}' need more; write 'max_new_tokens: {max(1, positions - max(lengths))}' or fewer."
            )
        order = sorted(range(len(prompts)), key=lambda i: -lengths[i])
        found: dict[int, Written] = {}
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            for row, written in zip(rows, self._continue([prompts[i] for i in rows], most), strict=True):
                found[row] = written
            progress(len(found), len(prompts))
        return [found[i] for i in range(len(prompts))]

    def _continue(self, prompts: list[str], most: int) -> list[Written]:
        encoded = self.tokenizer(prompts, return_tensors="pt", padding=True)
        encoded = {key: encoded[key].to(self.module.device) for key in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            output = self.module.generate(
                **encoded,
                max_new_tokens=most,
                do_sample=False,
                num_beams=1,
                temperature=None,
                top_p=None,
                top_k=None,
                use_cache=True,
                pad_token_id=self.tokenizer.pad_token_id,
            )
        ends = self.module.generation_config.eos_token_id
        stops = set(ends if isinstance(ends, list) else [ends])
        return [
            self._written(prompt, row[encoded["input_ids"].shape[1] :].tolist(), stops)
            for prompt, row in zip(prompts, output, strict=True)
        ]

    def _written(self, prompt: str, new: list[int], stops: set[int]) -> Written:
        end = next((at for at, token in enumerate(new) if token in stops), len(new))
        text = prompt + str(self.tokenizer.decode(new[:end], skip_special_tokens=True))
        return Written(text, len(self.tokenizer(text)["input_ids"]), end < len(new))
