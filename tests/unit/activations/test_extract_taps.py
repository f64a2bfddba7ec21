"""Taps from the forward pass to the table: the file, the metric records and metrics.csv."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from layerwise.activations.extract import Request, extract
from layerwise.errors import ModelError
from layerwise.models.taps import TAPS
from layerwise.models.text import TextModel, load
from layerwise.store import Activations
from layerwise.tables.collect import metrics_table

from tests import builders, slow

LENGTHS = [5, 1, 12, 20, 2, 3, 9, 7, 4, 6, 8, 11]
READOUTS = [
    {"name": "mean", "norm": "none", "tokens": "all", "pool": "mean"},
    {"name": "mean_normed", "norm": "final", "tokens": "all", "pool": "mean"},
]
RECIPES = ["raw", "centre_unit_skip_first"]
EVERY = ["residual", *TAPS]
SCRIPTS = Path(__file__).parents[3] / "workflow_scripts"


def write(path: Path, family: Path, taps: list[str] | None = None) -> None:
    facts = {"model": "m", "model_revision": "r", "dtype": "float32", "dataset": "d", "dataset_digest": "x"}
    asked = {} if taps is None else {"taps": taps}
    request = Request(**facts, provenance={}, readouts=READOUTS, recipes=RECIPES, batch_tokens=40, **asked)
    model = load(family, "m", "float32", 36, "cpu")
    extract(path, model, builders.samples(LENGTHS), path.parent, request, lambda _done, _total: None)


def adapter(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs(model: TextModel, text: str, path: str) -> list[np.ndarray]:
    """(T, D) of one submodule of every block, for one text alone."""
    kept: list[np.ndarray] = []

    def note(_module: object, _args: object, output: Any) -> None:
        kept.append((output[0] if isinstance(output, tuple) else output)[0].numpy())

    handles = [block.get_submodule(path).register_forward_hook(note) for block in model.stack.blocks]
    with torch.inference_mode():
        model.module(**model.tokenizer(text, return_tensors="pt"))
    for handle in handles:
        handle.remove()
    return kept


@pytest.mark.parametrize("family", ["neox", "bert"])
def test_taps_in_the_file_equal_a_slow_recomputation(saved: dict[str, Path], tmp_path: Path, family: str) -> None:
    write(tmp_path / "a.h5", saved[family], EVERY)
    model = load(saved[family], "m", "float32", 36, "cpu")
    paths = {"neox": ("attention", "mlp"), "bert": ("attention.output.dense", "output.dense")}[family]
    close = {"rtol": 2e-4, "atol": 2e-5}
    with Activations(tmp_path / "a.h5") as store:
        assert store.taps == EVERY
        for row, text in enumerate(builders.samples(LENGTHS)["text"]):
            for tap, path in zip(("attention", "mlp"), paths, strict=True):
                for layer, tokens in enumerate(outputs(model, text, path), 1):
                    read = store.at(tap)
                    np.testing.assert_allclose(read.rows("mean", layer)[row], tokens.mean(0), **close)
                    np.testing.assert_allclose(read.token_norms(layer)[row], slow.norms(tokens), **close)
                    expected = slow.spectrum(tokens, "raw")
                    np.testing.assert_allclose(read.spectra("raw", layer)[row][: len(expected)], expected, **close)


def test_the_readouts_of_a_sum_are_the_sums_of_readouts(saved: dict[str, Path], tmp_path: Path) -> None:
    write(tmp_path / "a.h5", saved["llama"], EVERY)
    with Activations(tmp_path / "a.h5") as store:
        for layer in range(1, store.n_layers + 1):
            mean = {tap: store.at(tap).rows("mean", layer) for tap in EVERY}
            middle = store.rows("mean", layer - 1) + mean["attention"]
            np.testing.assert_allclose(mean["attention_residual"], middle, atol=1e-5)
            np.testing.assert_allclose(mean["residual"], middle + mean["mlp"], atol=1e-5)


def test_taps_change_nothing_of_the_residual_stream(saved: dict[str, Path], tmp_path: Path) -> None:
    write(tmp_path / "alone.h5", saved["llama"])
    write(tmp_path / "beside.h5", saved["llama"], EVERY)
    with h5py.File(tmp_path / "alone.h5") as alone, h5py.File(tmp_path / "beside.h5") as beside:
        assert json.loads(alone.attrs["taps"]) == ["residual"]
        assert set(beside) - set(alone) == {"taps"}
        names: list[str] = []
        alone.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in names:
            np.testing.assert_array_equal(alone[name][:], beside[name][:])


def test_an_unknown_architecture_leaves_no_file(tmp_path: Path) -> None:
    mamba = builders.save(tmp_path / "model", "mamba")
    with pytest.raises(ModelError, match=r"blocks of type MambaBlock have no known taps \(attention asked for\)"):
        write(tmp_path / "a.h5", mamba, ["residual", "attention"])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_effective_rank_over_taps_reaches_the_table(saved: dict[str, Path], tmp_path: Path) -> None:
    write(tmp_path / "a.h5", saved["llama"], ["residual", "attention", "mlp"])
    files = []
    for metric in ("effective_rank", "sink_norm_ratio"):
        files.append(tmp_path / f"{metric}.json")
        calls: list[tuple[int, int]] = []
        main = adapter("compute_metric").main
        parameters = {"null_draws": 2, "subsamples": 3}
        main(
            str(files[-1]),
            str(tmp_path / "a.h5"),
            "",
            metric,
            parameters,
            {"seed": 0},
            lambda *at, calls=calls: calls.append(at),
        )
        assert calls[-1][0] == calls[-1][1] == len(calls)
    metrics_table(files).to_csv(tmp_path / "metrics.csv", index=False)
    table = pd.read_csv(tmp_path / "metrics.csv", keep_default_na=False)
    assert table.groupby("tap")["layer"].agg(["min", "max"]).to_numpy().tolist() == [[1, 3], [1, 3], [0, 3]]
    assert (table["depth"].astype(float) == table["layer"] / 3).all()
    ranks = table[(table["metric"] == "effective_rank") & (table["readout"] == "mean")].set_index(["tap", "layer"])
    with Activations(tmp_path / "a.h5") as store:
        from layerwise.metrics.effective_rank import effective_rank
        from layerwise.spectrum import centre_unit

        for (tap, layer), row in ranks.iterrows():
            expected = effective_rank(centre_unit(store.at(tap).pooled("mean", layer)))
            assert float(row["value"]) == pytest.approx(expected, rel=1e-9)
            assert float(row["se"]) > 0
            assert float(row["null_value"]) == pytest.approx(
                float(ranks["null_value"].iloc[0])
            )  # sizes are those of all taps
        norms = table[table["metric"] == "sink_norm_ratio"].set_index(["tap", "layer"])["value"].astype(float)
        found = store.at("mlp").token_norms(2)
        usable = store.n_tokens > 1
        assert norms["mlp", 2] == pytest.approx((found[usable, 0] / found[usable, 1]).mean())
