"""The activation file read back: every array, views, ragged spectra, and what must not be stored."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from layerwise.atomic import atomic_path
from layerwise.errors import FileError
from layerwise.store import Activations, Header, Writer
from layerwise.store_layout import gathered

from tests.activation_files import LAYERS, READOUTS, RECIPES, WIDTH, write_file

TOKENS = np.array([3, 5, 1, 4, 2, 6])


def test_everything_comes_back_as_it_was_written(tmp_path: Path) -> None:
    written = write_file(tmp_path / "a.h5")
    with Activations(tmp_path / "a.h5") as store:
        assert store.ids == store.source_ids == [f"id-{i}" for i in range(6)]
        assert store.n_tokens.tolist() == TOKENS.tolist()
        assert (store.readouts, store.recipes, store.n_layers, store.width) == (READOUTS, RECIPES, LAYERS, WIDTH)
        assert store.header.provenance == {"code": "0123", "seed": None}
        assert store.header.final_norm is True
        assert store.header.layer_names == ["input of h.0", "h.0", "h.1"]
        for layer in range(LAYERS + 1):
            for readout in READOUTS:
                values = store.rows(readout, layer)
                assert values.dtype == np.float64
                np.testing.assert_array_equal(values, written[f"readout/{readout}/{layer:03d}"])
                np.testing.assert_array_equal(store.pooled(readout, layer), values)
                np.testing.assert_array_equal(store.views(readout, layer), values[:, None])
            for recipe in RECIPES:
                angles = written[f"tokens/{recipe}/turning_angle/{layer:03d}"]
                np.testing.assert_array_equal(store.angles(recipe, layer), angles)
            np.testing.assert_array_equal(
                store.entropy_clamped(layer), written[f"tokens/centre_unit/entropy_clamped/{layer:03d}"]
            )
            np.testing.assert_array_equal(store.token_norms(layer), written[f"tokens/norm/{layer:03d}"])


def test_ragged_spectra_come_back_one_row_per_sample(tmp_path: Path) -> None:
    flat = write_file(tmp_path / "a.h5")["tokens/raw/spectrum/001"]
    with Activations(tmp_path / "a.h5") as store:
        spectra = store.spectra("raw", 1)
    assert spectra.shape == (6, WIDTH)
    start = 0
    for row, length in enumerate(np.minimum(TOKENS, WIDTH)):
        expected = np.zeros(WIDTH)
        expected[:length] = flat[start : start + length]
        np.testing.assert_array_equal(spectra[row], np.full(WIDTH, np.nan) if length == 1 else expected)
        start += length
    assert start == len(flat)


def test_windows_land_where_their_rows_are(tmp_path: Path) -> None:
    whole = write_file(tmp_path / "whole.h5")
    with Activations(tmp_path / "whole.h5") as store:
        header = store.header
    ids, offsets = [f"id-{i}" for i in range(6)], np.concatenate([[0], np.cumsum(np.minimum(TOKENS, WIDTH))])
    with Writer(tmp_path / "parts.h5", header, ids, ids, np.zeros(6, int), TOKENS) as writer:
        for start, end in ((4, 6), (0, 1), (1, 4)):
            part = {
                name: values[offsets[start] : offsets[end]] if "/spectrum/" in name else values[start:end]
                for name, values in whole.items()
            }
            writer.write(start, part)
    with h5py.File(tmp_path / "whole.h5") as a, h5py.File(tmp_path / "parts.h5") as b:
        for name in whole:
            np.testing.assert_array_equal(a[name][:], b[name][:])
        assert {name: a.attrs[name] for name in a.attrs if name != "complete"} == {
            name: b.attrs[name] for name in b.attrs if name != "complete"
        }


def test_views_are_grouped_by_sample_whatever_the_order_of_rows(tmp_path: Path) -> None:
    sources, views = ["x", "y", "z", "y", "x", "z"], [1, 0, 1, 1, 0, 0]
    ids = [f"{source}~{view}" for source, view in zip(sources, views, strict=True)]
    values = np.arange(6 * WIDTH, dtype=np.float32).reshape(6, WIDTH)
    write_file(tmp_path / "a.h5", ids=ids, source_ids=sources, views=views, values={"readout/mean/000": values})
    with Activations(tmp_path / "a.h5") as store:
        assert store.n_views == 2
        np.testing.assert_array_equal(store.views("mean", 0), values[[[4, 0], [1, 3], [5, 2]]])  # samples as they appear
        np.testing.assert_array_equal(store.pooled("mean", 0), values[[4, 1, 5]])
        np.testing.assert_array_equal(store.rows("mean", 0), values)


@pytest.mark.parametrize(
    ("sources", "views"),
    [
        (["x", "x", "x", "y"], [0, 1, 2, 0]),  # four rows, two samples: an even number of rows, not of views
        (["x", "x", "y"], [0, 1, 0]),
        (["x", "x", "x", "x", "y", "z"], [0, 1, 2, 3, 0, 0]),
    ],
)
def test_samples_with_different_numbers_of_views_are_refused(tmp_path: Path, sources: list[str], views: list[int]) -> None:
    ids = [f"{i}" for i in range(len(views))]
    write_file(tmp_path / "a.h5", ids=ids, source_ids=sources, views=views, n_tokens=[3] * len(views))
    with pytest.raises(FileError, match="its samples differ in their number of views"):
        Activations(tmp_path / "a.h5")


def test_ids_may_be_any_text(tmp_path: Path) -> None:
    ids = ["", "ünï/çødé", "a b", "👩‍👩‍👧‍👦", "x" * 300, "~1"]
    write_file(tmp_path / "a.h5", ids=ids)
    with Activations(tmp_path / "a.h5") as store:
        assert store.ids == ids


@pytest.mark.parametrize("bad", [65505.0, -1e6, np.inf])
def test_float16_refuses_what_it_cannot_hold(tmp_path: Path, bad: float) -> None:
    values = np.zeros((6, WIDTH), np.float32)
    values[3, 1] = bad
    sentence = r"readout/mean/001 holds a value beyond 65,504, .* set 'storage: float32'"
    with pytest.raises(FileError, match=sentence), atomic_path(tmp_path / "a.h5") as path:
        write_file(path, storage="float16", values={"readout/mean/001": values})
    assert not list(tmp_path.iterdir())


def test_float16_and_compression_read_like_float32(tmp_path: Path) -> None:
    written = write_file(
        tmp_path / "a.h5", storage="float16", compression="gzip", values={"readout/mean/000": np.full((6, 4), 65504.0)}
    )
    with Activations(tmp_path / "a.h5") as store:
        assert store.file["readout/mean/001"].dtype == np.float16
        assert store.rows("mean", 0).max() == 65504.0
        np.testing.assert_allclose(store.rows("mean", 1), written["readout/mean/001"], rtol=1e-3)
        np.testing.assert_array_equal(
            store.spectra("raw", 1)[0, :3], written["tokens/raw/spectrum/001"][:3]
        )  # stays float32


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_refused_with_its_id(tmp_path: Path, bad: float) -> None:
    values = np.zeros((6, WIDTH), np.float32)
    values[[3, 5], 1] = bad
    write_file(tmp_path / "a.h5", values={"readout/mean/001": values})
    with Activations(tmp_path / "a.h5") as store:
        for read in (store.rows, store.pooled, store.views):
            with pytest.raises(FileError, match=r"readout 'mean', layer 1 holds NaN or infinity in 2 rows, first 'id-3'"):
                read("mean", 1)
        assert np.isfinite(store.rows("mean", 0)).all()


def test_an_error_while_writing_leaves_a_file_that_no_reader_takes(tmp_path: Path) -> None:
    write_file(tmp_path / "a.h5")
    with Activations(tmp_path / "a.h5") as store:
        header, ids = store.header, store.ids
    with pytest.raises(KeyError), Writer(tmp_path / "b.h5", header, ids, ids, np.zeros(6, int), TOKENS):
        raise KeyError("stop")
    with pytest.raises(FileError, match="is incomplete: its extraction was interrupted"):
        Activations(tmp_path / "b.h5")


def test_a_file_with_rows_that_were_never_written_is_refused(tmp_path: Path) -> None:
    written = write_file(tmp_path / "a.h5")
    with Activations(tmp_path / "a.h5") as store:
        header, ids = store.header, store.ids
    del written["tokens/norm/002"]
    with Writer(tmp_path / "b.h5", header, ids, ids, np.zeros(6, int), TOKENS) as writer:
        writer.write(0, written)
    with pytest.raises(FileError, match="tokens/norm/002 declares more rows than the file holds"):
        Activations(tmp_path / "b.h5")


def test_an_existing_file_is_never_written_over(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(OSError, match="exists"):
        write_file(file)
    assert file.read_bytes() == before


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        write_file(tmp_path / name)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_the_file_can_be_read_without_this_package(file: Path) -> None:
    """The header's names are a contract with notebooks."""
    with h5py.File(file) as opened:
        assert set(opened.attrs) == {"schema_version", "complete", *Header.__dataclass_fields__}
        assert json.loads(opened.attrs["recipes"]) == RECIPES
        assert opened.attrs["schema_version"] == 3
        assert opened["tokens/offsets"][:].tolist() == [0, 3, 7, 8, 12, 14, 18]
        assert set(opened) == {"id", "source_id", "view", "n_tokens", "readout", "tokens"}


def test_a_file_may_hold_readouts_only_or_tokens_only(tmp_path: Path) -> None:
    facts = {"readouts": [], "recipes": []}
    for empty in facts:
        path = tmp_path / f"{empty}.h5"
        write_file(path)
        with Activations(path) as store:
            header, ids = store.header, store.ids
        path.unlink()
        header = Header(**{**header.__dict__, empty: []})
        kept = {
            n: v
            for n, v in write_file(tmp_path / f"{empty}-full.h5").items()
            if n.startswith("readout") == (empty == "recipes")
        }
        with Writer(path, header, ids, ids, np.zeros(6, int), TOKENS) as writer:
            writer.write(0, kept)
        with Activations(path) as store:
            assert getattr(store, empty) == []
            with pytest.raises(FileError, match="cannot read"):
                store.rows("mean", 0) if empty == "readouts" else store.spectra("raw", 0)


def test_large_files_are_cut_into_blocks_of_rows(tmp_path: Path) -> None:
    rows, width = 700, 1024
    ids = [str(i) for i in range(rows)]
    facts = {
        "layer_names": ["a", "b"],
        "taps": ["residual"],
        "final_norm": False,
        "readouts": [{"name": "mean"}],
        "recipes": [],
    }
    header = Header("m", "r", "float32", "d", "x", rows, 1, width, provenance={}, **facts)
    values = np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32)
    with Writer(tmp_path / "a.h5", header, ids, ids, np.zeros(rows, int), np.ones(rows, int)) as writer:
        for start in range(0, rows, 300):
            writer.write(start, {f"readout/mean/{layer:03d}": values[start : start + 300] for layer in (0, 1)})
    with Activations(tmp_path / "a.h5") as store:
        assert store.file["readout/mean/000"].chunks == (256, width)
        np.testing.assert_array_equal(store.rows("mean", 1), values)
    assert (tmp_path / "a.h5").stat().st_size < 2.4 * 4 * rows * width  # what was claimed beyond the arrays is given back


def test_some_samples_are_read_with_all_their_views(tmp_path: Path) -> None:
    write_file(
        tmp_path / "a.h5",
        ids=[f"{s}~{v}" for v in (1, 0) for s in "xyz"],
        source_ids=["x", "y", "z"] * 2,
        views=[1, 1, 1, 0, 0, 0],
    )
    with Activations(tmp_path / "a.h5") as store:
        some = store.among(np.array([2, 0]))
        assert (some.n_samples, some.n_views, store.n_samples) == (2, 2, 3)
        assert some.ids == ["z~0", "z~1", "x~0", "x~1"]
        assert some.source_ids == ["z", "z", "x", "x"]
        np.testing.assert_array_equal(some.views("mean", 1), store.views("mean", 1)[[2, 0]])
        np.testing.assert_array_equal(some.pooled("mean", 1), store.pooled("mean", 1)[[2, 0]])
        rows = [store.ids.index(name) for name in some.ids]
        assert some.n_tokens.tolist() == store.n_tokens[rows].tolist()
        np.testing.assert_array_equal(some.spectra("raw", 2), store.spectra("raw", 2)[rows][:, : some.n_tokens.max()])
        np.testing.assert_array_equal(some.angles("raw", 2), store.angles("raw", 2)[rows])
        np.testing.assert_array_equal(some.among(np.array([1])).views("mean", 1), store.views("mean", 1)[[0]])


def test_rows_from_many_chunks_come_back_in_the_order_asked_for(tmp_path: Path) -> None:
    values = np.arange(50.0)[:, None] * [1.0, -1.0]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=values, chunks=(7, 2))
        places = np.array([49, 0, 7, 6, 13, 14, 3, 48])
        np.testing.assert_array_equal(gathered(dataset, places), values[places])
        assert gathered(dataset, places[:0]).shape == (0, 2)
