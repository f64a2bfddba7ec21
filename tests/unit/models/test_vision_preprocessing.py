"""Pixels are the model's own: against Pillow and NumPy, against the libraries' processors on a photograph."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from layerwise.models.vision_model import VisionModel
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from sklearn.datasets import load_sample_image
from transformers import AutoImageProcessor

from tests import vision_builders as vb
from tests.vision_builders import PROCESSOR, SIDE

CROPPED = PROCESSOR | {
    "image_processor_type": "BitImageProcessor",
    "size": {"shortest_edge": 40},
    "do_center_crop": True,
    "crop_size": {"height": SIDE, "width": SIDE},
    "resample": 3,
}
MEAN, SPREAD = PROCESSOR["image_mean"], PROCESSOR["image_std"]


def by_hand(picture: Image.Image, resize: tuple[int, int], crop: int, mode: int, mean: Any, spread: Any) -> np.ndarray:
    """Pillow and NumPy only."""
    resized = picture.resize(resize, mode)
    left, top = (resized.width - crop) // 2, (resized.height - crop) // 2
    values = np.asarray(resized.crop((left, top, left + crop, top + crop)), dtype=np.float64) / 255
    return ((values - mean) / spread).transpose(2, 0, 1)


def pixels(model: VisionModel, picture: Image.Image) -> np.ndarray:
    return model.preprocess(picture).numpy()


@pytest.fixture(scope="module")
def wide() -> Image.Image:
    noise = np.random.default_rng(3).integers(0, 256, (9, 15, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((100, 60), Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def photograph() -> Image.Image:
    return Image.fromarray(load_sample_image("china.jpg"))  # 640 x 427


def test_preprocessing_is_the_models_own(tmp_path: Path, wide: Image.Image) -> None:
    squashing = vb.load(vb.save(tmp_path / "squash", "vit"), "vit")
    cropping = vb.load(vb.save(tmp_path / "crop", "vit", CROPPED), "vit")
    squashed = by_hand(wide, (SIDE, SIDE), SIDE, Image.Resampling.BILINEAR, MEAN, SPREAD)
    cropped = by_hand(wide, (int(40 * 100 / 60), 40), SIDE, Image.Resampling.BICUBIC, MEAN, SPREAD)
    for model, expected in ((squashing, squashed), (cropping, cropped)):
        np.testing.assert_allclose(pixels(model, wide), expected, atol=1e-5)
    assert list(squashing.facts["processor"]["image_mean"]) == MEAN
    assert (squashing.facts["size"], squashing.facts["preprocessing"]) == (SIDE, "model")


def test_the_size_asked_for_scales_the_models_own_preprocessing(tmp_path: Path, wide: Image.Image) -> None:
    squashing = vb.load(vb.save(tmp_path / "squash", "vit"), "vit", image_size=16)
    cropping = vb.load(vb.save(tmp_path / "crop", "vit", CROPPED), "vit", image_size=16)
    both = vb.load(vb.save(tmp_path / "both", "vit", CROPPED | {"size": {"height": 40, "width": 40}}), "vit", image_size=16)
    squashed = by_hand(wide, (16, 16), 16, Image.Resampling.BILINEAR, MEAN, SPREAD)
    cropped = by_hand(wide, (int(20 * 100 / 60), 20), 16, Image.Resampling.BICUBIC, MEAN, SPREAD)
    squashed_and_cropped = by_hand(wide, (20, 20), 16, Image.Resampling.BICUBIC, MEAN, SPREAD)
    np.testing.assert_allclose(pixels(squashing, wide), squashed, atol=1e-5)
    np.testing.assert_allclose(pixels(cropping, wide), cropped, atol=1e-5)
    np.testing.assert_allclose(pixels(both, wide), squashed_and_cropped, atol=1e-5)


CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "nearest": {"resample": 0},
    "lanczos": {"resample": 1},
    "bilinear": {"resample": 2},
    "bicubic": {"resample": 3},
    "not normalised": {"do_normalize": False},
    "not rescaled": {"do_rescale": False},
    "rescaled to 2": {"rescale_factor": 1 / 127.5},
    "one mean": {"image_mean": 0.5, "image_std": 0.25},
    "odd crop": {"do_center_crop": True, "size": {"shortest_edge": 35}, "crop_size": {"height": SIDE, "width": SIDE}},
    "square, then crop": {
        "do_center_crop": True,
        "size": {"height": 40, "width": 40},
        "crop_size": {"height": 32, "width": 32},
    },
    "crop alone": {"do_resize": False, "do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}},
    "crop, one number": {"do_center_crop": True, "size": {"shortest_edge": 48}, "crop_size": SIDE},
}
SCALE = {"not rescaled": 255.0, "rescaled to 2": 2.0}


@pytest.mark.parametrize("change", CHANGES)
def test_pixels_of_a_photograph_are_those_of_the_librarys_processor(
    tmp_path: Path, photograph: Image.Image, change: str
) -> None:
    described = PROCESSOR | {"image_processor_type": "CLIPImageProcessor", "do_center_crop": False} | CHANGES[change]
    model = vb.load(vb.save(tmp_path, "vit", described), "vit")
    ours = pixels(model, photograph)
    processor = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    theirs = np.asarray(processor(photograph, return_tensors="np")["pixel_values"][0])
    assert ours.shape == theirs.shape == (3, SIDE, SIDE)
    np.testing.assert_allclose(ours, theirs, atol=2e-6 * SCALE.get(change, 1.0) / 0.2)


@pytest.mark.parametrize("kind", ["ViT", "Bit", "DeiT", "Siglip", "CLIP", "Beit", "DINOv3ViT"])
def test_the_defaults_of_every_processor(tmp_path: Path, photograph: Image.Image, kind: str) -> None:
    """The default processor resizes tensors, where Pillow's rounding between the two passes differs by a grey value."""
    folder = vb.save(tmp_path, "vit")
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": f"{kind}ImageProcessor"}))
    model = vb.load(folder, "vit")
    theirs = AutoImageProcessor.from_pretrained(folder)(photograph, return_tensors="pt")["pixel_values"][0]
    ours = model.preprocess(photograph)
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().mean() < 0.004 / 0.2
    assert (ours - theirs).abs().max() < 0.03 / 0.2


@pytest.mark.parametrize("family", ["vit", "timm-vit", "open_clip", "aim"])
def test_the_studys_preprocessing_is_one_for_all_models(every: dict[str, Path], wide: Image.Image, family: str) -> None:
    model = vb.load(every[family], family, preprocessing="study")
    short = round(SIDE * 256 / 224)
    mode = Image.Resampling.BICUBIC
    expected = by_hand(wide, (int(short * 100 / 60), short), SIDE, mode, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    np.testing.assert_allclose(pixels(model, wide), expected, atol=1e-5)
    assert model.facts["preprocessing"] == "study"


@pytest.mark.parametrize("family", ["timm-vit", "timm-siglip", "timm-dinov2"])
@pytest.mark.parametrize("size", [None, 48])
def test_preprocessing_of_timm_is_timms_own(
    every: dict[str, Path], photograph: Image.Image, family: str, size: int | None
) -> None:
    model = vb.load(every[family], family, image_size=size)
    data = timm.data.resolve_data_config({"input_size": (3, size or SIDE, size or SIDE)}, model=model.module)
    expected = timm.data.create_transform(**data, is_training=False)(photograph)
    np.testing.assert_allclose(pixels(model, photograph), expected.numpy(), atol=1e-5)
    assert model.facts["architecture"] == vb.TIMM[family].split(".")[0]


@pytest.mark.parametrize("given", [{}, {"interpolation": "bilinear", "mean": MEAN, "std": SPREAD}])
@pytest.mark.parametrize("resize", ["shortest", "squash"])
def test_preprocessing_of_open_clip_is_its_own(
    tmp_path: Path, photograph: Image.Image, given: dict[str, Any], resize: str
) -> None:
    own = {"size": SIDE, "resize_mode": resize, **given}
    vb.save_open_clip(tmp_path, vb.OPEN_CLIP["open_clip"], own)
    model = vb.load(tmp_path, "open_clip")
    theirs = image_transform_v2(PreprocessCfg(**own), is_train=False)
    torch.testing.assert_close(model.preprocess(photograph), theirs(photograph), rtol=0, atol=1e-5)
