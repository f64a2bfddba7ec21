"""Every vision family: layers are the residual stream, tokens stay in place, the final norm is found or known absent."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from layerwise.activations import readout
from layerwise.errors import ModelError
from torch import nn

from tests import vision_builders as vb


@pytest.fixture(params=vb.EVERY)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


def size_of(family: str) -> tuple[int, int, int]:
    """Layers, width and patches of one picture."""
    return (6, 64, 100) if family == "open_clip-timm" else (vb.LAYERS, vb.WIDTH, (vb.SIDE // vb.PATCH) ** 2)


def test_layers_are_what_enters_and_leaves_the_blocks(every: dict[str, Path], pictures: Path, family: str) -> None:
    model = vb.load(every[family], family)
    blocks: Any = list(model.module.get_submodule(vb.kind(family).blocks))
    expected: list[torch.Tensor] = []

    def first(_module: nn.Module, args: Any, kwargs: Any) -> None:
        expected.append((args[0] if args else kwargs["hidden_states"]).clone())

    def after(_module: nn.Module, _args: Any, output: Any) -> None:
        expected.append((output[0] if isinstance(output, tuple) else output).clone())

    handles = [blocks[0].register_forward_pre_hook(first, with_kwargs=True)]
    handles += [block.register_forward_hook(after) for block in blocks]
    found = vb.layers(model, pictures, [0, 1])
    for handle in handles:
        handle.remove()
    assert len(found) == model.n_layers + 1 == len(blocks) + 1 == len(model.layer_names)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert all((a - b).abs().max() > 1e-3 for a, b in pairwise(found))


def test_layers_are_what_the_library_lists(every: dict[str, Path], pictures: Path, family: str) -> None:
    model = vb.load(every[family], family)
    pixels = model.prepare(vb.FRAME, pictures).batch([1, 4]).inputs["pixel_values"]
    ours = vb.layers_of(model, pixels)[1:]
    with torch.inference_mode():
        theirs = vb.kind(family).outputs(model.module, pixels)
    assert len(theirs) >= len(ours) - 1  # transformers' last one may be normed
    for mine, other in zip(ours, theirs, strict=False):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)


def test_layer_0_is_the_librarys_embedding_output(every: dict[str, Path], pictures: Path, family: str) -> None:
    model = vb.load(every[family], family)
    module: Any = model.module
    pixels = model.prepare(vb.FRAME, pictures).batch([1, 4]).inputs["pixel_values"]
    with torch.inference_mode():
        if family in vb.HUGGING_FACE:
            extra = vb.noise(pixels) if family == "mae" else {}
            expected = module(pixel_values=pixels, output_hidden_states=True, **extra).hidden_states[0]
        elif family in ("open_clip", "open_clip-pooled"):
            expected = module._embeds(pixels)
        else:
            trunk = module.trunk if family == "open_clip-timm" else module
            if not hasattr(trunk, "_pos_embed"):
                tokens = torch.cat([trunk.cls_token.expand(len(pixels), -1, -1), trunk.patch_embed(pixels)], 1)
                expected = tokens if trunk.pos_embed is None else tokens + trunk.pos_embed
            else:
                placed = trunk._pos_embed(trunk.patch_embed(pixels))
                expected = getattr(trunk, "norm_pre", nn.Identity())(placed[0] if isinstance(placed, tuple) else placed)
    torch.testing.assert_close(vb.layers_of(model, pixels)[0], expected, rtol=0, atol=0)


def test_the_normed_mean_of_the_last_layer_is_the_librarys_own(every: dict[str, Path], pictures: Path, family: str) -> None:
    model = vb.load(every[family], family)
    batch = model.prepare(vb.FRAME, pictures).batch([0, 2])
    last = vb.layers_of(model, batch.inputs["pixel_values"])[-1]
    with torch.inference_mode():
        returned = vb.kind(family).last(model.module, batch.inputs["pixel_values"])
        normed = readout.normed(last, "final", model.final_norm)
        pooled = readout.pool(normed, readout.token_weights("all", "mean", batch.masks))
    torch.testing.assert_close(pooled, returned.mean(1), rtol=1e-5, atol=1e-5)
    norm = vb.kind(family).norm
    if norm is None:
        assert model.final_norm is None
        torch.testing.assert_close(last, returned)
    else:
        assert model.final_norm is model.module.get_submodule(norm)
        assert (last - returned).abs().max() > 1e-2


def test_class_and_register_tokens_are_told_apart(every: dict[str, Path], pictures: Path, family: str) -> None:
    model = vb.load(every[family], family)
    n_layers, width, patches = size_of(family)
    prefix = vb.PREFIX[family]
    assert (model.n_layers, model.width, model.prefix, model.tokens) == (n_layers, width, prefix, prefix + patches)
    inputs = model.prepare(vb.FRAME, pictures)
    assert inputs.lengths.tolist() == [prefix + patches] * 7
    masks = inputs.batch([3, 0]).masks
    assert masks["all"].all()
    for name in ("content", "skip_first"):
        assert masks[name].tolist() == [[False] * prefix + [True] * patches] * 2


def test_patches_keep_their_order(every: dict[str, Path], family: str) -> None:
    """Before the first block, token i sees the pixels of patch i only, and the class and register tokens see none."""
    model = vb.load(every[family], family)
    side, patch = model.facts["size"], model.facts["patch"]
    blank = torch.zeros(1, 3, side, side)
    columns = side // patch
    for i in {0, 1, columns, columns * columns - 2, columns * columns - 1}:
        changed = blank.clone()
        top, left = i // columns * patch, i % columns * patch
        changed[..., top : top + patch, left : left + patch] = torch.randn(3, patch, patch)
        differs = (vb.layers_of(model, changed)[0] - vb.layers_of(model, blank)[0]).abs().amax((0, 2)) > 0
        assert differs.nonzero().flatten().tolist() == [model.prefix + i]


def test_readouts_do_not_depend_on_batch_or_order(every: dict[str, Path], pictures: Path, family: str) -> None:
    model = vb.load(every[family], family)

    def means(batches: list[list[int]]) -> torch.Tensor:
        read = [torch.stack([x.mean(1) for x in vb.layers(model, pictures, rows)], 1) for rows in batches]
        order = torch.tensor([row for rows in batches for row in rows])
        return torch.cat(read)[order.argsort()]

    together = means([list(range(7))])
    limit = 1e-5 * together.abs().amax((0, 2), keepdim=True)
    for batches in ([[i] for i in range(7)], [[6, 2, 4, 0, 5, 1, 3]], [[3, 1], [0, 6, 2, 5], [4]]):
        assert ((means(batches) - together).abs() <= limit).all()
    assert all((together[0] - together[i]).abs().max() > 1e-3 for i in range(1, 7))


@pytest.mark.parametrize("size", [16, 48])
def test_another_picture_size_gives_another_grid(every: dict[str, Path], pictures: Path, family: str, size: int) -> None:
    if family in ("aimv2", "aimv2-vision"):
        with pytest.raises(ModelError, match=r"does not interpolate its positions: write 'image_size: 32', at which"):
            vb.load(every[family], family, image_size=size)
        return
    model = vb.load(every[family], family, image_size=size)
    assert model.tokens - model.prefix == (size // model.facts["patch"]) ** 2
    assert model.prefix == vb.PREFIX[family]
    assert all(torch.isfinite(states).all() for states in vb.layers(model, pictures, [1]))
    assert model.facts["size"] == size


@pytest.mark.parametrize("asked", ["float32", "bfloat16"])
def test_the_dtype_asked_for_is_the_dtype_that_runs(every: dict[str, Path], pictures: Path, family: str, asked: str) -> None:
    model = vb.load(every[family], family, dtype=asked)
    assert {states.dtype for states in vb.layers(model, pictures, [0])} == {getattr(torch, asked)}
