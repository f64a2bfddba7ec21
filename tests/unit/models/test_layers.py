"""Layers are read at block boundaries: against hooks of our own, for every text family."""

from pathlib import Path

import pytest
import torch
from layerwise.errors import ModelError
from layerwise.models.layers import LayerStack, find_layers, reading
from layerwise.models.text import load
from torch import Tensor, nn
from transformers import CLIPConfig, CLIPModel, Gemma3Config, Gemma3ForConditionalGeneration, SwinConfig, SwinModel

from tests import builders

# Where each family keeps its blocks and its final norm, written down a second time.
BLOCKS = {
    "llama": ("layers", "norm"),
    "qwen2": ("layers", "norm"),
    "qwen3": ("layers", "norm"),
    "gemma3": ("layers", "norm"),
    "neox": ("layers", "final_layer_norm"),
    "gpt2": ("h", "ln_f"),
    "mamba": ("layers", "norm_f"),
    "mamba2": ("layers", "norm_f"),
    "clip-text": ("encoder.layers", "final_layer_norm"),
    "bert": ("encoder.layer", None),
    "roberta": ("encoder.layer", None),
    "modernbert": ("layers", "final_norm"),
    "modernbert-decoder": ("layers", "final_norm"),
}
IDS = torch.arange(5, 5 + 14).reshape(2, 7)


def run(model: nn.Module, hidden: bool = False):
    with torch.inference_mode():
        return model(input_ids=IDS, attention_mask=torch.ones_like(IDS), output_hidden_states=hidden)


def find(model: nn.Module) -> LayerStack:
    return find_layers(model, lambda: run(model), builders.LAYERS)


def layers_of(model: nn.Module) -> dict[int, Tensor]:
    found: dict[int, Tensor] = {}
    with reading(find(model), lambda i, states: found.__setitem__(i, states.clone())):
        run(model)
    return found


def parts(family: str, model: nn.Module) -> tuple[nn.Module, nn.Module | None]:
    """Blocks and final norm by the names written above."""
    path, norm = BLOCKS[family]
    return model.get_submodule(path), model.get_submodule(norm) if norm else None


@pytest.fixture(params=builders.FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


def test_layers_are_the_input_of_the_first_block_and_the_output_of_every_block(family: str) -> None:
    model = builders.model(family)
    blocks, _ = parts(family, model)
    inputs, outputs = [], []

    def note(_module: nn.Module, args: tuple, kwargs: dict, output: object) -> None:
        inputs.append((args[0] if args else kwargs["hidden_states"]).clone())
        outputs.append((output[0] if isinstance(output, tuple) else output).clone())

    handles = [block.register_forward_hook(note, with_kwargs=True) for block in blocks]
    run(model)
    for handle in handles:
        handle.remove()
    found = layers_of(model)
    assert list(found) == list(range(builders.LAYERS + 1))  # in order, each once
    torch.testing.assert_close(found[0], inputs[0], rtol=0, atol=0)
    for i in range(builders.LAYERS):
        torch.testing.assert_close(found[i + 1], outputs[i], rtol=0, atol=0)
        assert not torch.allclose(found[i + 1], found[i], atol=1e-2)


def test_layer_0_is_the_librarys_embedding_output(family: str) -> None:
    model = builders.model(family)
    theirs = run(model, hidden=True).hidden_states
    if family.startswith("mamba"):  # its list of hidden states begins with block 1
        with torch.inference_mode():
            theirs = (model.embeddings(IDS), *theirs)
    torch.testing.assert_close(layers_of(model)[0], theirs[0], rtol=0, atol=0)


def test_the_final_norm_at_the_last_layer_gives_the_last_hidden_state(family: str) -> None:
    model = builders.model(family)
    stack, last = find(model), layers_of(model)[builders.LAYERS]
    assert stack.final_norm is parts(family, model)[1]
    with torch.inference_mode():
        normed = stack.final_norm(last) if stack.final_norm else last
    torch.testing.assert_close(normed, run(model).last_hidden_state)
    if stack.final_norm:  # else the last layer would have been normed twice
        assert not torch.allclose(last, run(model).last_hidden_state, atol=1e-2)


def test_every_layer_is_named_by_where_it_is_read(family: str) -> None:
    path, _ = BLOCKS[family]
    names = find(builders.model(family)).layer_names
    assert names == [f"input of {path}.0", f"{path}.0", f"{path}.1", f"{path}.2"]


def test_no_hook_is_left_behind_even_after_an_error() -> None:
    model = builders.model("llama")

    def fail(layer: int, _states: Tensor) -> None:
        if layer == 2:
            raise KeyError("stop")

    with pytest.raises(KeyError), reading(find(model), fail):
        run(model)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_model_without_a_stack_of_blocks_is_refused() -> None:
    with pytest.raises(ModelError, match=r"Linear has no stack of equal blocks under layers, h,"):
        find_layers(nn.Linear(2, 2), lambda: None)


def test_a_stack_of_another_length_than_promised_is_refused() -> None:
    with pytest.raises(ModelError, match="has no stack of 4 blocks"):
        find_layers(builders.model("llama"), lambda: None, 4)


def test_a_hierarchical_model_is_refused() -> None:
    config = SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=2)
    model = SwinModel(config).eval()
    with torch.inference_mode(), pytest.raises(ModelError, match=r"turns width 8 into 16; layerwise reads .* equal width"):
        find_layers(model, lambda: model(pixel_values=torch.zeros(1, 3, 32, 32)))


def test_a_model_with_two_towers_is_read_in_the_one_asked_for(tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
    text = {**sizes, "vocab_size": 64, "max_position_embeddings": 16, "bos_token_id": 2, "eos_token_id": 2}
    vision = {**sizes, "hidden_size": 48, "num_hidden_layers": 2, "image_size": 32, "patch_size": 8}
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision)).save_pretrained(tmp_path)
    builders.tokenizer().save_pretrained(tmp_path)
    model = load(tmp_path, "clip", "float32", 16, "cpu")
    assert (model.n_layers, model.width, model.layer_names[1]) == (3, 32, "encoder.layers.0")


def test_a_vision_language_model_is_read_in_its_language_model(tmp_path: Path) -> None:
    small = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
    text = {
        **small,
        "vocab_size": 64,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 16,
        "pad_token_id": 0,
    }
    vision = {**small, "num_hidden_layers": 2, "image_size": 28, "patch_size": 14}
    Gemma3ForConditionalGeneration(
        Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_index=63)
    ).save_pretrained(tmp_path)
    builders.tokenizer().save_pretrained(tmp_path)
    model = load(tmp_path, "gemma", "float32", 16, "cpu")
    assert (model.n_layers, model.width, model.final_norm is not None) == (3, 32, True)
