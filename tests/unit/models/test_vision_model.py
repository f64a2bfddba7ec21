"""Vision models: layers that are the residual stream, tokens that are told apart, and the model's own preprocessing."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from layerwise.errors import ModelError
from layerwise.models import timm_vision, untrained, vision
from layerwise.models.vision import VisionModel
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoImageProcessor,
    CLIPVisionConfig,
    CLIPVisionModel,
    ConvNextConfig,
    ConvNextModel,
    Dinov2Config,
    Dinov2Model,
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    ResNetConfig,
    ResNetModel,
    SwinConfig,
    SwinModel,
    ViTConfig,
    ViTMAEConfig,
    ViTMAEModel,
    ViTModel,
)

LAYERS, WIDTH, SIDE, PATCH = 3, 32, 32, 8
_PLAIN = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "image_size": SIDE,
    "patch_size": PATCH,
}
_PLAIN |= {"initializer_range": 0.2}
_MLP = _PLAIN | {"intermediate_size": 64}
FAMILIES: dict[str, tuple[Any, Any, int]] = {
    "vit": (ViTModel, ViTConfig(**_MLP), 1),
    "dinov2": (Dinov2Model, Dinov2Config(**_PLAIN), 1),
    "registers": (Dinov2WithRegistersModel, Dinov2WithRegistersConfig(**_PLAIN, num_register_tokens=4), 5),
    "clip": (CLIPVisionModel, CLIPVisionConfig(**_MLP), 1),
}
TIMM: dict[str, tuple[str, dict[str, Any], int]] = {
    "timm": ("vit_tiny_patch16_224", {"patch_size": PATCH}, 1),
    "timm-registers": ("vit_small_patch14_reg4_dinov2", {"patch_size": PATCH}, 5),
}
EVERY = [*FAMILIES, *TIMM]
PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": SIDE, "width": SIDE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.4],
    "resample": 2,
}
CROPPED = PROCESSOR | {
    "image_processor_type": "BitImageProcessor",
    "size": {"shortest_edge": 40},
    "do_center_crop": True,
    "crop_size": {"height": SIDE, "width": SIDE},
    "resample": 3,
}


def disturbed(module: nn.Module) -> nn.Module:
    """Norms of ones, biases of zeros and unused class tokens would hide what is and is not applied."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return module.eval()


def save(folder: Path, family: str, processor: dict[str, Any] = PROCESSOR) -> Path:
    torch.manual_seed(0)
    if family in TIMM:
        name, changes, _ = TIMM[family]
        sizes = {"img_size": SIDE, "embed_dim": WIDTH, "depth": LAYERS, "num_heads": 4} | changes
        made = disturbed(timm.create_model(name, pretrained=False, num_classes=7, **sizes))
        timm.models.save_for_hf(made, folder, model_args=sizes, safe_serialization=True)
        return folder
    kind, config, _ = FAMILIES[family]
    return put(folder, disturbed(kind(config)), processor)


def put(folder: Path, module: Any, processor: dict[str, Any] = PROCESSOR) -> Path:
    module.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


def load(folder: Path, family: str, **changes: Any) -> VisionModel:
    loader = timm_vision if family in TIMM else vision
    return loader.load(folder, **({"name": "tiny", "dtype": "float32", "device": "cpu"} | changes))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("vision")
    return {family: save(root / family, family) for family in EVERY}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for i, size in enumerate([(32, 32), (64, 48), (33, 90), (7, 5), (32, 32), (120, 31), (1, 1)]):
        noise = np.random.default_rng(i).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{i}.png")
    return folder


FRAME = pd.DataFrame({"image": [f"{i}.png" for i in range(7)]})


def layers(model: VisionModel, pictures: Path, rows: list[int]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    model.run(model.prepare(FRAME, pictures).batch(rows), lambda _i, states: found.append(states.clone()))
    return found


@pytest.mark.parametrize("family", EVERY)
def test_layers_are_what_enters_and_leaves_the_blocks(saved: dict[str, Path], pictures: Path, family: str) -> None:
    model = load(saved[family], family)
    path = {"vit": "layers", "dinov2": "encoder.layer", "registers": "encoder.layer", "clip": "encoder.layers"}.get(family)
    blocks = list(model.module.get_submodule(path or "blocks"))
    assert len(blocks) == model.n_layers == LAYERS
    expected: list[torch.Tensor] = []

    def first(_module: nn.Module, args: Any, kwargs: Any) -> None:
        expected.append((args[0] if args else kwargs["hidden_states"]).clone())

    def after(_module: nn.Module, _args: Any, output: Any) -> None:
        expected.append((output[0] if isinstance(output, tuple) else output).clone())

    handles = [blocks[0].register_forward_pre_hook(first, with_kwargs=True)]
    handles += [block.register_forward_hook(after) for block in blocks]
    found = layers(model, pictures, [0, 1])
    for handle in handles:
        handle.remove()
    assert len(found) == LAYERS + 1 == len(model.layer_names)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert all((a - b).abs().max() > 1e-3 for a, b in pairwise(found))


@pytest.mark.parametrize("family", EVERY)
def test_the_final_norm_of_the_last_layer_is_what_the_library_returns(
    saved: dict[str, Path], pictures: Path, family: str
) -> None:
    model = load(saved[family], family)
    pixels = model.prepare(FRAME, pictures).batch([0, 2]).inputs["pixel_values"]
    last = layers(model, pictures, [0, 2])[-1]
    with torch.inference_mode():
        if family in TIMM:
            returned = model.module.forward_features(pixels)
        else:
            returned = model.module(pixel_values=pixels).last_hidden_state
        if family == "clip":  # its norm is for the pooled class token only
            assert model.final_norm is None
            torch.testing.assert_close(last, returned)
            return
        assert model.final_norm is not None
        torch.testing.assert_close(model.final_norm(last), returned)
    assert (last - returned).abs().max() > 1e-2


@pytest.mark.parametrize("family", ["vit", "dinov2", "registers"])
def test_layers_are_the_librarys_own_hidden_states(saved: dict[str, Path], pictures: Path, family: str) -> None:
    model = load(saved[family], family)
    pixels = model.prepare(FRAME, pictures).batch([1]).inputs["pixel_values"]
    with torch.inference_mode():
        theirs = model.module(pixel_values=pixels, output_hidden_states=True).hidden_states
    ours = layers(model, pictures, [1])
    assert len(theirs) == LAYERS + 1
    for mine, other in zip(ours[:-1], theirs[:-1], strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("family", EVERY)
def test_class_and_register_tokens_are_told_apart(saved: dict[str, Path], pictures: Path, family: str) -> None:
    model = load(saved[family], family)
    prefix = (TIMM | FAMILIES)[family][2]
    assert (model.prefix, model.tokens, model.width) == (prefix, prefix + (SIDE // PATCH) ** 2, WIDTH)
    inputs = model.prepare(FRAME, pictures)
    assert inputs.lengths.tolist() == [prefix + 16] * 7
    masks = inputs.batch([3, 0]).masks
    assert masks["all"].all()
    for name in ("content", "skip_first"):
        assert masks[name].tolist() == [[False] * prefix + [True] * 16] * 2
    # Patches see the picture before the first block, prefix tokens do not.
    first, second = (layers(model, pictures, [row])[0][0] for row in (0, 1))
    same = (first - second).abs().amax(-1) < 1e-6
    assert same.tolist() == [True] * prefix + [False] * 16


@pytest.mark.parametrize("family", EVERY)
def test_a_vector_does_not_depend_on_its_batch(saved: dict[str, Path], pictures: Path, family: str) -> None:
    model = load(saved[family], family)
    together = layers(model, pictures, list(range(7)))
    for row in range(7):
        for one, all_ in zip(layers(model, pictures, [row]), together, strict=True):
            torch.testing.assert_close(one[0], all_[row], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", EVERY)
@pytest.mark.parametrize("size", [16, 48])
def test_another_image_size_gives_another_grid(saved: dict[str, Path], pictures: Path, family: str, size: int) -> None:
    model = load(saved[family], family, image_size=size)
    assert model.tokens - model.prefix == (size // PATCH) ** 2
    assert model.prefix == (TIMM | FAMILIES)[family][2]
    assert all(torch.isfinite(states).all() for states in layers(model, pictures, [1]))
    assert model.facts["size"] == size


@pytest.mark.parametrize("asked", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", ["dinov2", "timm"])
def test_the_dtype_asked_for_is_the_dtype_that_runs(saved: dict[str, Path], pictures: Path, family: str, asked: str) -> None:
    assert {states.dtype for states in layers(load(saved[family], family, dtype=asked), pictures, [0])} == {
        getattr(torch, asked)
    }


HIERARCHICAL = {
    "swin": lambda: SwinModel(
        SwinConfig(image_size=SIDE, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)
    ),
    "convnext": lambda: ConvNextModel(ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1])),
    "resnet": lambda: ResNetModel(
        ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], layer_type="basic")
    ),
    "mae": lambda: ViTMAEModel(ViTMAEConfig(**_MLP)),
}
SENTENCES = {
    "swin": "width 16 into 32",
    "convnext": "no stack of",
    "resnet": "no patch size",
    "mae": "5 tokens for 16 patches",
}


@pytest.mark.parametrize("kind", HIERARCHICAL)
def test_models_of_another_build_are_refused_with_a_sentence(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ModelError, match=rf"{SENTENCES[kind]}.*layerwise reads models"):
        load(put(tmp_path / kind, HIERARCHICAL[kind]()), kind)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("convnext_atto", {"dims": (8, 8, 16, 16), "depths": (1, 1, 1, 1)}),
        ("swin_tiny_patch4_window7_224", {"embed_dim": 12, "depths": (1, 1), "num_heads": (2, 2)}),
        ("resnet18", {}),
    ],
)
def test_hierarchical_models_of_timm_are_refused(tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    timm.models.save_for_hf(timm.create_model(name, **changes), tmp_path, model_args=changes, safe_serialization=True)
    with pytest.raises(ModelError, match=rf"model 'tiny' \({name}\) is hierarchical or has no patch grid"):
        load(tmp_path, "timm")


@pytest.mark.parametrize("family", ["dinov2", "timm"])
@pytest.mark.parametrize("damage", ["absent weight", "cut file", "no file", "no config"])
def test_damaged_weights_are_refused(saved: dict[str, Path], tmp_path: Path, family: str, damage: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in saved[family].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    weights = folder / "model.safetensors"
    if damage == "absent weight":
        kept = {k: v for k, v in load_file(weights).items() if not (".1." in k and "mlp.fc1" in k)}
        save_file(kept, weights, metadata={"format": "pt"})
    elif damage == "cut file":
        weights.write_bytes(weights.read_bytes()[:-100])
    else:
        (weights if damage == "no file" else folder / "config.json").unlink()
    with pytest.raises(ModelError, match=r"lacks 2 of its weights" if damage == "absent weight" else "cannot be loaded"):
        load(folder, family)


def by_hand(picture: Image.Image, resize: tuple[int, int], crop: int, mode: int, mean: Any, spread: Any) -> np.ndarray:
    """Pillow and NumPy only."""
    resized = picture.resize(resize, mode)
    left, top = (round((resized.width - crop) / 2), round((resized.height - crop) / 2))
    values = np.asarray(resized.crop((left, top, left + crop, top + crop)), dtype=np.float64) / 255
    return ((values - mean) / spread).transpose(2, 0, 1)


def pixels(model: VisionModel, picture: Image.Image) -> np.ndarray:
    return model.preprocess(picture).numpy()


@pytest.fixture(scope="module")
def wide() -> Image.Image:
    noise = np.random.default_rng(3).integers(0, 256, (9, 15, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((100, 60), Image.Resampling.BICUBIC)


def test_preprocessing_is_the_models_own(tmp_path: Path, wide: Image.Image) -> None:
    mean, spread = PROCESSOR["image_mean"], PROCESSOR["image_std"]
    squashing = load(save(tmp_path / "squash", "vit"), "vit")
    cropping = load(save(tmp_path / "crop", "vit", CROPPED), "vit")
    squashed = by_hand(wide, (SIDE, SIDE), SIDE, Image.Resampling.BILINEAR, mean, spread)
    cropped = by_hand(wide, (int(40 * 100 / 60), 40), SIDE, Image.Resampling.BICUBIC, mean, spread)
    for model, expected, folder in ((squashing, squashed, "squash"), (cropping, cropped, "crop")):
        np.testing.assert_allclose(pixels(model, wide), expected, atol=1e-5)
        processor = AutoImageProcessor.from_pretrained(tmp_path / folder)
        library = processor(wide, return_tensors="np")["pixel_values"][0]
        assert np.abs(pixels(model, wide) - library).max() < 0.03 / 0.2  # tensors are resized a little differently
    assert list(squashing.facts["processor"]["image_mean"]) == mean
    assert (squashing.facts["size"], squashing.facts["preprocessing"]) == (SIDE, "model")


def test_the_size_asked_for_scales_the_models_own_preprocessing(tmp_path: Path, wide: Image.Image) -> None:
    mean, spread = PROCESSOR["image_mean"], PROCESSOR["image_std"]
    squashing = load(save(tmp_path / "squash", "vit"), "vit", image_size=16)
    cropping = load(save(tmp_path / "crop", "vit", CROPPED), "vit", image_size=16)
    squashed = by_hand(wide, (16, 16), 16, Image.Resampling.BILINEAR, mean, spread)
    cropped = by_hand(wide, (int(20 * 100 / 60), 20), 16, Image.Resampling.BICUBIC, mean, spread)
    np.testing.assert_allclose(pixels(squashing, wide), squashed, atol=1e-5)
    np.testing.assert_allclose(pixels(cropping, wide), cropped, atol=1e-5)


@pytest.mark.parametrize("family", ["vit", "timm"])
def test_the_studys_preprocessing_is_one_for_all_models(saved: dict[str, Path], wide: Image.Image, family: str) -> None:
    model = load(saved[family], family, preprocessing="study")
    short = round(SIDE * 256 / 224)
    mode = Image.Resampling.BICUBIC
    expected = by_hand(wide, (int(short * 100 / 60), short), SIDE, mode, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    np.testing.assert_allclose(pixels(model, wide), expected, atol=1e-5)
    assert model.facts["preprocessing"] == "study"


def test_preprocessing_of_timm_is_timms_own(saved: dict[str, Path], wide: Image.Image) -> None:
    model = load(saved["timm"], "timm")
    data = timm.data.resolve_data_config({}, model=model.module)
    expected = timm.data.create_transform(**data, is_training=False)(wide)
    np.testing.assert_allclose(pixels(model, wide), expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("family", ["vit", "dinov2", "registers", "timm", "timm-registers"])
def test_the_untrained_twin_is_the_same_model_without_its_training(
    saved: dict[str, Path], tmp_path: Path, pictures: Path, family: str
) -> None:
    state = torch.random.get_rng_state()
    twins = {}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        untrained.build(saved[family], seed, tmp_path / name)
        twins[name] = load_file(tmp_path / name / "model.safetensors")
    assert torch.equal(torch.random.get_rng_state(), state)
    trained, model = load(saved[family], family), load(tmp_path / "a", family)
    assert (model.n_layers, model.tokens, model.width, model.prefix) == (
        trained.n_layers,
        trained.tokens,
        trained.width,
        trained.prefix,
    )
    assert model.facts == trained.facts
    assert twins["a"].keys() == twins["b"].keys() == twins["c"].keys()
    assert all(torch.equal(value, twins["b"][key]) for key, value in twins["a"].items())
    matrices = [key for key, value in twins["a"].items() if value.ndim > 1 and value.abs().max() > 0]
    assert len(matrices) >= 4 * LAYERS
    assert not any(torch.equal(twins["a"][key], twins["c"][key]) for key in matrices)
    learned = dict(trained.module.named_parameters())
    assert not any(torch.equal(value, learned[key]) for key, value in model.module.named_parameters())
    differ = [(a - b).abs().max() for a, b in zip(layers(trained, pictures, [0]), layers(model, pictures, [0]), strict=True)]
    assert min(differ) > 1e-3


def test_a_twin_of_a_model_in_parts_is_whole(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = disturbed(ViTModel(FAMILIES["vit"][1]))
    module.save_pretrained(tmp_path / "parts", max_shard_size="40KB")
    (tmp_path / "parts" / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    assert load(tmp_path / "parts", "vit").n_layers == LAYERS
    (tmp_path / "twin").mkdir()
    untrained.build(tmp_path / "parts", 0, tmp_path / "twin")
    assert not list((tmp_path / "twin").glob("*.index.json"))
    assert load(tmp_path / "twin", "vit").n_layers == LAYERS
