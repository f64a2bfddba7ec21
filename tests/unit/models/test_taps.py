"""Places inside the blocks: against values made by hand from the submodules, for every kind of block that is known."""

from pathlib import Path
from typing import get_args

import pytest
import torch
from layerwise.config_datasets import Tap
from layerwise.errors import ModelError
from layerwise.models.layered import Batch
from layerwise.models.layers import find_layers, reading
from layerwise.models.taps import _PARTS, ATTENTION_RESIDUAL, TAPS
from layerwise.models.vision_model import VisionModel
from torch import Tensor, nn
from transformers import GPTNeoXConfig, GPTNeoXModel, MistralConfig, MistralModel

from tests import builders, vision_builders

IDS = torch.arange(5, 5 + 14).reshape(2, 7)
Read = dict[str, dict[int, Tensor]]


def run(model: nn.Module) -> object:
    with torch.inference_mode():
        return model(input_ids=IDS, attention_mask=torch.ones_like(IDS))


def read(model: nn.Module, taps: tuple[str, ...] = TAPS) -> Read:
    """States of every tap and layer of a text model; each is reported once, in the order of the blocks."""
    stack = find_layers(model, lambda: run(model), builders.LAYERS)
    found: Read = {tap: {} for tap in ("residual", *taps)}

    def reader(tap: str):
        def on_layer(layer: int, states: Tensor) -> None:
            assert layer not in found[tap]
            found[tap][layer] = states.clone()

        return on_layer

    with reading(stack, reader("residual"), {tap: reader(tap) for tap in taps}):
        run(model)
    return found


def sequential_neox() -> nn.Module:
    torch.manual_seed(0)
    config = GPTNeoXConfig(**builders._SIZES, use_parallel_residual=False)
    return GPTNeoXModel(config).eval()


def mistral() -> nn.Module:
    torch.manual_seed(0)
    return MistralModel(MistralConfig(**builders._GROUPED, head_dim=8)).eval()


TEXT = {name: (lambda name=name: builders.model(name)) for name in ("neox", "llama", "qwen2", "qwen3", "gpt2")}
TEXT |= {"neox-sequential": sequential_neox, "mistral": mistral}
POST_NORM = ("bert", "roberta")
VISION = ("vit", "dinov2", "dinov2-registers", "timm-vit", "timm-dinov2", "timm-registers", "timm-deit3")
close = torch.testing.assert_close


@pytest.mark.parametrize("family", TEXT)
def test_a_pre_norm_block_is_the_sum_of_its_taps(family: str) -> None:
    found = read(TEXT[family]())
    for i in range(1, builders.LAYERS + 1):
        states = {tap: layers[i] for tap, layers in found.items()}
        before = found["residual"][i - 1]
        close(states["attention_residual"], before + states["attention"], rtol=0, atol=0)
        close(states["residual"], states["attention_residual"] + states["mlp"])
        assert min(states[tap].abs().max() for tap in ("attention", "mlp")) > 1e-3
    assert all(list(layers) == [1, 2, 3] for tap, layers in found.items() if tap != "residual")


@pytest.mark.parametrize("family", ["neox", "neox-sequential", "llama"])
def test_values_by_hand_from_the_submodules(family: str) -> None:
    """Every part is called on what the tap before it gave, outside of the block."""
    model = TEXT[family]()
    found = read(model)
    llama = family == "llama"
    positions = torch.arange(7).expand(2, 7)
    with torch.inference_mode():
        rotary = model.rotary_emb(found["residual"][0], position_ids=positions)
        causal = torch.full((7, 7), -torch.inf).triu(1).expand(2, 1, 7, 7)
        for i, block in enumerate(model.layers, 1):
            before = found["residual"][i - 1]
            normed = block.input_layernorm(before)
            attend = block.self_attn if llama else block.attention
            attended = attend(normed, attention_mask=causal, position_embeddings=rotary)[0]
            parallel = family == "neox"
            mlp = block.mlp(block.post_attention_layernorm(before if parallel else before + attended))
            close(found["attention_norm"][i], normed)
            close(found["attention"][i], attended, rtol=1e-4, atol=1e-5)
            close(found[ATTENTION_RESIDUAL][i], before + attended, rtol=1e-4, atol=1e-5)
            close(found["mlp"][i], mlp, rtol=1e-4, atol=1e-5)
            if parallel:  # else the two kinds of block could not be told apart
                wrong = block.mlp(block.post_attention_layernorm(before + attended))
                assert not torch.allclose(found["mlp"][i], wrong, atol=1e-2)


@pytest.mark.parametrize("family", POST_NORM)
def test_a_block_that_norms_after_each_sum(family: str) -> None:
    model = builders.model(family)
    found = read(model)
    with torch.inference_mode():
        for i, block in enumerate(model.encoder.layer, 1):
            states, before = {tap: layers[i] for tap, layers in found.items()}, found["residual"][i - 1]
            attended = block.attention.output.dense(block.attention.self(before)[0])
            close(states["attention"], attended, rtol=1e-4, atol=1e-5)
            close(states["attention_residual"], before + attended, rtol=1e-4, atol=1e-5)
            close(states["attention_norm"], block.attention.output.LayerNorm(before + attended), rtol=1e-4, atol=1e-5)
            close(states["mlp"], block.output.dense(block.intermediate(states["attention_norm"])))
            close(states["residual"], block.output.LayerNorm(states["attention_norm"] + states["mlp"]))


@pytest.mark.parametrize("family", VISION)
def test_the_taps_of_vision_models(family: str, tmp_path: Path) -> None:
    vision_builders.save(tmp_path / "m", family)
    model: VisionModel = vision_builders.load(tmp_path / "m", family)
    found: Read = {tap: {} for tap in ("residual", *TAPS)}
    readers = {tap: (lambda i, states, tap=tap: found[tap].__setitem__(i, states.clone())) for tap in found}
    pixels = torch.randn(2, 3, vision_builders.SIDE, vision_builders.SIDE)
    model.run(Batch({"pixel_values": pixels}, {}), readers.pop("residual"), readers)
    path = "layernorm_before" if family == "vit" else "norm1"
    for i, block in enumerate(model.stack.blocks, 1):
        states, before = {tap: layers[i] for tap, layers in found.items()}, found["residual"][i - 1]
        with torch.inference_mode():
            close(states["attention_norm"], block.get_submodule(path)(before))
            if family == "vit":
                close(states["attention"], block.attention(states["attention_norm"], None)[0])
                close(states["mlp"], block.mlp(block.layernorm_after(states["attention_residual"])))
        close(states["attention_residual"], before + states["attention"], rtol=0, atol=0)
        close(states["residual"], states["attention_residual"] + states["mlp"])


def test_every_known_kind_of_block_is_tested_here(tmp_path: Path) -> None:
    """A name in the table that no test builds would be a guess."""
    made = [model().layers if name != "gpt2" else model().h for name, model in TEXT.items()]
    made += [builders.model(name).encoder.layer for name in POST_NORM]
    for family in VISION:
        vision_builders.save(tmp_path / family, family)
        made.append(vision_builders.load(tmp_path / family, family).stack.blocks)
    assert {type(blocks[0]).__name__ for blocks in made} == set(_PARTS)


def test_the_residual_stream_is_the_same_with_and_without_taps() -> None:
    model = builders.model("llama")
    alone, beside = read(model, ()), read(model)
    for i in range(builders.LAYERS + 1):
        close(alone["residual"][i], beside["residual"][i], rtol=0, atol=0)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_one_tap_alone() -> None:
    model = builders.model("neox")
    assert read(model, ("attention_residual",))["attention_residual"].keys() == {1, 2, 3}
    close(read(model, ("mlp",))["mlp"][2], read(model)["mlp"][2], rtol=0, atol=0)


@pytest.mark.parametrize("family", ["mamba", "gemma3", "modernbert"])
def test_an_unknown_kind_of_block_is_refused_before_any_forward_pass(family: str) -> None:
    model = builders.model(family)
    stack = find_layers(model, lambda: run(model), builders.LAYERS)
    kind = type(stack.blocks[0]).__name__
    sentence = rf"blocks of type {kind} have no known taps \(mlp asked for\); write 'taps: \[residual\]'"
    with pytest.raises(ModelError, match=sentence), reading(stack, print, {"mlp": print}):
        pytest.fail("the forward pass began")
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_name_that_is_no_tap_is_refused() -> None:
    model = builders.model("llama")
    with pytest.raises(ModelError, match="'mlps' is no tap inside a block; write some of attention_norm"):
        read(model, ("mlps",))


def test_a_part_of_another_shape_is_refused() -> None:
    model = builders.model("bert")
    model.config.chunk_size_feed_forward = 1
    for block in model.encoder.layer:
        block.chunk_size_feed_forward = 1  # the MLP runs token by token
    with pytest.raises(ModelError, match=r"Linear in block 1 gives the shape \(2, 1, 32\), its block reads \(2, 7, 32\)"):
        read(model, ("mlp",))


def test_the_config_knows_the_same_taps() -> None:
    assert get_args(Tap) == ("residual", *TAPS)
