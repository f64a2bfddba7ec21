"""The untrained twin of a vision model: the same folder layout, the same shapes, weights of the library's own drawing."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from layerwise.models import untrained
from safetensors.torch import load_file
from transformers import AutoModel

from tests import vision_builders as vb

FAMILIES = ["vit", "mae", "dinov2-registers", "beit-cls", "clip", "siglip", "aimv2", "ijepa", "deit"]
FAMILIES += ["timm-vit", "timm-registers", "timm-eva02", "timm-siglip", *vb.OPEN_CLIP, "aim"]


def twin(like: Path, seed: int, folder: Path) -> dict[str, torch.Tensor]:
    folder.mkdir()
    untrained.build(like, seed, folder)
    return load_file(next(folder.glob("*.safetensors")))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_untrained_twin_is_the_same_model_without_its_training(
    every: dict[str, Path], tmp_path: Path, pictures: Path, family: str
) -> None:
    state = torch.random.get_rng_state()
    a, b, c = (twin(every[family], seed, tmp_path / name) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert torch.equal(torch.random.get_rng_state(), state)
    origin = every[family]
    assert {file.name for file in (tmp_path / "a").iterdir()} == {file.name for file in origin.iterdir()}
    trained, model = vb.load(origin, family), vb.load(tmp_path / "a", family)
    for key in ("n_layers", "tokens", "width", "prefix", "layer_names", "facts"):
        assert getattr(model, key) == getattr(trained, key)
    assert (model.final_norm is None) == (trained.final_norm is None)
    assert a.keys() == b.keys() == c.keys()
    assert all(torch.equal(value, b[key]) for key, value in a.items())
    matrices = [key for key, value in a.items() if value.ndim > 1 and value.is_floating_point() and value.std() > 0]
    fixed = [key for key in matrices if torch.equal(a[key], c[key])]
    assert len(matrices) - len(fixed) >= 4 * vb.LAYERS
    assert all("pos" in key for key in fixed)  # MAE's sines and cosines
    learned = dict(trained.module.named_parameters())
    assert not any(torch.equal(v, learned[k]) for k, v in model.module.named_parameters() if not k.endswith("pos_embed"))
    differ = [(x - y).abs().max() for x, y in zip(*(vb.layers(m, pictures, [0]) for m in (trained, model)), strict=True)]
    assert min(differ) > 1e-3


def test_a_folder_of_two_layouts_has_a_twin_in_both(every: dict[str, Path], tmp_path: Path) -> None:
    """As LAION's: CLIP for open_clip, and beside it for transformers."""
    both = Path(shutil.copytree(every["clip"], tmp_path / "both"))
    for file in every["open_clip"].iterdir():
        shutil.copyfile(file, both / file.name)
    (tmp_path / "twin").mkdir()
    untrained.build(both, 0, tmp_path / "twin")
    for family in ("clip", "open_clip"):
        assert vb.load(tmp_path / "twin", family).n_layers == vb.LAYERS


def test_a_twin_of_a_model_in_parts_is_whole(tmp_path: Path) -> None:
    torch.manual_seed(0)
    parts = tmp_path / "parts"
    AutoModel.from_config(vb.HUGGING_FACE["vit"]).save_pretrained(parts, max_shard_size="40KB")
    (parts / "preprocessor_config.json").write_text(json.dumps(vb.PROCESSOR))
    assert len(list(parts.glob("*.safetensors"))) > 1
    assert vb.load(parts, "vit").n_layers == vb.LAYERS
    twin(parts, 0, tmp_path / "twin")
    assert not list((tmp_path / "twin").glob("*.index.json"))
    assert vb.load(tmp_path / "twin", "vit").n_layers == vb.LAYERS
