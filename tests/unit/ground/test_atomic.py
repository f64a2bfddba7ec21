"""Files are whole or absent: after errors, kills, dead processes and full disks."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from layerwise.atomic import atomic_path, disk_full, write_text
from layerwise.errors import FileError

HOST = socket.gethostname()


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_file_appears_whole_and_its_temporary_is_gone(tmp_path: Path) -> None:
    final = tmp_path / "new folder" / "ünï.txt"
    with atomic_path(final) as temporary:
        assert temporary.parent == final.parent  # a rename across file systems would not be atomic
        temporary.write_text("half")
        assert not final.exists()
        temporary.write_text("whole")
    assert final.read_text() == "whole"
    assert names(final.parent) == [final.name]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file_and_no_temporary(tmp_path: Path, error: type[BaseException]) -> None:
    final = tmp_path / "a"
    write_text(final, "old")
    with pytest.raises(error), atomic_path(final) as temporary:
        temporary.write_text("new")
        raise error
    assert final.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_a_block_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "a"):
        pass
    assert not names(tmp_path)


KILLED = """
import os, signal
from layerwise import atomic
replace = os.replace
def stop(*_): os.kill(os.getpid(), signal.SIGKILL)
{where} = stop
with atomic.atomic_path("a.json") as temporary:
    temporary.write_text("new")
"""


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_a_kill_leaves_the_old_file_and_the_next_run_cleans_up(tmp_path: Path, python, where: str) -> None:
    write_text(tmp_path / "a.json", "old")
    assert python(KILLED.format(where=where)).returncode == -signal.SIGKILL
    assert (tmp_path / "a.json").read_text() == "old"
    left = [name for name in names(tmp_path) if name.endswith(".tmp")]
    assert len(left) == 1
    write_text(tmp_path / "a.json", "newer")
    assert names(tmp_path) == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "newer"


def test_only_temporaries_of_dead_processes_of_this_host_and_of_this_file_are_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    kept = {f".a.{HOST}.{os.getppid()}.tmp", f".a.elsewhere.{dead.pid}.tmp", f".b.{HOST}.{dead.pid}.tmp", f".a.{HOST}.x.tmp"}
    gone = {f".a.{HOST}.{dead.pid}.tmp"}
    for name in kept | gone:
        (tmp_path / name).write_text("")
    write_text(tmp_path / "a", "text")
    assert set(names(tmp_path)) == kept | {"a"}


def test_a_temporary_of_a_dead_process_with_our_number_is_in_nobodys_way(tmp_path: Path) -> None:
    """In a container every run may have the same process number; h5py opens new files only."""
    (tmp_path / f".a.{HOST}.{os.getpid()}.tmp").write_text("from the run before")
    with atomic_path(tmp_path / "a") as temporary:
        assert not temporary.exists()
        temporary.write_text("x")


STARVED = """
import resource, sys
from layerwise.errors import FileError
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    {write}
except FileError as error:
    print(error)
    sys.exit(3)
"""
WRITES = {
    "text": "from layerwise.atomic import write_text; write_text('out/final', 'x' * 300_000)",
    "record": "from layerwise.records import write_record; write_record('out/final', {'x': 'y' * 300_000})",
    "samples": "import os, pandas as pd; from layerwise.samples import *;"
    "rows = {'id': range(2000), 'text': [os.urandom(200).hex() for i in range(2000)]};"
    "write_samples('out/final', new_samples(pd.DataFrame(rows)), 'd')",
}
HDF5 = """
    import numpy as np; from layerwise.atomic import atomic_path; from layerwise.store import Header, Writer
    rows = [str(i) for i in range(200)]
    header = Header('m', 'r', 'float32', 'd', 'x', 200, 1, 1000, ['a', 'b'], ['r'], True, [{'name': 'mean'}], [], {})
    with atomic_path('out/final') as path, Writer(path, header, rows, rows, np.zeros(200, int), np.ones(200, int)) as writer:
        for start in range(0, 200, 50):
            writer.write(start, {f'readout/mean/{layer:03d}': np.ones((50, 1000), 'f4') for layer in (0, 1)})
"""


@pytest.mark.parametrize("what", [*WRITES, "hdf5"])
def test_no_room_is_one_sentence_and_no_file(tmp_path: Path, python, what: str) -> None:
    run = python(STARVED.format(write=HDF5.strip() if what == "hdf5" else WRITES[what]))
    assert run.returncode == 3, run.stderr  # HDF5 used to end in a segmentation fault here
    assert run.stdout.startswith("no room to write out/final: ")
    assert "bytes are free in out; free some space and run again." in run.stdout
    assert ("bytes are needed and" in run.stdout) == (what == "hdf5")
    assert names(tmp_path / "out") == []


def test_a_full_file_system_is_one_sentence(tmp_path: Path, python) -> None:
    (tmp_path / "out").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(tmp_path / "out")]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root; RLIMIT_FSIZE covers the same path above")
    try:
        run = python(STARVED.format(write=HDF5.strip()))
        left = names(tmp_path / "out")
    finally:
        subprocess.run(["umount", str(tmp_path / "out")], check=True)
    assert run.returncode == 3, run.stderr
    found = re.search(r"room to write out/final: ([\d,]+) bytes are needed and 4", run.stdout)
    assert found, run.stdout
    assert int(found.group(1).replace(",", "")) > 2 * 200 * 1000 * 4  # two layers of the file, and its headers
    assert left == []


def test_the_message_states_both_numbers(tmp_path: Path) -> None:
    assert "12,345 bytes are needed and " in str(disk_full(tmp_path / "a", 12_345))


def test_other_errors_of_the_system_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError) as caught, atomic_path(tmp_path / "file" / "a"):
        pass
    assert not isinstance(caught.value, FileError)
