"""Tiny models with random weights, their tokenizer, and texts: what several stages are tested with."""

import copy
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from transformers import (
    BertConfig,
    CLIPTextConfig,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    Mamba2Config,
    MambaConfig,
    ModernBertConfig,
    ModernBertDecoderConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    RobertaConfig,
)
from transformers.models.auto.modeling_auto import MODEL_MAPPING

LAYERS, WIDTH, POSITIONS = 3, 32, 48
WORDS = [f"w{i}" for i in range(56)]
_SIZES = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 64,
    "max_position_embeddings": POSITIONS,
    "initializer_range": 0.3,  # the default, 0.02, leaves every block close to the identity
}
_GPT2 = {
    "n_embd": WIDTH,
    "n_layer": LAYERS,
    "n_head": 4,
    "vocab_size": 64,
    "n_positions": POSITIONS,
    "initializer_range": 0.3,
}
_GROUPED = {**_SIZES, "num_key_value_heads": 2}
_STATE_SPACE = {"vocab_size": 64, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "initializer_range": 0.3}
_SPECIAL = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 2}
FAMILIES = {
    "llama": LlamaConfig(**_SIZES),
    "qwen2": Qwen2Config(**_GROUPED),
    "qwen3": Qwen3Config(**_GROUPED, head_dim=8),
    "gemma3": Gemma3TextConfig(**_GROUPED, **_SPECIAL, head_dim=8, sliding_window=8, sliding_window_pattern=2),
    "neox": GPTNeoXConfig(**_SIZES),
    "gpt2": GPT2Config(**_GPT2, bos_token_id=2, eos_token_id=2),
    "mamba": MambaConfig(**_STATE_SPACE, state_size=8),
    # chunk_size: texts are padded to whole chunks inside the model
    "mamba2": Mamba2Config(**_STATE_SPACE, state_size=16, num_heads=8, head_dim=8, n_groups=1, chunk_size=16),
    "clip-text": CLIPTextConfig(**_SIZES, **_SPECIAL, projection_dim=16),
    "bert": BertConfig(**_SIZES),
    "roberta": RobertaConfig(**{**_SIZES, "max_position_embeddings": POSITIONS + 1}, pad_token_id=0, bos_token_id=3),
    "modernbert": ModernBertConfig(**_SIZES, **_SPECIAL, cls_token_id=3, sep_token_id=4, local_attention=8),
    "modernbert-decoder": ModernBertDecoderConfig(  # Ettin's causal models
        **_SIZES, **_SPECIAL, cls_token_id=3, sep_token_id=4, local_attention=8
    ),
}
ENCODERS = ("bert", "roberta", "modernbert")


def model(family: str, seed: int = 0, **sizes: int) -> nn.Module:
    """A model of ``family`` with random weights, norms and biases included; ``sizes`` replace those of its config."""
    config = copy.deepcopy(FAMILIES[family])  # a test may change that of its model
    if sizes:
        kept = {key: value for key, value in config.to_dict().items() if key != "layer_types"}  # one for each layer
        config = type(config).from_dict(kept | sizes)
    torch.manual_seed(seed)
    made = MODEL_MAPPING[type(config)](config).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            # A norm of ones and zeros would hide whether its gain is applied; a state space's decay must stay what it is.
            if parameter.ndim == 1 and not name.endswith(("A_log", "dt_bias", ".D")):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def tokenizer(special: bool = False, pad: bool = True) -> PreTrainedTokenizerFast:
    """One token per word; with ``special``, a token before and one after the text, as BERT has them."""
    vocabulary = {"<pad>": 0, "<unk>": 1, "<eos>": 2, "<cls>": 3, "<sep>": 4} | {word: i + 5 for i, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if special:
        made.post_processor = processors.TemplateProcessing(
            single="<cls> $A <sep>", special_tokens=[("<cls>", 3), ("<sep>", 4)]
        )
    names = {"unk_token": "<unk>", "eos_token": "<eos>"} | ({"pad_token": "<pad>"} if pad else {})
    names |= {"cls_token": "<cls>", "sep_token": "<sep>"} if special else {}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def save(folder: Path, family: str, dtype: torch.dtype = torch.float32) -> Path:
    """Save a model of ``family`` and its tokenizer as a Hugging Face folder."""
    model(family).to(dtype).save_pretrained(folder)
    tokenizer(special=family in ENCODERS).save_pretrained(folder)
    return folder


def texts(lengths: list[int], seed: int = 0) -> list[str]:
    """Texts of so many words each."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=length)) for length in lengths]


def samples(lengths: list[int], views: int = 1, seed: int = 0) -> pd.DataFrame:
    """Rows of samples.parquet with texts of these lengths, ``views`` rows per sample."""
    rows = [(f"s{i // views}", i % views, text) for i, text in enumerate(texts(lengths, seed))]
    return pd.DataFrame(
        {
            "id": [f"{source}~{view}" for source, view, _ in rows],
            "source_id": [source for source, _, _ in rows],
            "view": [view for _, view, _ in rows],
            "split": "test",
            "text": [text for _, _, text in rows],
        }
    )


def masks_of(mask: torch.Tensor, content: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """The masks of a batch of texts, padded on the right."""
    after_first = mask.clone()
    after_first[:, 0] = False
    return {"all": mask, "content": mask if content is None else content, "skip_first": after_first}
