"""Damage where extraction itself wrote, and pickles in the place of files: one sentence, and no code is run."""

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from layerwise.errors import LayerwiseError
from layerwise.models.snapshot import download
from layerwise.records import read_record
from layerwise.samples import read_samples
from layerwise.store import Activations

from tests import builders
from tests.faults.conftest import Extraction

PREFIXES = {
    "transform": "prefixes",
    "seed": 0,
    "conditions": [{"level": level, "draw": 0} for level in (2, 4)],
}
UNREAD = {"tokens/offsets"}  # for readers of other programs; ours know it from n_tokens


def read_all(path: Path) -> None:
    """Read everything once."""
    with Activations(path) as store:
        if store.conditions:
            store.input_ids()
        for reader in [store.at(tap) for tap in store.taps]:
            for layer in reader.layers:
                for readout in store.readouts:
                    reader.rows(readout, layer)
                for recipe in store.recipes:
                    reader.spectra(recipe, layer)
                    reader.angles(recipe, layer)
                reader.entropy_clamped(layer)
                reader.token_norms(layer)
                reader.token_cosines(layer)


def chunks_of(path: Path) -> dict[str, tuple[int, int]]:
    """Offset and bytes of the last chunk of every dataset."""
    found: dict[str, tuple[int, int]] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            chunk = item.id.get_chunk_info(item.id.get_num_chunks() - 1)
            found[name] = (chunk.byte_offset, chunk.size)

    with h5py.File(path) as opened:
        opened.visititems(visit)
    return found


@pytest.mark.parametrize("kind", ["taps", "conditions"])
def test_a_flipped_bit_of_any_dataset_is_noticed(extraction: Extraction, tmp_path: Path, kind: str) -> None:
    path, rng = tmp_path / "a.h5", np.random.default_rng(0)
    if kind == "taps":
        extraction(path, samples=builders.samples([3, 9, 5]), taps=["residual", "mlp"])
    else:
        extraction(path, samples=builders.samples([9, 9, 5, 5], views=2), token_transform=PREFIXES)
    read_all(path)
    whole, chunks = path.read_bytes(), chunks_of(path)
    assert {"id", "view", "readout/mean/003", "tokens/raw/spectrum/000", "tokens/cosine/001"} < set(chunks)
    assert any(name.startswith("taps/mlp/readout") for name in chunks) if kind == "taps" else "input_ids" in chunks
    missed = set()
    for name, (offset, size) in chunks.items():
        content = bytearray(whole)
        content[offset + rng.integers(size)] ^= 1 << rng.integers(8)
        path.write_bytes(content)
        with h5py.File(path) as opened, pytest.raises(OSError, match=r"during read|checksum"):
            opened[name][:]
        try:
            read_all(path)
            missed.add(name)
        except LayerwiseError as error:
            assert "run again" in str(error)
    assert missed == UNREAD


class Canary:
    """What leaves a file when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch canary",)


def pickles() -> dict[str, bytes]:
    """A canary in each form that numbers are passed on in."""
    array = np.empty(1, dtype=object)
    array[0] = Canary()
    forms = {"pickle": pickle.dumps(Canary())}
    for name, save in (("pt", lambda file: torch.save(Canary(), file)), ("npy", lambda file: np.save(file, array))):
        buffer = io.BytesIO()
        save(buffer)
        forms[name] = buffer.getvalue()
    buffer = io.BytesIO()
    np.savez(buffer, a=array)
    return forms | {"npz": buffer.getvalue()}


READERS: dict[str, Callable[[Path], object]] = {
    "activations": Activations,
    "samples": read_samples,
    "record": read_record,
    "weights": lambda path: download(Path("models/m/manifest.json"), "m", {"path": str(path.parent)}),
}


@pytest.mark.parametrize("form", ["pickle", "pt", "npy", "npz"])
@pytest.mark.parametrize("reader", READERS)
def test_a_pickle_is_refused_and_not_run(reader: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    name = {"activations": "a.h5", "samples": "samples.parquet", "record": "manifest.json", "weights": "model.safetensors"}
    path = tmp_path / "given" / name[reader]
    path.write_bytes(pickles()[form])
    with pytest.raises(LayerwiseError) as caught:
        READERS[reader](path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "canary").exists()


def test_the_canary_would_sing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickles()["pickle"])
    assert (tmp_path / "canary").exists()
