"""A tokenizer trained on the texts of a dataset, and their tokens."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

DECODER = {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "pad_token": "<|padding|>"}
ENCODER = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
CAPTION = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|padding|>"}


def train_tokenizer(texts: Sequence[str], size: int, special: dict[str, str], longest: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE on ``texts``: every text has tokens, and none is unknown.

    Args:
        texts: what it is trained on; the same texts give the same tokenizer.
        size: of the vocabulary, 256 bytes and the special tokens included; fewer where the texts do not give as many.
        special: names of transformers ("eos_token") to tokens. ``ENCODER`` and ``CAPTION`` are put around each text.
        longest: tokens that the model has positions for.
    """
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(dict.fromkeys(special.values())),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    around = [special[name] for name in ("cls_token", "sep_token") if name in special]
    if not around and special["bos_token"] != special["eos_token"]:
        around = [special["bos_token"], special["eos_token"]]
    if around:
        numbers = [(token, made.token_to_id(token)) for token in around]
        made.post_processor = processors.TemplateProcessing(single=f"{around[0]} $A {around[1]}", special_tokens=numbers)
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=longest, **special)


def encode(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], longest: int) -> tuple[Tensor, Tensor]:
    """Return token ids and masks of real tokens, (N, T) int64, padded on the right and cut to ``longest``."""
    given = list(texts)
    encoded = tokenizer(given, truncation=True, max_length=longest, padding=True, return_attention_mask=True)
    return torch.tensor(encoded["input_ids"]), torch.tensor(encoded["attention_mask"])
