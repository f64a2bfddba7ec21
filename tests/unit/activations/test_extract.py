"""Extraction end to end: a tiny model on disk, a file that equals a slow recomputation, and kills."""

import functools
import itertools
import os
import signal
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from layerwise.activations import extract as module
from layerwise.activations.extract import Request, extract
from layerwise.errors import FileError, ModelError
from layerwise.models.text import TextModel, load
from layerwise.store import Activations

from tests import builders, slow

LENGTHS = [5, 1, 12, 40, 2, 3, 9, 7, 33, 6, 20, 1, 4, 2]
READOUTS = [
    {"name": f"{norm}-{tokens}-{pool}", "norm": norm, "tokens": tokens, "pool": pool}
    for norm, tokens, pool in itertools.product(("none", "final", "rms"), ("all", "content", "skip_first"), ("mean", "last"))
] + [{"name": "weighted", "norm": "none", "tokens": "all", "pool": "weighted_mean"}]
RECIPES = ["raw", "centre_unit", "centre_unit_skip_first", "unit"]


def samples() -> pd.DataFrame:
    """Seven samples of two views each, rows shuffled."""
    return builders.samples(LENGTHS, views=2).sample(frac=1, random_state=0).reset_index(drop=True)


def request(**changes: Any) -> Request:
    facts = {
        "model": "m",
        "model_revision": "r",
        "dtype": "float32",
        "dataset": "d",
        "dataset_digest": "x",
        "provenance": {},
    }
    return Request(**facts | {"readouts": READOUTS, "recipes": RECIPES, "batch_tokens": 64} | changes)


def tiny(folder: Path, **changes: Any) -> TextModel:
    return load(folder, **({"name": "m", "dtype": "float32", "max_tokens": 36, "device": "cpu"} | changes))


def quiet(_done: int, _total: int) -> None:
    pass


def states_of(model: TextModel, text: str) -> list[np.ndarray]:
    """Every layer of one text, alone, by the library and hooks of our own."""
    found: list[torch.Tensor] = []
    blocks = model.module.layers if hasattr(model.module, "layers") else model.module.encoder.layer
    handles = [b.register_forward_hook(lambda _m, _i, o: found.append(o[0] if isinstance(o, tuple) else o)) for b in blocks]
    inputs = model.tokenizer(text, truncation=True, max_length=36, return_tensors="pt")
    with torch.inference_mode():
        first = model.module(**inputs, output_hidden_states=True).hidden_states[0]
    for handle in handles:
        handle.remove()
    return [layer[0].double().numpy() for layer in (first, *found)]


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_the_file_equals_a_slow_recomputation(
    saved: dict[str, Path], tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, frame, calls = tiny(saved[family]), samples(), []
    monkeypatch.setattr(module, "windows", functools.partial(module.windows, budget=60_000))  # several windows
    extract(tmp_path / "a.h5", model, frame, tmp_path, request(), lambda done, total: calls.append((done, total)))
    assert calls == sorted(set(calls))
    assert calls[-1] == (14, 14)
    assert len(list(module.windows(14, module._row_bytes(_header(model, frame), 36)))) > 1

    def final(rows: np.ndarray) -> np.ndarray:
        return model.final_norm.double()(torch.from_numpy(rows)).detach().numpy()

    close = functools.partial(np.testing.assert_allclose, rtol=2e-4, atol=2e-5)
    with Activations(tmp_path / "a.h5") as store:
        assert store.ids == frame["id"].tolist()  # rows in the order of samples.parquet
        assert (store.header.final_norm, store.n_views, store.header.n_samples) == (family == "llama", 2, 7)
        for row, text in enumerate(frame["text"]):
            content = np.array([t not in (3, 4) for t in model.tokenizer(text, truncation=True, max_length=36)["input_ids"]])
            assert store.n_tokens[row] == len(content)
            for layer, tokens in enumerate(states_of(model, text)):
                for entry in READOUTS:
                    how = entry["norm"], entry["tokens"], entry["pool"], final if model.final_norm else None
                    close(store.rows(entry["name"], layer)[row], slow.vector(tokens, content, *how))
                for recipe in RECIPES:
                    expected = slow.spectrum(tokens, recipe)
                    found = store.spectra(recipe, layer)[row]
                    close(found[: len(expected)], expected)
                    assert np.isnan(expected).all() or not found[len(expected) :].any()
                    close(store.angles(recipe, layer)[row], slow.angles(tokens, recipe), atol=2e-3)
                close(store.entropy_clamped(layer)[row], slow.clamped_entropy(tokens), rtol=2e-3)
                close(store.token_norms(layer)[row], slow.norms(tokens))
                close(store.token_cosines(layer)[row], slow.cosines(tokens))
        if family == "llama":
            model.final_norm.float()


def _header(model: TextModel, frame: pd.DataFrame) -> Any:
    return module._header(model, frame, request(), 0)


def test_no_batch_and_no_window_changes_the_result(
    saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, frame = tiny(saved["bert"]), samples()
    extract(tmp_path / "whole.h5", model, frame, tmp_path, request(batch_tokens=10_000), quiet)
    extract(tmp_path / "alone.h5", model, frame, tmp_path, request(batch_tokens=1), quiet)
    monkeypatch.setattr(module, "windows", functools.partial(module.windows, budget=1))
    extract(tmp_path / "rows.h5", model, frame, tmp_path, request(), quiet)
    with Activations(tmp_path / "whole.h5") as whole:
        for other in ("alone.h5", "rows.h5"):
            with Activations(tmp_path / other) as store:
                for layer in range(store.n_layers + 1):
                    for readout in store.readouts:
                        a, b = whole.rows(readout, layer), store.rows(readout, layer)
                        assert np.abs(a - b).max() <= 1e-5 * np.abs(a).max()
                    for recipe in RECIPES:
                        np.testing.assert_allclose(whole.spectra(recipe, layer), store.spectra(recipe, layer), atol=1e-5)
                    np.testing.assert_allclose(whole.entropy_clamped(layer), store.entropy_clamped(layer), rtol=1e-3)


def test_a_second_run_gives_the_same_bytes(saved: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        extract(tmp_path / name, tiny(saved["llama"]), samples(), tmp_path, request(), quiet)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


@pytest.mark.parametrize("calls", [0, 1, 6, 13])
def test_a_kill_leaves_no_file_and_the_next_run_is_whole(
    saved: dict[str, Path], tmp_path: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "windows", functools.partial(module.windows, budget=60_000))
    model, frame, final = tiny(saved["llama"]), samples(), tmp_path / "a.h5"
    left = iter(range(calls))

    def stop(_done: int, _total: int) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:  # a process of its own, as Snakemake's jobs are, without importing torch again
        try:
            extract(final, model, frame, tmp_path, request(batch_tokens=1), stop)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [f".a.h5.{socket.gethostname()}.{child}.tmp"]
    with pytest.raises(FileError):
        Activations(next(tmp_path.iterdir()))
    extract(final, model, frame, tmp_path, request(batch_tokens=1), quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    extract(tmp_path / "b.h5", model, frame, tmp_path, request(batch_tokens=1), quiet)
    assert final.read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_an_error_in_the_middle_leaves_nothing(saved: dict[str, Path], tmp_path: Path) -> None:
    def fail(done: int, _total: int) -> None:
        if done > 5:
            raise ModelError("stop")

    with pytest.raises(ModelError, match="stop"):
        extract(tmp_path / "a.h5", tiny(saved["llama"]), samples(), tmp_path, request(), fail)
    assert not list(tmp_path.iterdir())


def test_only_what_is_asked_for_is_collected(saved: dict[str, Path], tmp_path: Path) -> None:
    model = tiny(saved["llama"])
    extract(tmp_path / "r.h5", model, samples(), tmp_path, request(recipes=[]), quiet)
    extract(tmp_path / "t.h5", model, samples(), tmp_path, request(readouts=[]), quiet)
    with Activations(tmp_path / "r.h5") as store:
        assert store.recipes == []
        assert "tokens" not in store.file
    with Activations(tmp_path / "t.h5") as store:
        assert store.readouts == []
        assert "readout" not in store.file
        assert np.isfinite(store.spectra("raw", 1)[store.n_tokens > 1]).all()


def test_a_model_that_overflows_is_found_when_it_is_read(saved: dict[str, Path], tmp_path: Path) -> None:
    model = tiny(saved["llama"])
    with torch.no_grad():
        model.module.layers[1].mlp.down_proj.weight[:, 0] = torch.inf
    extract(tmp_path / "a.h5", model, samples(), tmp_path, request(), quiet)
    with Activations(tmp_path / "a.h5") as store:
        assert np.isfinite(store.rows("none-all-mean", 1)).all()
        with pytest.raises(FileError, match=r"readout 'none-all-mean', layer 2 holds NaN or infinity in 14 rows, first 's"):
            store.rows("none-all-mean", 2)
        assert np.isnan(store.spectra("raw", 2)).all()


def test_a_value_beyond_float16_stops_the_run(saved: dict[str, Path], tmp_path: Path) -> None:
    model = tiny(saved["llama"])
    with torch.no_grad():
        model.module.embed_tokens.weight.mul_(1e6)
    with pytest.raises(FileError, match="beyond 65,504, which float16 cannot store; set 'storage: float32'"):
        extract(tmp_path / "a.h5", model, samples(), tmp_path, request(storage="float16"), quiet)
    assert not list(tmp_path.iterdir())


def test_a_half_precision_model_gives_float32_files_close_to_the_full_one(saved: dict[str, Path], tmp_path: Path) -> None:
    for dtype in ("float32", "bfloat16"):
        extract(
            tmp_path / f"{dtype}.h5", tiny(saved["llama"], dtype=dtype), samples(), tmp_path, request(dtype=dtype), quiet
        )
    with Activations(tmp_path / "float32.h5") as full, Activations(tmp_path / "bfloat16.h5") as half:
        assert half.header.dtype == "bfloat16"
        assert half.file["readout/none-all-mean/001"].dtype == np.float32
        a, b = full.rows("none-all-mean", 3), half.rows("none-all-mean", 3)
        assert 0 < np.abs(a - b).max() < 0.1 * np.abs(a).max()
