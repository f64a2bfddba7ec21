"""A study small enough to run in a minute: two random models, one table of texts, every stage."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, GPTNeoXConfig, GPTNeoXModel, PreTrainedTokenizerFast

WORDS = (
    "river stone light morning garden winter letter window music friend silver forest market shadow summer bridge "
    "simple answer question signal"
).split()
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 64}


def save_models(folder: Path) -> None:
    """Save a decoder and an encoder with random weights and a word tokenizer."""
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]")
    for name, module in (
        ("neox", GPTNeoXModel(GPTNeoXConfig(**SIZES, max_position_embeddings=64))),
        ("bert", BertModel(BertConfig(**SIZES, max_position_embeddings=64), add_pooling_layer=False)),
    ):
        torch.manual_seed(0)
        for parameter in module.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.3)
        module.save_pretrained(folder / name)
        fast.save_pretrained(folder / name)


def save_texts(path: Path, n: int = 60, seed: int = 0) -> None:
    """Write a CSV of texts with a topic that half of the words betray, and a group."""
    rng = np.random.default_rng(seed)
    lines = ["text,topic,group"]
    for i in range(n):
        topic = i % 2
        own = rng.choice(WORDS[topic * 10 : topic * 10 + 10], size=rng.integers(3, 8))
        other = rng.choice(WORDS, size=4)
        lines.append(f"{' '.join(rng.permutation([*own, *other]))},{'ab'[topic]},g{i % 6}")
    path.write_text("\n".join(lines) + "\n", "utf-8")


def study() -> dict[str, Any]:
    """Return the configuration of the tiny study."""
    return {
        "title": "tiny",
        "models": [
            {"name": "neox", "source": {"path": "input/neox"}, "max_tokens": 32, "threads": 1},
            {"name": "bert", "source": {"path": "input/bert"}, "max_tokens": 32, "threads": 1},
        ],
        "datasets": [
            {
                "name": "texts",
                "source": {"table": {"path": "input/texts.csv"}},
                "derive": [{"name": "views", "transform": "surface_noise", "views": 3, "sample": 20}],
            }
        ],
        "tasks": [
            {
                "name": "topic",
                "type": "classification",
                "dataset": "texts",
                "label": "topic",
                "train": 30,
                "test": 20,
                "samples_per_label": 8,
                "sample": 20,
            }
        ],
        "headline_dataset": "texts",
        "metrics": [{"name": name, "subsamples": 4, "null_draws": 4} for name in ("prompt_entropy", "curvature", "lidar")]
        + [{"name": "dime", "permutations": 4, "subsamples": 4, "null_draws": 4}],
        "task_metrics": ["prompt_entropy"],
    }


def write_config(path: Path, config: dict[str, Any]) -> None:
    """Write ``config`` as YAML."""
    path.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
