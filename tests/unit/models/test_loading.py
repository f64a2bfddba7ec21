"""Checkpoints that must not load: one sentence each, never a model with some of its weights random."""

import json
import shutil
import struct
from pathlib import Path

import pytest
import torch
from layerwise.errors import ModelError
from layerwise.models.text import load
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BertForMaskedLM, RobertaConfig, RobertaModel

from tests import builders


@pytest.fixture
def folder(saved: dict[str, Path], tmp_path: Path) -> Path:
    shutil.copytree(saved["llama"], tmp_path / "llama")
    return tmp_path / "llama"


def refused(folder: Path, sentence: str, max_tokens: int = 16) -> None:
    with pytest.raises(ModelError, match=sentence) as caught:
        load(folder, "tiny", "float32", max_tokens, "cpu")
    assert "'tiny'" in str(caught.value)
    assert "\n" not in str(caught.value)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def write(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def test_the_weights_are_those_of_the_file(folder: Path) -> None:
    loaded = load(folder, "tiny", "float32", 16, "cpu").module.state_dict()
    for name, tensor in weights(folder).items():
        torch.testing.assert_close(loaded[name], tensor, rtol=0, atol=0)


def test_a_missing_weight_is_refused_and_not_made_up(folder: Path) -> None:
    tensors = weights(folder)
    del tensors["layers.1.mlp.up_proj.weight"]
    write(folder, tensors)
    refused(folder, r"lacks 1 of its weights, such as 'layers\.1\.mlp\.up_proj\.weight'")


def test_weights_of_another_model_are_refused(folder: Path) -> None:
    write(folder, {f"other.{name}": tensor for name, tensor in weights(folder).items()})
    refused(folder, "lacks 29 of its weights")


def test_a_checkpoint_with_a_head_and_without_a_pooler_loads(tmp_path: Path) -> None:
    """As bert-base-uncased is stored; nothing of the head or the pooler is read."""
    config = builders.FAMILIES["bert"]
    model = BertForMaskedLM(config).eval()
    model.save_pretrained(tmp_path)
    builders.tokenizer(special=True).save_pretrained(tmp_path)
    found = load(tmp_path, "tiny", "float32", 16, "cpu").module.state_dict()
    for name, tensor in model.bert.state_dict().items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


def test_a_weight_of_the_wrong_shape_is_refused(folder: Path) -> None:
    write(folder, weights(folder) | {"layers.1.mlp.up_proj.weight": torch.zeros(3, 3)})
    refused(folder, "cannot be loaded from")


def spoil(content: bytes, how: str) -> bytes:
    size = struct.unpack("<Q", content[:8])[0]
    if how == "header length":
        return struct.pack("<Q", 2**60) + content[8:]
    if how == "truncated":
        return content[: len(content) // 2]
    if how == "text":
        return b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
    if how == "overlap":
        header = json.loads(content[8 : 8 + size])
        names = [name for name in header if name != "__metadata__"]
        header[names[1]]["data_offsets"] = header[names[0]]["data_offsets"]
        body = json.dumps(header).encode()
        return struct.pack("<Q", len(body)) + body + content[8 + size :]
    return b""


@pytest.mark.parametrize("how", ["header length", "truncated", "text", "overlap", "empty"])
def test_damaged_safetensors_are_refused(folder: Path, how: str) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(spoil(file.read_bytes(), how))
    refused(folder, "cannot be loaded from")


def test_a_missing_shard_is_refused(folder: Path) -> None:
    tensors = weights(folder)
    (folder / "model.safetensors").unlink()
    names = {name: f"model-0000{1 + (i % 2)}-of-00002.safetensors" for i, name in enumerate(tensors)}
    for shard in sorted(set(names.values())):
        save_file({name: tensors[name] for name in tensors if names[name] == shard}, folder / shard, {"format": "pt"})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": names}), "utf-8")
    load(folder, "tiny", "float32", 16, "cpu")
    (folder / "model-00002-of-00002.safetensors").unlink()
    refused(folder, "cannot be loaded from|lacks")


def test_a_pickle_is_not_an_alternative(folder: Path) -> None:
    torch.save(weights(folder), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    refused(folder, "cannot be loaded from")


@pytest.mark.parametrize("file", ["tokenizer.json", "config.json"])
def test_a_missing_file_is_refused(folder: Path, file: str) -> None:
    (folder / file).unlink()
    refused(folder, "cannot be loaded from")


def test_an_unknown_architecture_is_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "no_such_model"}), "utf-8")
    refused(folder, "cannot be loaded from .*no_such_model")


def test_more_tokens_than_positions_are_refused(folder: Path) -> None:
    refused(folder, rf"has {builders.POSITIONS} positions; write 'max_tokens: {builders.POSITIONS}'", builders.POSITIONS + 1)
    load(folder, "tiny", "float32", builders.POSITIONS, "cpu")


def test_roberta_uses_its_first_positions_for_padding(tmp_path: Path) -> None:
    """It counts from padding_idx + 1: a limit read off its config alone would fail in the middle of a run."""
    config = RobertaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=64,
        max_position_embeddings=20, pad_token_id=0, bos_token_id=3, eos_token_id=4,
    )  # fmt: skip
    RobertaModel(config).save_pretrained(tmp_path)
    builders.tokenizer(special=True).save_pretrained(tmp_path)
    refused(tmp_path, "has 19 positions; write 'max_tokens: 19' or fewer", 20)
    model = load(tmp_path, "tiny", "float32", 19, "cpu")
    inputs, seen = model.prepare(builders.samples([30, 5])), {}
    model.run(inputs.batch([0, 1]), lambda layer, states: seen.__setitem__(layer, states.clone()))
    expected = AutoModel.from_pretrained(tmp_path).eval()
    with torch.inference_mode():  # the short one without padding and with the library's own positions
        alone = expected(input_ids=torch.tensor([inputs.ids[1]]), output_hidden_states=True).hidden_states
    for layer in (0, 1, 2):
        torch.testing.assert_close(seen[layer][1, : inputs.lengths[1]], alone[layer][0], rtol=1e-4, atol=1e-5)
