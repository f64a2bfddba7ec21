"""A vision model cut at a layer and opened by transformers or timm gives the vectors of the study."""

from collections.abc import Callable

import pytest
import torch
from layerwise.errors import ModelError
from layerwise.models.registry import load_loader
from PIL import Image

from tests import vision_builders
from tests.unit.export.conftest import READOUTS, Bench, largest_difference
from tests.vision_builders import HUGGING_FACE, SIDE, TIMM

CUT = (*HUGGING_FACE, *TIMM)


def card_vectors(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """Run the code on the card, as a user pastes it."""
    place = bench.target.parent / "results" / "export" / "cut"
    if not place.exists():
        place.parent.mkdir(parents=True)
        place.symlink_to(bench.target)
    monkeypatch.chdir(bench.target.parent)
    code = (bench.model / "README.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    images = [Image.open(bench.where / name).convert("RGB") for name in bench.samples["image"]]
    scope: dict[str, object] = {"images": images}
    exec(code, scope)
    return scope["vectors"]


@pytest.mark.parametrize("family", CUT)
def test_every_family_gives_its_vectors(
    vision_bench: Callable[..., Bench], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = vision_bench(family)
    for layer, readout in ((2, "mean_normed"), (1, "mean")):
        manifest = bench.export(layer, readout)
        assert manifest["verified"]["difference"] <= 1e-5
        assert manifest["blocks"] == layer
        assert largest_difference(card_vectors(bench, monkeypatch), bench.stored(layer, readout)) <= 1e-5


@pytest.mark.parametrize("family", ["vit", "timm-vit"])
@pytest.mark.parametrize("readout", READOUTS)
def test_every_readout(
    vision_bench: Callable[..., Bench], family: str, readout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = vision_bench(family)
    bench.export(2, readout)
    assert largest_difference(card_vectors(bench, monkeypatch), bench.stored(2, readout)) <= 1e-5


@pytest.mark.parametrize("family", ["dinov2", "vit", "timm-vit", "timm-dinov2"])
def test_another_size_than_it_was_trained_at(
    vision_bench: Callable[..., Bench], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = vision_bench(family, image_size=2 * SIDE)
    bench.export(2, "mean_normed")
    assert largest_difference(card_vectors(bench, monkeypatch), bench.stored(2, "mean_normed")) <= 1e-5


@pytest.mark.parametrize("family", ["dinov2", "timm-dinov2"])
def test_our_own_loader_reads_the_folder_too(vision_bench: Callable[..., Bench], family: str) -> None:
    bench = vision_bench(family)
    bench.export(2, "mean_normed")
    loaded = load_loader(vision_builders.loader(family)).load(bench.model, "cut", "float32", "cpu")
    assert loaded.n_layers == 2
    states = vision_builders.layers(loaded, bench.where, list(range(6)))[2]
    with torch.inference_mode():
        found = loaded.final_norm(states).mean(1)
    assert largest_difference(found, bench.stored(2, "mean_normed")) <= 1e-5


@pytest.mark.parametrize("family", ["vit", "timm-vit"])
def test_half_precision(vision_bench: Callable[..., Bench], family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = vision_bench(family, dtype="bfloat16")
    manifest = bench.export(2, "mean_normed")
    assert manifest["verified"]["difference"] <= manifest["verified"]["allowed"] < 0.05
    assert largest_difference(card_vectors(bench, monkeypatch), bench.stored(2, "mean_normed")) < 0.05


def test_vectors_of_another_layer_are_noticed(vision_bench: Callable[..., Bench]) -> None:
    bench = vision_bench("dinov2")
    wrong = bench.stored(1, "mean_normed").vectors
    with pytest.raises(ModelError, match=r"export 'cut' \(layer 2, readout 'mean_normed'\): its vectors differ"):
        bench.export(2, "mean_normed", vectors=wrong)
    assert list(bench.target.iterdir()) == []
