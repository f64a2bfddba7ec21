"""Presets in small: hub models become random-weight folders of their families, datasets local ones; few of everything."""

import copy
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from peft import LoraConfig, get_peft_model
from PIL import Image
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from tests import builders, mteb_folders, vision_builders

# What a repository's name betrays, and the family of tests/builders.py or tests/vision_builders.py that stands in for it.
FAMILIES = {
    r"/pythia": "neox",
    r"/mamba": "mamba",
    r"/bert-": "bert",
    r"/meta-llama": "llama",
    r"/qwen2": "qwen2",
    r"/ettin-decoder": "modernbert-decoder",
    r"/ettin-encoder": "modernbert",
    r"google/vit-": "vit",
    r"/clip-": "clip-vision",
    r"/dinov2": "dinov2",
    r"/vit-mae": "mae",
    r"/beit": "beit-mean",
    r"timm/aimv2": "timm-aimv2",
    r"timm/vit.*mae": "timm-mae",
    r"timm/vit.*dino": "timm-dinov2",
    r"timm/vit": "timm-vit",
    r"apple/aim": "aim",
}
WRITERS = ("qwen2",)
LENGTHS = {"random_prompts": [8, 16, 32], "prefixes": [84, 96, 108]}  # a prompt of the system is longer than 70
TASKS = mteb_folders.REAL | {"STSBenchmark": mteb_folders.sts}
BLOCKS, TEXTS, SIDE, CLASSES, PICTURES = 5, 24, vision_builders.SIDE, 4, 36
TOKENS, LONG = builders.POSITIONS, 192  # LONG: of models that write, after a prompt
CHARACTERS = " abcdefghijklmnopqrstuvwxyz0123456789.,:;'-?!()\"="
WORDS = (*mteb_folders.WORDS, "forest", "bridge", "signal", "question", "answer", "shadow", "silver", "market")
SPECIAL = ["<pad>", "<unk>", "<eos>", "<cls>", "<sep>"]  # at the ids that builders.FAMILIES gives them


def shrink(preset: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Write what the preset reads in small below ``folder``; return its config, and the blocks of every model by name.

    Args:
        preset: the content of a file in configs/.
        folder: "input" of the folder in which the workflow runs.
    """
    config = copy.deepcopy(preset)
    kept = _kept(config["models"])
    # What costs most: three forward passes and a scoring for every model and task of mteb.
    kept = spread(kept, 2) if len(config["tasks"]) > 2 else kept
    config["models"], blocks = _small_models(kept, folder)
    config["datasets"] = [_small_dataset(dataset, folder) for dataset in config["datasets"]]
    written = [dataset for dataset in config["datasets"] if "traces" in dataset["source"]]
    for dataset in written[1:]:  # every derivation is read by every model
        dataset["derive"] = dataset["derive"][:1]
    config["tasks"] = _small_tasks(config["tasks"], folder)
    if len(config["tasks"]) > 2:
        config["models"][-1]["datasets"] = [config["tasks"][-1]["name"]]
    few = {"subsamples": 3, "null_draws": 3}
    config["metrics"] = [m | few | ({"permutations": 3} if "permutations" in m else {}) for m in config["metrics"]]
    if "task_views" in config:
        config["task_views"] |= {"views": 3, "sample": 10}
    return config, blocks


def spread(names: Sequence[Any], most: int) -> list[Any]:
    """The first, the last, and what lies evenly between them."""
    places = np.linspace(0, len(names) - 1, min(most, len(names))).round().astype(int)
    return [names[i] for i in places]


def family(entry: dict[str, Any]) -> str:
    """The family of a model entry; "random" for an untrained twin."""
    if "random" in entry["source"]:
        return "random"
    repository = "/" + entry["source"]["hub"].lower()
    found = [made for pattern, made in FAMILIES.items() if re.search(pattern, repository)]
    assert found, f"no family of tests/mini.py stands for {repository}"
    return found[0]


def _kept(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry of each kind, the first and the last where there is one kind only; and one untrained twin.

    A kind is a family of text models or a loader of images. A model more costs ten seconds and more.
    """
    kinds: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        if "random" not in entry["source"]:
            kinds.setdefault(entry.get("loader", family(entry)), []).append(entry)
    kept = [entry for kind in kinds.values() for entry in spread(kind, 1 + (len(kinds) == 1))]
    names = {entry["name"] for entry in kept}
    twins = [entry for entry in entries if entry["source"].get("random", {}).get("like") in names]
    return [entry for entry in entries if entry in [*kept, *twins[:1]]]


def _small_models(entries: list[dict[str, Any]], folder: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    made, blocks = [], {}
    for seed, entry in enumerate(entries):
        kind = family(entry)
        small = entry | {"threads": 1, "device": "cpu", "dtype": "float32"}
        small |= {"image_size": SIDE} if "loader" in entry else {"max_tokens": LONG if kind in WRITERS else TOKENS}
        made.append(small)
        if kind == "random":
            blocks[entry["name"]] = blocks[entry["source"]["random"]["like"]]
            continue
        sizes = sorted({_size(other) for other in entries if family(other) == kind})
        depth = BLOCKS + sizes.index(_size(entry)) if kind in builders.FAMILIES else vision_builders.LAYERS
        revisions = spread(entry.get("revisions", []), 3)
        for number, revision in enumerate(revisions or [""]):
            if kind in builders.FAMILIES:
                _save_text_model(folder / entry["name"] / revision, kind, 10 * seed + number, depth)
            else:
                vision_builders.save(folder / entry["name"] / revision, kind)
            blocks[f"{entry['name']}@{revision}" if revision else entry["name"]] = depth
        small["source"] = {"path": f"{folder.name}/{entry['name']}" + ("/{revision}" if revisions else "")}
        small |= {"revisions": revisions} if revisions else {}
        adapters = entry["source"].get("adapters", [])
        for number, adapter in enumerate(adapters):
            name = adapter["hub"].rsplit("/", 1)[1]
            save_adapter(folder / name, kind, number, num_hidden_layers=depth)
            small["source"].setdefault("adapters", []).append({"path": f"{folder.name}/{name}"})
    return made, blocks


def _size(entry: dict[str, Any]) -> float:
    """The size that a name states, in millions; 0 where it states none."""
    found = re.search(r"-(\d+(?:\.\d+)?)([mb])\b", entry["name"])
    return float(found[1]) * {"m": 1, "b": 1000}[found[2]] if found else 0.0


def _save_text_model(folder: Path, kind: str, seed: int, depth: int) -> None:
    """Deeper models are wider too; the tokenizer has one token per character, so that changed spelling is seen."""
    wide = {"hidden_size": builders.WIDTH + 16 * (depth - BLOCKS)} if depth > BLOCKS else {}
    long = {"max_position_embeddings": LONG} if kind in WRITERS else {}
    made = builders.model(kind, seed, num_hidden_layers=depth, **wide, **long)
    if kind in WRITERS:  # with a head, as those on the hub
        whole = AutoModelForCausalLM.from_config(made.config)
        whole.base_model.load_state_dict(made.state_dict())
        made = whole
    made.save_pretrained(folder)
    _tokenizer(kind).save_pretrained(folder)


def _tokenizer(kind: str) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.WordLevel({token: i for i, token in enumerate([*SPECIAL, *CHARACTERS])}, unk_token="<unk>"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    if kind in builders.ENCODERS:
        places = [("<cls>", 3), ("<sep>", 4)]
        made.post_processor = processors.TemplateProcessing(single="<cls> $A <sep>", special_tokens=places)
    named = dict(zip(("pad_token", "unk_token", "eos_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    return PreTrainedTokenizerFast(tokenizer_object=made, chat_template=template, **named)


def save_adapter(folder: Path, kind: str, seed: int, **sizes: int) -> None:
    """Save a LoRA adapter of a decoder whose attention has a q_proj, as LLM2Vec's models are made with."""
    torch.manual_seed(seed)
    config = LoraConfig(r=4, target_modules=["q_proj", "up_proj"], init_lora_weights=False)
    get_peft_model(builders.model(kind, **sizes), config).save_pretrained(folder)


def _small_dataset(dataset: dict[str, Any], folder: Path) -> dict[str, Any]:
    source, small = dataset["source"], dict(dataset)
    if "hub_table" in source:
        text, file = source["hub_table"].get("text", "text"), f"{dataset['name']}.csv"
        pd.DataFrame({text: _texts(TEXTS)}).to_csv(folder / file, index=False)
        small["source"] = {"table": {"path": f"{folder.name}/{file}", "text": text}}
    elif "traces" in source:
        small["source"] = {"traces": source["traces"] | {"max_new_tokens": 16, "minimum_tokens": max(LENGTHS["prefixes"])}}
    elif "image_folder" in source:
        _paint(folder / dataset["name"])
        small["source"] = {"image_folder": {"path": f"{folder.name}/{dataset['name']}"}}
    if "sample" in dataset:
        small["sample"] = dataset["sample"] | {
            "n": min(dataset["sample"]["n"], PICTURES if "image_folder" in source else 12)
        }
    small["derive"] = [_small_derivation(each) for each in dataset.get("derive", [])]
    return small


def _small_derivation(entry: dict[str, Any]) -> dict[str, Any]:
    small = entry | {"sample": 12}
    small |= {"views": 3} if "views" in entry else {}
    if "levels" in entry:  # a twentieth of a short text is less than two tokens
        shares = spread([level for level in entry["levels"] if level != 0.05], 3)
        small["levels"] = LENGTHS[entry["transform"]] if max(entry["levels"]) > 1 else shares
    small |= {"draws": 2} if "draws" in entry else {}
    return small | ({"size": SIDE} if "size" in entry else {})


def _small_tasks(tasks: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Image tasks with few pictures; of mteb's tasks one of each type, where there are more than two, on copies."""
    made, seen = [], set()
    for task in tasks:
        if task["type"] != "mteb":
            small = task | {"train": PICTURES - 12, "test": 12}
            made.append(small | ({"epochs": 2, "seeds": task["seeds"][:2], "batch": 12} if "epochs" in task else {}))
        elif task["name"] in TASKS and (len(tasks) <= 2 or TASKS[task["name"]] not in seen):
            seen.add(TASKS[task["name"]])
            TASKS[task["name"]](folder / task["name"])
            made.append({"sample": 12} | task | {"path": f"{folder.name}/{task['name']}", "train": 40})
    return made


def _texts(n: int) -> list[str]:
    """Sentences of different lengths, all longer than ten characters."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=length)).capitalize() + "." for length in rng.integers(4, 12, size=n)]


def _paint(folder: Path) -> None:
    """A folder per class of noise in the colour of the class."""
    rng = np.random.default_rng(0)
    for label in range(CLASSES):
        (folder / f"class{label}").mkdir(parents=True)
        for number in range(PICTURES // CLASSES):
            noise = rng.normal(size=(SIDE, SIDE, 3)) * 40 + 60 + 120 * np.eye(4)[label][:3]
            picture = Image.fromarray(noise.clip(0, 255).astype(np.uint8))
            picture.save(folder / f"class{label}" / f"{number}.png")
