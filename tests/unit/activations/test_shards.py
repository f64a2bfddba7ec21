"""Shards: rows that stay together, one file that equals that of one extraction, and shards that do not belong to it."""

import dataclasses
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from layerwise.activations import extract as module
from layerwise.activations import shards
from layerwise.activations.extract import Request, extract
from layerwise.activations.shards import join, rows_of_shard
from layerwise.errors import DataError, FileError
from layerwise.models.text import TextModel, load
from layerwise.store import Activations

from tests import builders

EXPECTED = {"model": "m", "model_revision": "r", "dataset": "d", "dataset_digest": "x"}
READOUTS = [
    {"name": "mean", "norm": "none", "tokens": "all", "pool": "mean"},
    {"name": "last", "norm": "final", "tokens": "all", "pool": "last"},
]
PREFIXES = {"transform": "prefixes", "seed": 0, "conditions": [{"level": level, "draw": 0} for level in (2, 4)]}
LENGTHS = [5, 1, 12, 30, 2, 3, 9, 7, 24, 6, 20, 4, 8, 11]


@pytest.fixture(scope="module")
def model(saved: dict[str, Path]) -> TextModel:
    return load(saved["llama"], name="m", dtype="float32", max_tokens=36, device="cpu")


def quiet(_done: int, _total: int) -> None:
    pass


def write(path: Path, model: TextModel, frame: pd.DataFrame, **changes: Any) -> Path:
    facts = {**EXPECTED, "dtype": "float32", "readouts": READOUTS, "recipes": ["raw", "centre_unit"], "provenance": {}}
    extract(path, model, frame, path.parent, Request(**facts | {"batch_tokens": 64} | changes), quiet)
    return path


def write_shards(folder: Path, model: TextModel, frame: pd.DataFrame, count: int, **changes: Any) -> list[Path]:
    parts = []
    for number in range(1, count + 1):
        rows = rows_of_shard(frame, number, count, "d")
        own = changes | {"provenance": {"shard": [number, count]}}
        parts.append(write(folder / f"{number}-of-{count}.h5", model, rows, **own))
    return parts


def joined(path: Path, parts: list[Path], frame: pd.DataFrame, **changes: Any) -> Path:
    join(path, parts, frame["id"].tolist(), EXPECTED, changes.get("compression"), quiet)
    return path


CASES = {
    "texts": (builders.samples(LENGTHS), {}),
    "views": (builders.samples(LENGTHS, views=2), {"recipes": []}),
    "taps": (builders.samples(LENGTHS), {"taps": ["residual", "mlp"]}),
    "half": (builders.samples(LENGTHS), {"storage": "float16", "compression": "gzip"}),
    "prefixes": (builders.samples([9] * 8, views=2), {"token_transform": PREFIXES}),
    "no vectors": (builders.samples(LENGTHS), {"readouts": []}),
}


@pytest.mark.parametrize("blocks", [1, shards._BLOCK_BYTES])
@pytest.mark.parametrize("case", CASES)
def test_the_file_is_that_of_one_extraction(
    model: TextModel, tmp_path: Path, case: str, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, options = CASES[case]
    monkeypatch.setattr(shards, "_BLOCK_BYTES", blocks)
    whole = write(tmp_path / "whole.h5", model, frame, **options)
    parts = write_shards(tmp_path / "parts", model, frame, 3, **options)
    found = joined(tmp_path / "joined.h5", parts, frame, **options)
    with h5py.File(whole) as a, h5py.File(found) as b:
        names: list[str] = []
        a.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        others: list[str] = []
        b.visititems(lambda name, item: others.append(name) if isinstance(item, h5py.Dataset) else None)
        assert names == others
        for name in names:
            assert (a[name].dtype, a[name].compression) == (b[name].dtype, b[name].compression)
            x, y = a[name][:], b[name][:]
            if x.dtype.kind != "f":
                np.testing.assert_array_equal(x, y)
                continue
            np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
            limit = 1e-3 if x.dtype == np.float16 else 1e-6
            assert np.nanmax(np.abs(x - y), initial=0) <= limit * np.nanmax(np.abs(x), initial=0), name
    with Activations(whole) as first, Activations(found) as second:
        header, other = dataclasses.asdict(first.header), dataclasses.asdict(second.header)
        assert other.pop("provenance") == header.pop("provenance") | {"shards": 3}
        assert header == other
        assert second.ids == frame["id"].tolist()


def test_shards_that_end_with_windows_give_the_same_vectors(
    model: TextModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = builders.samples([7] * 12)
    monkeypatch.setattr(module, "windows", functools.partial(module.windows, budget=1))
    whole = write(tmp_path / "whole.h5", model, frame)
    found = joined(tmp_path / "joined.h5", write_shards(tmp_path / "parts", model, frame, 4), frame)
    with h5py.File(whole) as a, h5py.File(found) as b:
        for layer in range(4):
            name = f"readout/mean/{layer:03d}"
            np.testing.assert_array_equal(a[name][:], b[name][:])


@pytest.mark.parametrize("views", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_every_row_is_in_one_shard_and_copies_of_a_sample_in_the_same(views: int, count: int) -> None:
    frame = builders.samples([3] * 7 * views, views=views)
    parts = [rows_of_shard(frame, number, count, "d") for number in range(1, count + 1)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), frame)
    sizes = [part["source_id"].nunique() for part in parts]
    assert sum(sizes) == 7
    assert max(sizes) - min(sizes) <= 1


def test_copies_that_stand_apart_are_not_parted() -> None:
    frame = pd.DataFrame({"source_id": list("abcabcdd")})
    assert [len(rows_of_shard(frame, number, 2, "d")) for number in (1, 2)] == [6, 2]
    with pytest.raises(DataError, match="cannot be cut into 3 shards, it has 2 samples; write 'shards: 2' or fewer"):
        rows_of_shard(frame, 1, 3, "d")


def swapped(parts: list[Path]) -> str:
    parts[0], parts[1] = parts[1], parts[0]
    return r"2-of-3\.h5 is of shard \[2, 3\], \[1, 3\] is expected; delete it and run again"


def absent(parts: list[Path]) -> str:
    parts[1].unlink()
    return r"2-of-3\.h5 is not a readable activation file"


def fewer(parts: list[Path]) -> str:
    parts.pop()
    return r"1-of-3\.h5 is of shard \[1, 3\], \[1, 2\] is expected"


def cut(parts: list[Path]) -> str:
    os.truncate(parts[2], parts[2].stat().st_size // 2)
    return r"3-of-3\.h5 is not a readable activation file"


def flipped(parts: list[Path]) -> str:
    with h5py.File(parts[1]) as opened:
        chunk = opened["readout/last/002"].id.get_chunk_info(0)
    content = bytearray(parts[1].read_bytes())
    content[chunk.byte_offset + 5] ^= 4
    parts[1].write_bytes(content)
    return r"2-of-3\.h5: cannot read readout/last/002 .*delete the file and run again"


def no_shard(parts: list[Path]) -> str:
    with h5py.File(parts[0], "a") as opened:
        opened.attrs["provenance"] = '{"one_token_samples": 0, "empty_texts": 0}'
    return r"1-of-3\.h5 is of shard None, \[1, 3\] is expected"


def header(key: str, value: str) -> Any:
    def change(parts: list[Path]) -> str:
        with h5py.File(parts[1], "a") as opened:
            opened.attrs[key] = value
        return rf"2-of-3\.h5 is of {key} '{value}', '\w+' is expected; delete it and run again"

    return change


DAMAGE = {
    "swapped": swapped,
    "absent": absent,
    "fewer": fewer,
    "cut": cut,
    "flipped": flipped,
    "no shard": no_shard,
    "another model": header("model", "other"),
    "another revision": header("model_revision", "other"),
    "another dataset": header("dataset_digest", "other"),
    "another dtype": header("dtype", "bfloat16"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_does_not_belong_is_refused_in_one_sentence(model: TextModel, tmp_path: Path, case: str) -> None:
    frame = builders.samples(LENGTHS)
    parts = write_shards(tmp_path / "parts", model, frame, 3)
    sentence = DAMAGE[case](parts)
    with pytest.raises(FileError, match=sentence) as caught:
        joined(tmp_path / "joined.h5", parts, frame)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("*.h5")) and not list(tmp_path.glob(".*"))


def test_rows_of_other_samples_are_refused(model: TextModel, tmp_path: Path) -> None:
    frame = builders.samples(LENGTHS)
    parts = write_shards(tmp_path / "parts", model, frame, 2)
    with pytest.raises(FileError, match="do not hold the rows of dataset 'd'; delete that folder and run again"):
        joined(tmp_path / "joined.h5", parts, frame.iloc[::-1])


def test_joining_needs_no_torch() -> None:
    code = "import sys, layerwise.activations.shards; print('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(module.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "False"
