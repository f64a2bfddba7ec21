"""What cannot be read layer by layer, or is damaged, is refused with one sentence; the blank cases of a folder too."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import timm
from layerwise.errors import ModelError
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    ConvNextConfig,
    ResNetConfig,
    Siglip2VisionConfig,
    SwinConfig,
    ViTConfig,
)

from tests import vision_builders as vb

OTHERS = {
    "swin": SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    "convnext": ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1]),
    "resnet": ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], layer_type="basic"),
    "naflex": Siglip2VisionConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64),
}
SENTENCES = {
    "swin": "width 16 into 32.*layerwise reads models",
    "convnext": "no stack of.*layerwise reads models",
    "resnet": "no patch size.*layerwise reads models",
    "naflex": r"cannot read 32 x 32 pixels \(.*layerwise reads models that take pixels alone",
}
ONE_OF_EACH = ("dinov2", "clip", "timm-vit", "open_clip", "open_clip-timm", "aim")


def refused(sentence: str, folder: Path, family: str, **changes: Any) -> None:
    with pytest.raises(ModelError, match=sentence) as caught:
        vb.load(folder, family, **changes)
    assert "\n" not in str(caught.value)


@pytest.fixture
def copied(every: dict[str, Path], tmp_path: Path) -> Any:
    def _copy(family: str) -> Path:
        return Path(shutil.copytree(every[family], tmp_path / family))

    return _copy


@pytest.mark.parametrize("kind", OTHERS)
def test_models_of_another_build(tmp_path: Path, kind: str) -> None:
    refused(SENTENCES[kind], vb.put(tmp_path, AutoModel.from_config(OTHERS[kind])), kind)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("convnext_atto", {"dims": (8, 8, 16, 16), "depths": (1, 1, 1, 1)}),
        ("swin_tiny_patch4_window7_224", {"embed_dim": 12, "depths": (1, 1), "num_heads": (2, 2)}),
        ("resnet18", {}),
    ],
)
def test_hierarchical_models_of_timm(tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    timm.models.save_for_hf(timm.create_model(name, **changes), tmp_path, model_args=changes, safe_serialization=True)
    refused(rf"model 'tiny' \({name}\) is hierarchical or has no patch grid", tmp_path, "timm-vit")


@pytest.mark.parametrize("tower", [{"layers": [1, 1, 1, 1], "width": 8}, {"timm_model_name": "test_convnext"}])
def test_hierarchical_towers_of_open_clip(tmp_path: Path, tower: dict[str, Any]) -> None:
    vb.save_open_clip(tmp_path, {"embed_dim": 16, "vision_cfg": {"image_size": 64, **tower}})
    refused(r"model 'tiny' \(.*\) is hierarchical or has no patch grid", tmp_path, "open_clip")


def test_a_tower_that_would_be_fetched(copied: Any) -> None:
    folder = copied("open_clip-timm")
    described = json.loads((folder / "open_clip_config.json").read_text())
    described["model_cfg"]["vision_cfg"]["timm_model_name"] = "hf-hub:owner/model"
    (folder / "open_clip_config.json").write_text(json.dumps(described))
    refused("'hf-hub:owner/model', which would be fetched", folder, "open_clip")


@pytest.mark.parametrize("family", ONE_OF_EACH)
def test_a_size_that_cuts_patches(every: dict[str, Path], family: str) -> None:
    patch, whole = (16, 16) if family == "open_clip-timm" else (8, 24)
    refused(rf"patches of {patch} pixels, and 30 .* write 'image_size: {whole}'", every[family], family, image_size=30)


def test_a_model_that_was_trained_with_cut_patches(tmp_path: Path) -> None:
    """As the shape-optimised SigLIP at 384 pixels, whose patches have 14."""
    config = ViTConfig(**{**vb.HUGGING_FACE["vit"].to_dict(), "image_size": 30})
    sized = vb.PROCESSOR | {"size": {"height": 30, "width": 30}}
    model = vb.load(vb.put(tmp_path, AutoModel.from_config(config), sized), "vit")
    assert (model.tokens, model.prefix) == (1 + 9, 1)


LOST = {
    "dinov2": "encoder.layer.1.mlp.fc1.weight",
    "clip": "vision_model.encoder.layers.1.mlp.fc1.weight",
    "timm-vit": "pos_embed",
    "open_clip": "visual.transformer.resblocks.1.mlp.c_fc.weight",
    "open_clip-timm": "visual.trunk.blocks.1.mlp.fc1.weight",
    "aim": "trunk.blocks.1.norm_1.weight",
}


@pytest.mark.parametrize("family", ONE_OF_EACH)
@pytest.mark.parametrize("damage", ["absent weight", "cut file", "no file", "no config"])
def test_damaged_folders(copied: Any, family: str, damage: str) -> None:
    folder = copied(family)
    weights = next(folder.glob("*.safetensors"))
    sentence = "cannot be loaded|no AIM v1 weights"
    if damage == "absent weight":
        kept = load_file(weights)
        lost = next(key for key in kept if key.endswith(LOST[family]))
        del kept[lost]
        save_file(kept, weights, metadata={"format": "pt"})
        sentence = f"model 'tiny': .* lacks 1 of its weights, such as '[a-z_.]*{LOST[family]}'"
    elif damage == "cut file":
        weights.write_bytes(weights.read_bytes()[:-100])
    else:
        (weights if damage == "no file" else next(folder.glob("*config.json"))).unlink()
        if damage == "no config":
            for other in folder.glob("*config.json"):
                other.unlink()
    refused(sentence, folder, family)


def test_weights_beyond_the_layers_may_be_absent(copied: Any, pictures: Path) -> None:
    for family, beyond in (("timm-vit", "head."), ("timm-beit", "fc_norm."), ("timm-siglip", "attn_pool.")):
        folder = copied(family)
        kept = load_file(folder / "model.safetensors")
        assert any(key.startswith(beyond) for key in kept)
        save_file({k: v for k, v in kept.items() if not k.startswith(beyond)}, folder / "model.safetensors")
        assert all(x.isfinite().all() for x in vb.layers(vb.load(folder, family), pictures, [1]))


@pytest.mark.parametrize("family", ["vit", "clip"])
def test_a_folder_without_processor_needs_the_studys_preprocessing(copied: Any, pictures: Path, family: str) -> None:
    folder = copied(family)
    (folder / "preprocessor_config.json").unlink()
    refused(r"'tiny' has no preprocessor_config.json in its folder; .* write 'preprocessing: study'", folder, family)
    model = vb.load(folder, family, preprocessing="study")
    assert (model.facts["size"], model.facts["processor"]) == (vb.SIDE, None)
    assert len(vb.layers(model, pictures, [1])) == vb.LAYERS + 1


def test_a_processor_beside_that_of_the_texts(copied: Any) -> None:
    folder = copied("clip")
    (folder / "preprocessor_config.json").rename(folder / "kept.json")
    described = json.loads((folder / "kept.json").read_text())
    (folder / "processor_config.json").write_text(
        json.dumps({"image_processor": described, "processor_class": "CLIPProcessor"})
    )
    assert list(vb.load(folder, "clip").facts["processor"]["image_mean"]) == vb.PROCESSOR["image_mean"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"size": {"longest_edge": 32}}, r"resizes to \{'longest_edge': 32\}.*write 'preprocessing: study'"),
        ({"size": {"height": 32, "width": 16}}, r"pictures of \[32, 16\]; layerwise reads squares"),
    ],
)
def test_processors_that_do_something_else(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    refused(sentence, vb.save(tmp_path, "vit", vb.PROCESSOR | changes), "vit")


def test_pictures_that_are_not_resized(tmp_path: Path, pictures: Path) -> None:
    model = vb.load(vb.save(tmp_path, "vit", vb.PROCESSOR | {"do_resize": False}), "vit")
    assert len(vb.layers(model, pictures, [0, 4])) == vb.LAYERS + 1  # those of 32 x 32
    with pytest.raises(ModelError, match=r"image 1.png stays 64 x 48 where the model reads 32 x 32 pixels"):
        vb.layers(model, pictures, [0, 1])
    larger = vb.load(tmp_path, "vit", image_size=48)
    assert larger.preprocess(Image.new("RGB", (64, 50))).shape == (3, 48, 48)


def test_a_config_that_contradicts_the_weights(copied: Any) -> None:
    folder = copied("aim")
    (folder / "config.json").write_text(json.dumps({"config": {"embed_dim": 64, "num_heads": 4}}))
    refused("says embed_dim 64, the weights have 32; correct one", folder, "aim")
    (folder / "config.json").write_text("{}")
    refused("has no num_heads that divides the width 32; add it", folder, "aim")


def test_blocks_beyond_the_config(copied: Any) -> None:
    folder = copied("open_clip")
    described = json.loads((folder / "open_clip_config.json").read_text())
    described["model_cfg"]["vision_cfg"]["layers"] = 2
    (folder / "open_clip_config.json").write_text(json.dumps(described))
    refused("has beyond its config 12 of its weights, such as 'visual.transformer.resblocks.2", folder, "open_clip")
