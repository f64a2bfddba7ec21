"""Memory that does not suffice, and models spread over devices."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from accelerate import dispatch_model
from layerwise.activations.extract import Request, extract
from layerwise.errors import ModelError
from layerwise.models.device import resolve, weight_bytes
from layerwise.models.layered import NO_TAPS, Batch, OnLayer
from layerwise.models.text import TextModel, load
from layerwise.store import Activations

from tests import builders

READOUTS = [{"name": "mean", "norm": "final", "tokens": "all", "pool": "mean"}]
LENGTHS = [5, 1, 12, 30, 2, 3, 9, 7, 30, 6, 20, 1]
ERRORS = {
    "cuda": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    "mps": RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"),
    "cpu": RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"),
}


class Cramped(TextModel):
    """A model whose device holds so many tokens; ``tried`` are the batches it was given."""

    limit = 10**9
    error: Exception = ERRORS["cuda"]
    tried: list[tuple[int, int]]

    def run(self, batch: Batch, on_layer: OnLayer, taps: Mapping[str, OnLayer] = NO_TAPS) -> None:
        shape = batch.masks["all"].shape
        self.tried.append((shape[0], shape[1]))
        reached = 0

        def note(layer: int, states: torch.Tensor) -> None:
            nonlocal reached
            reached = layer
            on_layer(layer, states)
            if layer == 2 and shape[0] * shape[1] > self.limit:  # in the middle of a pass, some layers already kept
                raise self.error

        super().run(batch, note, taps)
        assert reached == self.n_layers


def cramped(folder: Path, limit: int, error: str = "cuda") -> Cramped:
    loaded = load(folder, "m", "float32", 32, "cpu")
    model = Cramped(loaded.module, loaded.tokenizer, 32)
    model.limit, model.error, model.tried = limit, ERRORS[error], []
    return model


def write(path: Path, model: TextModel, frame: pd.DataFrame) -> np.ndarray:
    facts = {"model": "m", "model_revision": "r", "dtype": "float32", "dataset": "d", "dataset_digest": "x"}
    request = Request(**facts, provenance={}, readouts=READOUTS, recipes=["raw"], batch_tokens=120)
    extract(path, model, frame, path.parent, request, lambda _done, _total: None)
    with Activations(path) as store:
        return np.stack([store.rows("mean", layer) for layer in range(model.n_layers + 1)])


@pytest.mark.parametrize("error", ERRORS)
def test_out_of_memory_halves_the_batches_and_changes_no_number(
    saved: dict[str, Path], tmp_path: Path, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = builders.samples(LENGTHS)
    expected = write(tmp_path / "whole.h5", cramped(saved["llama"], 10**9), frame)
    model = cramped(saved["llama"], 40, error)
    found = write(tmp_path / "parts.h5", model, frame)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    sizes = [rows * longest for rows, longest in model.tried]
    assert sizes[0] > 40  # it did run out
    assert sizes[sizes.index(next(s for s in sizes if s <= 40)) :] == [s for s in sizes if s <= 40]  # and never again after
    assert "out of memory at" in capsys.readouterr().out


def test_a_sample_that_does_not_fit_alone_is_an_error_to_act_on(saved: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"one sample of 30 tokens does not fit .*'max_tokens'.*'dtype: bfloat16'.*'m'"):
        write(tmp_path / "a.h5", cramped(saved["llama"], 29), builders.samples(LENGTHS))
    assert list(tmp_path.iterdir()) == []


def test_another_error_of_the_forward_pass_is_not_taken_for_memory(saved: dict[str, Path], tmp_path: Path) -> None:
    model = cramped(saved["llama"], 1)
    model.error = RuntimeError("shapes do not match")
    with pytest.raises(RuntimeError, match="shapes do not match"):
        write(tmp_path / "a.h5", model, builders.samples(LENGTHS))
    assert len(model.tried) == 1


def test_a_model_in_parts_gives_the_same_file(saved: dict[str, Path], tmp_path: Path) -> None:
    """As accelerate spreads a large one; without a GPU, blocks that wait on disk stand for the second device."""
    frame = builders.samples(LENGTHS)
    whole = load(saved["llama"], "m", "float32", 32, "cpu")
    expected = write(tmp_path / "whole.h5", whole, frame)
    places = dict.fromkeys(("embed_tokens", "rotary_emb", "layers.0", "layers.2"), "cpu") | {
        "layers.1": "disk",
        "norm": "disk",
    }
    spread = dispatch_model(load(saved["llama"], "m", "float32", 32, "cpu").module, places, offload_dir=tmp_path / "offload")
    parts = TextModel(spread, whole.tokenizer, 32)
    assert parts.final_norm is not None
    np.testing.assert_array_equal(write(tmp_path / "parts.h5", parts, frame), expected)


def test_split_places_the_model_where_there_is_room(saved: dict[str, Path], tmp_path: Path) -> None:
    frame = builders.samples(LENGTHS)
    expected = write(tmp_path / "whole.h5", load(saved["neox"], "m", "float32", 32, "cpu"), frame)
    split = load(saved["neox"], "m", "float32", 32, "split")
    np.testing.assert_array_equal(write(tmp_path / "split.h5", split, frame), expected)


def test_auto_takes_one_gpu_where_the_weights_fit_and_several_where_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve("cuda:1", 10**15) == "cuda:1"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve("auto", 10**15) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (24 * 2**30, 25 * 2**30))
    eight_billion = 8_030_000_000
    assert resolve("auto", weight_bytes(eight_billion, "bfloat16")) == "cuda"
    assert resolve("auto", weight_bytes(eight_billion, "float32")) == "split"
