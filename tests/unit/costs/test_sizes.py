"""Sizes of models from headers and configurations, against the models themselves."""

from pathlib import Path

import pytest
import torch
from layerwise.costs import sizes
from layerwise.costs.estimates import Tokens, forward_flops
from safetensors.torch import save_file
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    BertConfig,
    BertModel,
    CLIPConfig,
    CLIPModel,
    GPTNeoXConfig,
    GPTNeoXModel,
    LlamaConfig,
    LlamaModel,
    ViTConfig,
    ViTModel,
)

COMMON = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 160}
TEXT = {**COMMON, "vocab_size": 500, "max_position_embeddings": 64}
MODELS = {
    "neox": (GPTNeoXModel, GPTNeoXConfig(**TEXT)),
    "llama": (LlamaModel, LlamaConfig(**TEXT, num_key_value_heads=2)),
    "bert": (BertModel, BertConfig(**TEXT)),
    "vit": (ViTModel, ViTConfig(**COMMON, image_size=32, patch_size=8)),
}


def saved(name: str, folder: Path) -> torch.nn.Module:
    kind, config = MODELS[name]
    model = kind(config).eval()
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_layers_width_and_parameters_are_those_of_the_model(name: str, tmp_path: Path) -> None:
    model = saved(name, tmp_path)
    size = sizes.from_folder(tmp_path, "vision" if name == "vit" else "text")
    assert (size.n_layers, size.width) == (3, 64)
    assert size.parameters == sum(parameter.numel() for parameter in model.parameters())
    blocks = next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module) == 3)
    assert size.block_parameters == sum(parameter.numel() for parameter in blocks.parameters())
    assert size.store_bytes == sum(file.stat().st_size for file in tmp_path.iterdir())


@pytest.mark.parametrize("name", MODELS)
def test_a_configuration_alone_says_nearly_the_same(name: str, tmp_path: Path) -> None:
    saved(name, tmp_path)
    loader = "vision" if name == "vit" else "text"
    exact = sizes.from_folder(tmp_path, loader)
    next(tmp_path.glob("*.safetensors")).unlink()
    rough = sizes.from_folder(tmp_path, loader)
    assert rough.block_parameters == pytest.approx(exact.block_parameters, rel=0.1)
    assert (rough.n_layers, rough.width, rough.patch) == (exact.n_layers, exact.width, exact.patch)
    assert rough.image_tokens(None) == exact.image_tokens(None)


def test_an_image_gives_its_patches_and_the_class_token(tmp_path: Path) -> None:
    saved("vit", tmp_path)
    size = sizes.from_folder(tmp_path, "vision")
    assert size.image_tokens(None) == 17
    assert size.image_tokens(64) == 65


def test_of_two_towers_only_the_one_that_is_read_counts(tmp_path: Path) -> None:
    tower = {**COMMON, "num_hidden_layers": 2}
    text = {**tower, "hidden_size": 32, "vocab_size": 100, "max_position_embeddings": 16}
    config = CLIPConfig(text_config=text, vision_config={**tower, "image_size": 32, "patch_size": 8})
    CLIPModel(config).save_pretrained(tmp_path)
    read, seen = sizes.from_folder(tmp_path, "text"), sizes.from_folder(tmp_path, "vision")
    assert (read.width, seen.width, seen.image_tokens(None)) == (32, 64, 17)
    assert read.block_parameters < seen.block_parameters
    assert read.parameters == seen.parameters


@pytest.mark.parametrize("name", MODELS)
def test_operations_are_those_that_torch_counts(name: str, tmp_path: Path) -> None:
    model = saved(name, tmp_path)
    size = sizes.from_folder(tmp_path, "vision" if name == "vit" else "text")
    rows, length = 4, 17 if name == "vit" else 48
    inputs = torch.rand(rows, 3, 32, 32) if name == "vit" else torch.randint(0, 500, (rows, length))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(inputs)
    tokens = Tokens(rows, rows * length, rows * length**2, length, rows * length)
    assert forward_flops(size, tokens) == pytest.approx(counter.get_total_flops(), rel=0.2)


def test_damaged_and_foreign_files_have_no_size(tmp_path: Path) -> None:
    assert sizes.from_folder(tmp_path) is None
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 40)
    assert sizes.from_folder(tmp_path) is None
    save_file({"weight": torch.zeros(3)}, tmp_path / "model.safetensors")
    assert sizes.from_folder(tmp_path) is None
