"""AIM v1 against a checkpoint's recorded outputs and against plain functions."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from layerwise.errors import ModelError
from layerwise.models import aim
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests import vision_builders as vb

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def reference() -> Path:
    folder = Path(os.environ.get("LAYERWISE_REFERENCE", ROOT.parent / "shared" / "reference")) / "aim_v1_tiny"
    if not folder.is_dir():
        pytest.skip(f"the AIM checkpoint is not there: no folder {folder} (set LAYERWISE_REFERENCE)")
    return folder


def test_every_layer_is_that_of_the_original_implementation(reference: Path) -> None:
    model = aim.load(reference, "aim", "float32", "cpu")
    expected = np.load(reference / "expected.npz")
    found = vb.layers_of(model, torch.from_numpy(expected["pixel_values"]))
    assert len(found) == 1 + len(expected["blocks"]) == 5
    for ours, theirs in zip(found, [expected["embeddings"], *expected["blocks"]], strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=1e-5)


def norm(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return scaled * weights[name + ".weight"] + weights[name + ".bias"]


def slow_layers(weights: dict[str, Tensor], picture: Tensor, heads: int, patch: int) -> tuple[list[Tensor], Tensor]:
    """One picture, one patch, one head at a time; names as published."""
    weights = {k: v.double() for k, v in weights.items()}
    kernel, bias = (weights[f"preprocessor.patchifier.proj.{part}"] for part in ("weight", "bias"))
    width, side = len(bias), picture.shape[-1] // patch
    rows = []
    for row in range(side):
        for column in range(side):
            piece = picture[:, row * patch : (row + 1) * patch, column * patch : (column + 1) * patch].double()
            angles = [p / 10000 ** (k / (width / 4)) for p in (column, row) for k in range(width // 4)]
            waves = [
                f(a) for part in (0, 1) for f in (math.sin, math.cos) for a in angles[part * width // 4 :][: width // 4]
            ]
            embedded = norm((kernel * piece).sum((1, 2, 3)) + bias, weights, "preprocessor.patchifier.norm")
            rows.append(embedded + torch.tensor(waves, dtype=torch.float64))
    x = torch.stack(rows)
    found, depth = [x], 1 + max(int(k.split(".")[2]) for k in weights if k.startswith("trunk.blocks."))
    for i in range(depth):
        block = f"trunk.blocks.{i}"
        queries, keys, values = (norm(x, weights, f"{block}.norm_1") @ weights[f"{block}.attn.qkv.weight"].T).split(width, 1)
        head = width // heads
        mixed = []
        for h in range(heads):
            q, k, v = (part[:, h * head : (h + 1) * head] for part in (queries, keys, values))
            mixed.append(torch.softmax(q @ k.T / math.sqrt(head), 1) @ v)  # every patch sees every patch
        x = x + torch.cat(mixed, 1) @ weights[f"{block}.attn.proj.weight"].T
        hidden = norm(x, weights, f"{block}.norm_2") @ weights[f"{block}.mlp.fc1.weight"].T
        hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
        x = x + hidden @ weights[f"{block}.mlp.fc2.weight"].T
        found.append(x)
    return found, norm(x, weights, "trunk.post_trunk_norm")


@pytest.mark.parametrize("size", [32, 48])
def test_every_layer_is_that_of_plain_functions(every: dict[str, Path], size: int) -> None:
    """At another size positions are computed, not interpolated."""
    model = vb.load(every["aim"], "aim", image_size=size)
    weights = load_file(every["aim"] / "model.safetensors")
    pictures = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    found = vb.layers_of(model, pictures)
    for row in (0, 1):
        expected, normed = slow_layers(weights, pictures[row], vb.AIM.heads, vb.PATCH)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours[row].double(), theirs, rtol=0, atol=1e-5)
        with torch.inference_mode():
            torch.testing.assert_close(model.final_norm(found[-1][row]).double(), normed, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("width", "depth", "heads"), [(1536, 24, 12), (2048, 24, 16), (3072, 24, 24)])
def test_published_sizes_are_read_from_the_weights(tmp_path: Path, width: int, depth: int, heads: int) -> None:
    """600M, 1B, 3B; the shapes alone, since only those are read."""
    tensors = {"preprocessor.patchifier.proj.weight": torch.zeros(width, 3, 14, 14)}
    tensors |= {"trunk.blocks.0.mlp.fc1.weight": torch.zeros(4 * width, width, dtype=torch.uint8)}
    tensors |= {f"trunk.blocks.{i}.norm_1.bias": torch.zeros(width) for i in range(depth)}
    save_file(tensors, tmp_path / "model.safetensors")
    for config in ({}, {"config": {"img_size": 224, "patch_size": 14, "embed_dim": width, "num_blocks": depth}}):
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert aim.layout(tmp_path) == aim.Layout(width, depth, heads, 14, 4.0, 224)


def test_the_600m_trunk_has_the_published_number_of_weights() -> None:
    with torch.device("meta"):
        module = aim.build(aim.Layout(1536, 24, 12, 14, 4.0, 224))
    assert sum(p.numel() for p in module.parameters()) == pytest.approx(680.9e6, abs=5e4)  # with its positions


def test_names_are_mapped_both_ways() -> None:
    names = [name for name in aim.build(vb.AIM).state_dict() if name != "pos_embed"]
    assert [aim.timm_name(aim.published_name(name)) for name in names] == names
    assert aim.published_name("blocks.1.norm2.bias") == "trunk.blocks.1.norm_2.bias"
    assert aim.published_name("norm.bias") == "trunk.post_trunk_norm.bias"
    assert aim.published_name("patch_embed.norm.weight") == "preprocessor.patchifier.norm.weight"


def test_a_checkpoint_in_parts(every: dict[str, Path], tmp_path: Path, pictures: Path) -> None:
    tensors = load_file(every["aim"] / "model.safetensors")
    for part in (0, 1):
        save_file({k: v for i, (k, v) in enumerate(tensors.items()) if i % 2 == part}, tmp_path / f"part{part}.safetensors")
    (tmp_path / "config.json").write_bytes((every["aim"] / "config.json").read_bytes())
    whole, parts = (vb.layers(vb.load(folder, "aim"), pictures, [1]) for folder in (every["aim"], tmp_path))
    assert all(torch.equal(a, b) for a, b in zip(whole, parts, strict=True))


def test_weights_that_are_not_aims_are_refused(every: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no AIM v1 weights"):
        aim.load(every["vit"], "tiny", "float32", "cpu")
    tensors = load_file(every["aim"] / "model.safetensors") | {"trunk.blocks.0.attn.qkv.bias": torch.zeros(96)}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((every["aim"] / "config.json").read_bytes())
    with pytest.raises(ModelError, match=r"has beyond AIM v1 1 of its weights, such as 'trunk.blocks.0.attn.qkv.bias'"):
        aim.load(tmp_path, "tiny", "float32", "cpu")
