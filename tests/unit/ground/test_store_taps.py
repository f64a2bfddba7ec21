"""Taps in the activation file: written and read beside the residual stream, refused where they are missing."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from layerwise.errors import FileError
from layerwise.store import Activations, Writer

from tests.activation_files import LAYERS, READOUTS, RECIPES, WIDTH, write_file

TAPS = ["residual", "attention", "mlp"]
TOKENS = np.array([3, 5, 1, 4, 2, 6])


def test_every_tap_comes_back_as_it_was_written(tmp_path: Path) -> None:
    written = write_file(tmp_path / "a.h5", taps=TAPS)
    with Activations(tmp_path / "a.h5") as store:
        assert store.taps == store.header.taps == TAPS
        assert (store.tap, store.layers) == ("residual", range(LAYERS + 1))
        for tap in TAPS:
            read, place = store.at(tap), "" if tap == "residual" else f"taps/{tap}/"
            assert (read.tap, read.layers) == (tap, range(int(tap != "residual"), LAYERS + 1))
            for layer in read.layers:
                for readout in READOUTS:
                    expected = written[f"{place}readout/{readout}/{layer:03d}"]
                    np.testing.assert_array_equal(read.rows(readout, layer), expected)
                    np.testing.assert_array_equal(read.pooled(readout, layer), expected)
                for recipe in RECIPES:
                    angles = written[f"{place}tokens/{recipe}/turning_angle/{layer:03d}"]
                    np.testing.assert_array_equal(read.angles(recipe, layer), angles)
                    flat = written[f"{place}tokens/{recipe}/spectrum/{layer:03d}"]
                    np.testing.assert_array_equal(read.spectra(recipe, layer)[1], flat[3:7])
                norms = written[f"{place}tokens/norm/{layer:03d}"]
                np.testing.assert_array_equal(read.token_norms(layer), norms)
                cosines = written[f"{place}tokens/cosine/{layer:03d}"]
                np.testing.assert_array_equal(read.token_cosines(layer), cosines)
                clamped = written[f"{place}tokens/centre_unit/entropy_clamped/{layer:03d}"]
                np.testing.assert_array_equal(read.entropy_clamped(layer), clamped)
        assert not np.array_equal(store.rows("mean", 1), store.at("mlp").rows("mean", 1))
        assert store.at("mlp").at("residual").layers == range(LAYERS + 1)


def test_half_precision_is_for_the_vectors_of_every_tap_and_for_nothing_else(tmp_path: Path) -> None:
    write_file(tmp_path / "a.h5", taps=TAPS, storage="float16")
    with h5py.File(tmp_path / "a.h5") as opened:
        assert opened["taps/mlp/readout/mean/001"].dtype == np.float16
        assert opened["taps/mlp/tokens/norm/001"].dtype == np.float32


def test_a_tap_that_was_not_read_is_refused(tmp_path: Path) -> None:
    write_file(tmp_path / "a.h5", taps=TAPS)
    with Activations(tmp_path / "a.h5") as store:
        sentence = r"was read at residual, attention, mlp, not at 'attention_norm'; add it to 'taps' of dataset 'd' and run"
        with pytest.raises(FileError, match=sentence):
            store.at("attention_norm")
        with pytest.raises(FileError, match="cannot read taps/mlp/readout/mean/000"):
            store.at("mlp").rows("mean", 0)  # before the first block there is no tap


@pytest.mark.parametrize("name", ["taps/mlp/readout/mean/001", "taps/attention/tokens/cosine/002", "taps/mlp"])
def test_a_file_that_lacks_what_its_header_names_is_refused(tmp_path: Path, name: str) -> None:
    write_file(tmp_path / "a.h5", taps=TAPS)
    with h5py.File(tmp_path / "a.h5", "a") as opened:
        del opened[name]
    with pytest.raises(FileError, match="is damaged"):
        Activations(tmp_path / "a.h5")


def test_rows_that_were_never_written_are_noticed(tmp_path: Path) -> None:
    written = write_file(tmp_path / "a.h5", taps=TAPS)
    with Activations(tmp_path / "a.h5") as store:
        header, ids = store.header, store.ids
    del written["taps/mlp/tokens/norm/002"]
    with Writer(tmp_path / "b.h5", header, ids, ids, np.zeros(6, int), TOKENS) as writer:
        writer.write(0, written)
    with pytest.raises(FileError, match="taps/mlp/tokens/norm/002 declares more rows than the file holds"):
        Activations(tmp_path / "b.h5")


def test_a_value_that_is_not_finite_is_refused_at_a_tap_too(tmp_path: Path) -> None:
    values = np.full((6, WIDTH), np.nan, np.float32)
    write_file(tmp_path / "a.h5", taps=TAPS, values={"taps/mlp/readout/mean/001": values})
    with Activations(tmp_path / "a.h5") as store:
        assert np.isfinite(store.rows("mean", 1)).all()
        with pytest.raises(FileError, match="readout 'mean', layer 1 holds NaN or infinity in 6 rows"):
            store.at("mlp").rows("mean", 1)
