"""What cut models cost, against the models themselves: parameters after the cut, and PyTorch's own count of operations."""

import copy
from pathlib import Path

import pytest
import torch
from layerwise.costs.layers import COLUMNS, blocks_of, cost_rows, cut_costs, token_moments
from layerwise.export.cut import cut
from layerwise.models.registry import load_loader
from torch.utils.flop_counter import FlopCounterMode

from tests import builders, vision_builders

TOKENS = 12


def entry(name: str) -> dict[str, object]:
    return {"name": name, "dtype": "float32", "attention": "model", "max_tokens": 40} | {
        "preprocessing": "model",
        "image_size": None,
    }


def kept(module: torch.nn.Module) -> int:
    return sum(p.numel() for name, p in module.named_parameters() if not name.startswith("pooler."))


@pytest.mark.parametrize("family", ["neox", "llama", "gpt2", "bert", "modernbert", "mamba", "clip-text"])
def test_parameters_and_operations_are_those_of_the_cut_text_model(family: str, tmp_path: Path) -> None:
    folder = builders.save(tmp_path / family, family)
    loaded = load_loader("text").load_entry(folder, entry(family), "cpu")
    blocks = blocks_of(folder, "text", builders.WIDTH)
    assert blocks is not None
    assert blocks.attends == (family != "mamba",) * builders.LAYERS
    costs = cut_costs(blocks, token_moments([TOKENS]))
    assert list(costs["layer"]) == list(range(builders.LAYERS + 1))
    ids = {"input_ids": torch.arange(5, 5 + TOKENS)[None]}
    counted = []
    for layer in range(1, builders.LAYERS + 1):
        part = copy.deepcopy(loaded)
        cut(part.module, part.stack, layer)
        assert costs["parameters"][layer] == kept(part.module)
        if family != "mamba":
            part.module.set_attn_implementation("eager")  # whose products PyTorch counts
        with FlopCounterMode(display=False) as counter, torch.inference_mode():
            part.module(**ids)
        counted.append(counter.get_total_flops())
    if family != "mamba":  # whose recurrence PyTorch does not count
        assert costs["flops"][1:].tolist() == pytest.approx(counted, rel=0.05)
    shares = [count / counted[-1] for count in counted]
    assert costs["flops_share"][1:].tolist() == pytest.approx(shares, abs=0.01)
    assert costs["parameters_share"].iloc[-1] == costs["flops_share"].iloc[-1] == 1.0


@pytest.mark.parametrize("family", ["vit", "dinov2"])
def test_images_pay_for_their_patches_before_the_first_block(family: str, tmp_path: Path) -> None:
    folder = vision_builders.save(tmp_path / family, family)
    loader = vision_builders.loader(family)
    loaded = load_loader(loader).load_entry(folder, entry(family), "cpu")
    vision_builders.paint(tmp_path)
    inputs = loaded.prepare(vision_builders.FRAME.head(1), tmp_path)
    blocks = blocks_of(folder, loader, loaded.width)
    assert blocks is not None
    costs = cut_costs(blocks, token_moments(inputs.lengths))
    loaded.module.set_attn_implementation("eager")
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        loaded.run(inputs.batch([0]), lambda *_: None)
    assert costs["flops"].iloc[-1] == pytest.approx(counter.get_total_flops(), rel=0.15)
    assert costs["flops"][0] > 0
    assert costs["parameters"].iloc[-1] == kept(loaded.module)


def test_long_samples_cost_more_than_their_tokens() -> None:
    assert token_moments([1, 3]) == {"mean": 2.0, "mean_square": 5.0}


def test_a_model_whose_blocks_are_not_found_has_rows_without_numbers_and_the_reason(tmp_path: Path) -> None:
    assert blocks_of(tmp_path, "text", 8) is None
    record = {"model": "m", "task": "t", "tokens": token_moments([4, 6])}
    record["readouts"] = {"mean": [{"layer": layer} for layer in range(4)]}
    rows = cost_rows(None, record)
    assert tuple(rows.columns) == COLUMNS
    assert rows["layer"].tolist() == [0, 1, 2, 3]
    assert rows["flops"].isna().all()
    assert set(rows["undefined"]) == {"the names of its tensors do not tell its blocks apart"}
    folder = builders.save(tmp_path / "neox", "neox")  # three blocks, the record says two
    record["readouts"] = {"mean": [{"layer": layer} for layer in range(3)]}
    assert cost_rows(blocks_of(folder, "text", 32), record)["flops"].isna().all()
