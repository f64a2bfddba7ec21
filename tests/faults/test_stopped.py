"""Extraction stopped at any moment: no file under its final name, or a whole one, and the next run is whole."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from layerwise.data.prepare import write_dataset
from layerwise.errors import FileError
from layerwise.records import read_record
from layerwise.samples import new_samples
from layerwise.store import Activations

from tests.faults.conftest import Extraction
from tests.faults.processes import as_rule, ended, killed_after, started


@pytest.fixture(scope="module")
def whole(extraction: Extraction, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, float]:
    """What an undisturbed extraction writes, and its seconds."""
    folder, start = tmp_path_factory.mktemp("whole"), time.monotonic()
    extraction(folder / "a.h5")
    return (folder / "a.h5").read_bytes(), time.monotonic() - start


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_at_a_random_moment(extraction: Extraction, whole: tuple[bytes, float], tmp_path: Path, seed: int) -> None:
    expected, seconds = whole
    final = tmp_path / "out" / "a.h5"
    status = killed_after(lambda: extraction(final), seconds * np.random.default_rng(seed).uniform(0, 1.2))
    left = {path.name for path in final.parent.iterdir()} if final.parent.exists() else set()
    if final.exists():
        assert final.read_bytes() == expected
        assert status in (0, -signal.SIGKILL)
    else:
        assert status == -signal.SIGKILL
        assert all(name.endswith(".tmp") for name in left)
    extraction(final)
    assert [path.name for path in final.parent.iterdir()] == ["a.h5"]
    assert final.read_bytes() == expected


@pytest.mark.parametrize("moment", ["fsync", "replace", "after replace"])
def test_a_kill_around_the_rename(extraction: Extraction, whole: tuple[bytes, float], tmp_path: Path, moment: str) -> None:
    final = tmp_path / "out" / "a.h5"
    replace = os.replace

    def kill(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def replace_and_die(*paths: Path) -> None:
        replace(*paths)
        kill()

    def work() -> None:  # in the process that is killed alone
        os.fsync = kill if moment == "fsync" else os.fsync
        os.replace = {"replace": kill, "after replace": replace_and_die}.get(moment, replace)
        extraction(final)

    with started(work) as child:
        assert ended(child) == -signal.SIGKILL
    assert final.exists() == (moment == "after replace")
    if final.exists():
        assert final.read_bytes() == whole[0]
    extraction(final)
    assert final.read_bytes() == whole[0]
    assert [path.name for path in final.parent.iterdir()] == ["a.h5"]


@pytest.mark.parametrize("renames", [1, 2, 3])
@pytest.mark.parametrize("before", [False, True], ids=["first", "again"])
def test_a_dataset_without_its_last_file_has_no_manifest(tmp_path: Path, renames: int, before: bool) -> None:
    """A manifest that stayed from the run before would describe other samples."""
    old, new = (new_samples(pd.DataFrame({"id": ["a"], "text": [text]})) for text in ("old", "new"))
    if before:
        write_dataset(tmp_path / "d", "d", old, {})
    left = iter(range(renames - 1))

    def work() -> None:
        replace = os.replace

        def stop(*paths: Path) -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*paths)

        os.replace = stop
        write_dataset(tmp_path / "d", "d", new, {})

    with started(work) as child:
        assert ended(child) == -signal.SIGKILL
    with pytest.raises(FileError, match="run again"):
        read_record(tmp_path / "d" / "manifest.json")
    write_dataset(tmp_path / "d", "d", new, {})
    write_dataset(tmp_path / "e", "d", new, {})
    names = {path.name for path in (tmp_path / "d").iterdir()}
    assert names == {"samples.parquet", "pairs.parquet", "manifest.json"}
    for name in names:
        assert (tmp_path / "d" / name).read_bytes() == (tmp_path / "e" / name).read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_job_that_is_asked_to_stop_leaves_nothing(extraction: Extraction, tmp_path: Path, number: signal.Signals) -> None:
    """Slurm and Snakemake send these; the temporary is removed by the job itself, on whatever node it ran."""
    final, begun = tmp_path / "out" / "a.h5", tmp_path / "begun"

    def slowly(_done: int, _total: int) -> None:
        begun.touch()
        time.sleep(0.05)

    with started(as_rule(str(tmp_path / "log.txt"), lambda _progress: extraction(final, slowly))) as child:
        while not begun.exists():
            time.sleep(0.01)
        os.kill(child, number)
        assert ended(child) not in (0, -signal.SIGKILL)
    assert list(final.parent.iterdir()) == []


def test_two_runs_write_one_file_and_a_reader_keeps_the_one_it_opened(
    extraction: Extraction, whole: tuple[bytes, float], frame: pd.DataFrame, tmp_path: Path
) -> None:
    final = tmp_path / "out" / "a.h5"
    extraction(final, samples=frame.iloc[::-1])
    with Activations(final) as reader:
        with started(lambda: extraction(final)) as first, started(lambda: extraction(final)) as second:
            assert (ended(first), ended(second)) == (0, 0)
        assert reader.ids == frame["id"].tolist()[::-1]
        for layer in reader.layers:
            assert np.isfinite(reader.rows("mean", layer)).all()
    assert final.read_bytes() == whole[0]
    assert [path.name for path in final.parent.iterdir()] == ["a.h5"]
