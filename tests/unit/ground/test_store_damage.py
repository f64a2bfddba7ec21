"""Damaged, forged and foreign activation files: one sentence each, before memory is taken for them."""

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from layerwise.errors import FileError
from layerwise.store import Activations

from tests.activation_files import LAYERS, READOUTS, RECIPES, WIDTH, write_file


def read_all(path: Path) -> None:
    """Read every array once, as the metrics do."""
    with Activations(path) as store:
        for layer in range(LAYERS + 1):
            for readout in READOUTS:
                store.rows(readout, layer)
            for recipe in RECIPES:
                store.spectra(recipe, layer)
                store.angles(recipe, layer)
            store.entropy_clamped(layer)
            store.token_norms(layer)


def refused(path: Path, sentence: str = "activation file|damaged|cannot read") -> None:
    with pytest.raises(FileError, match=sentence) as caught:
        read_all(path)
    assert str(path) in str(caught.value)
    assert "run again" in str(caught.value)


def test_the_whole_file_passes(file: Path) -> None:
    read_all(file)


@pytest.mark.parametrize("tenth", range(10))
def test_a_truncated_file_is_refused(file: Path, tenth: int) -> None:
    size = file.stat().st_size
    os.truncate(file, size * tenth // 10)
    refused(file, "is not a readable activation file")


def test_a_file_without_its_last_byte_is_refused(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)
    refused(file)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"id,text\na,b\n", b"version https://git-lfs.github.com\n"])
def test_a_file_that_is_no_hdf5_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    refused(file, "is not a readable activation file")


def test_an_absent_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "absent.h5", "is not a readable activation file")
    refused(tmp_path, "is not a readable activation file")


def datasets() -> list[str]:
    names = ["id", "source_id", "view", "n_tokens"]
    for layer in range(LAYERS + 1):
        names += [f"readout/{readout}/{layer:03d}" for readout in READOUTS]
        names += [f"tokens/{recipe}/{kind}/{layer:03d}" for recipe in RECIPES for kind in ("spectrum", "turning_angle")]
        names += [f"tokens/centre_unit/entropy_clamped/{layer:03d}", f"tokens/norm/{layer:03d}"]
    return names


@pytest.mark.parametrize("name", datasets())
def test_a_flipped_bit_is_caught_in_every_dataset(file: Path, name: str) -> None:
    with h5py.File(file) as opened:
        chunk = opened[name].id.get_chunk_info(0)
    content = bytearray(file.read_bytes())
    content[chunk.byte_offset + chunk.size // 3] ^= 0x10
    file.write_bytes(content)
    refused(file)


def replace(name: str, *arguments: object, **options: object) -> Callable[[h5py.File], None]:
    def change(opened: h5py.File) -> None:
        del opened[name]
        if arguments or options:
            opened.create_dataset(name, *arguments, **options)

    return change


def attribute(name: str, value: object) -> Callable[[h5py.File], None]:
    return lambda opened: opened.attrs.__setitem__(name, value)


def link(name: str, target: object) -> Callable[[h5py.File], None]:
    def change(opened: h5py.File) -> None:
        write_file(Path("other.h5"))
        del opened[name]
        opened[name] = target

    return change


def stored_outside(opened: h5py.File) -> None:
    Path("raw.bin").write_bytes(bytes(96))
    replace("readout/mean/001", (6, WIDTH), "f4", external=[("raw.bin", 0, 96)])(opened)


def virtual(opened: h5py.File) -> None:
    write_file(Path("other.h5"))
    layout = h5py.VirtualLayout((6, WIDTH), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "readout/mean/000", (6, WIDTH))
    del opened["readout/mean/001"]
    opened.create_virtual_dataset("readout/mean/001", layout)


def group_for_array(opened: h5py.File) -> None:
    del opened["readout/mean/001"]
    opened.create_group("readout/mean/001")


def swap_names(opened: h5py.File) -> None:
    opened.move("readout/mean/001", "readout/mean/1")


VALUES = np.zeros((6, WIDTH))
DAMAGE = {
    "complete absent": (lambda opened: opened.attrs.__delitem__("complete"), "is incomplete"),
    "complete false": (attribute("complete", False), "is incomplete"),
    "complete in words": (attribute("complete", "no"), "is incomplete"),
    "version absent": (lambda opened: opened.attrs.__delitem__("schema_version"), "is damaged"),
    "version to come": (attribute("schema_version", 4), "has schema version 4, this program reads 3"),
    "version of before": (attribute("schema_version", 2), "schema version 2, this program reads 3; delete it and run again"),
    "width absent": (lambda opened: opened.attrs.__delitem__("width"), "is damaged"),
    "layers in words": (attribute("n_layers", "three"), "is damaged"),
    "more layers": (attribute("n_layers", 3), "3 layer names for 4 layers"),
    "too many layers to count": (attribute("n_layers", 10**12), "3 layer names for"),
    "no json": (attribute("recipes", '["raw"'), "is damaged"),
    "no text": (attribute("readouts", 5), "is damaged"),
    "readouts without names": (attribute("readouts", "[1]"), "is damaged"),
    "a readout that is not there": (attribute("readouts", '[{"name": "last"}]'), "readout/last/000 is absent"),
    "more samples": (attribute("n_samples", 7), "6 distinct samples, 7 in its header"),
    "another width": (attribute("width", 5), r"readout/mean/000 is float32\(6, 4\), float\(6, 5\) expected"),
    "ids absent": (replace("id"), "id is absent"),
    "ids are numbers": (replace("id", data=np.arange(6)), "id is int64"),
    "ids fewer": (replace("id", data=np.array([b"a"] * 5)), "its row columns differ in length"),
    "sources more": (replace("source_id", data=np.array([b"a"] * 7)), "is damaged"),
    "views are floats": (replace("view", data=np.zeros(6)), "view is float64"),
    "tokens negative": (replace("n_tokens", data=np.full(6, -1)), "is damaged"),
    "tokens other": (replace("n_tokens", data=np.full(6, 2)), r"tokens/raw/spectrum/000 is float32\(18,\), float\(12,\)"),
    "ids a table": (replace("id", data=np.array([[b"a"] * 6])), "id is"),
    "layer absent": (replace("readout/mean_normed/001"), "readout/mean_normed/001 is absent"),
    "spectrum absent": (replace("tokens/raw/spectrum/002"), "tokens/raw/spectrum/002 is absent"),
    "angles absent": (replace("tokens/raw/turning_angle/002"), "tokens/raw/turning_angle/002 is absent"),
    "clamped absent": (replace("tokens/centre_unit/entropy_clamped/000"), "entropy_clamped/000 is absent"),
    "norms absent": (replace("tokens/norm/002"), "tokens/norm/002 is absent"),
    "layer renamed": (swap_names, "readout/mean/001 is absent"),
    "layer more": (lambda opened: opened.create_dataset("readout/mean/003", data=VALUES), "readout/mean holds 4 layers"),
    "angles more": (lambda o: o.create_dataset("tokens/raw/turning_angle/003", data=VALUES), "turning_angle holds 4 layers"),
    "rows fewer": (replace("readout/mean/001", data=VALUES[:5].astype("f4")), r"\(5, 4\), float\(6, 4\) expected"),
    "a group": (group_for_array, "readout/mean/001 is absent"),
    **{
        f"dtype {dtype}": (
            replace("readout/mean/001", data=VALUES.astype(dtype)),
            "readout/mean/001 is .*, float.* expected",
        )
        for dtype in ("f8", "i4", "V2", "S4", ">f4", "c8", "?")
    },
    "soft link": (link("readout/mean/001", h5py.SoftLink("/readout/mean/000")), "is stored elsewhere"),
    "external layer": (link("readout/mean/001", h5py.ExternalLink("other.h5", "/readout/mean/001")), "is stored elsewhere"),
    "external readout": (link("readout/mean", h5py.ExternalLink("other.h5", "/readout/mean")), "is stored elsewhere"),
    "external ids": (link("id", h5py.ExternalLink("other.h5", "/id")), "is stored elsewhere"),
    "external to nothing": (link("id", h5py.ExternalLink("/etc/passwd", "/")), "is stored elsewhere"),
    "raw bytes of another file": (stored_outside, "is absent or stored elsewhere"),
    "virtual": (virtual, "is absent or stored elsewhere"),
    "huge ids": (replace("id", (10**11,), "S10", chunks=(1000,)), "id is "),
    "huge views": (replace("view", (10**12,), "i8", chunks=(1000,)), "view is int64"),
    "never written": (
        replace("readout/mean/001", (6, WIDTH), "f4", chunks=(1, 4), fillvalue=0.0),
        "declares more rows than",
    ),
    "partly written": (replace("tokens/norm/001", (6, 3), "f4", chunks=(1, 3), fillvalue=0.0), "declares more rows than"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_file_of_another_shape_is_refused(file: Path, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, sentence = DAMAGE[case]
    monkeypatch.chdir(tmp_path)
    with h5py.File(file, "a") as opened:
        change(opened)
    refused(file, sentence)


def test_a_huge_declared_shape_takes_no_memory(file: Path) -> None:
    rows = 50_000_000
    with h5py.File(file, "a") as opened:
        for layer in range(LAYERS + 1):
            for readout in READOUTS:
                replace(f"readout/{readout}/{layer:03d}", (rows, WIDTH), "f4", chunks=(10**5, WIDTH))(opened)
        for name, dtype in (("id", "S9"), ("source_id", "S9"), ("view", "i8"), ("n_tokens", "i8")):
            replace(name, (rows,), dtype, chunks=(10**5,))(opened)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(file, "is damaged")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_rows_swapped_between_samples_would_show(file: Path) -> None:
    """The ids are in the file, so that a reader joins by them and not by order."""
    with h5py.File(file) as opened:
        assert [value.decode() for value in opened["id"][:]] == [f"id-{i}" for i in range(6)]
        assert json.loads(opened.attrs["layer_names"])[0].startswith("input of")


def test_layer_names_out_of_order_are_refused(file: Path) -> None:
    with h5py.File(file, "r+") as opened:
        names = json.loads(opened.attrs["layer_names"])
        opened.attrs["layer_names"] = json.dumps([names[0], *names[:0:-1]])
    refused(file, "layer names are out of order")


def test_a_refused_file_is_closed_again(file: Path) -> None:
    with h5py.File(file, "a") as opened:
        opened.attrs["complete"] = False
    refused(file, "is incomplete")
    with h5py.File(file, "a") as opened:  # a handle left open would lock it
        opened.attrs["complete"] = True
    read_all(file)
