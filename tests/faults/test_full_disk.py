"""A disk that is full: one sentence with the free bytes, and nothing under a final name."""

import os
import re
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import close_session, constants
from layerwise.atomic import write_text
from layerwise.data.pictures import write_pictures
from layerwise.figures import style
from layerwise.models.snapshot import download
from layerwise.records import write_record
from matplotlib.figure import Figure
from PIL import Image

from tests.faults.conftest import Extraction
from tests.faults.processes import as_rule, ended, started
from tests.hub_server import Hub, point_at, serve

SIZE, ROOM = 4 * 2**20, 50_000
SMALL = SIZE - ROOM


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB with 50 kB left; where none can be mounted, a folder (see ``starved``)."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        if mounted:
            (folder / "other.bin").write_bytes(bytes(SMALL))
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def starved(disk: Path, work: Callable[[], None], log: Path) -> str:
    """What a rule says that does ``work`` where there is no room: a full disk, or else files limited to as little."""

    def run() -> None:
        if not disk.is_mount():
            resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))
        as_rule(str(log), lambda _progress: work())()

    with started(run) as child:
        assert ended(child) == 1
    return log.read_text()


def refused(disk: Path, said: str, needed: bool = False) -> None:
    """One sentence in the log, after the traceback, and nothing left on the disk."""
    wanted = r"[\d,]+ bytes are needed and " if needed else ""
    found = re.search(
        rf"no room to write \S+: {wanted}[\d,]+ bytes are free in (\S+); free some space and run again\.$", said
    )
    assert found, said
    assert found[1].startswith(str(disk))
    assert [path for path in disk.rglob("*") if path.is_file() and path.name != "other.bin"] == []


def noise(disk: Path) -> None:
    figure = Figure()
    figure.add_subplot().imshow(np.random.default_rng(0).random((300, 300)))
    style.save(figure, disk / "out" / "a.pdf", disk / "out" / "a.png")


NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8))
WRITES: dict[str, Callable[[Path], None]] = {
    "text": lambda disk: write_text(disk / "out" / "a.txt", "x" * 2 * ROOM),
    "json": lambda disk: write_record(disk / "out" / "a.json", {"x": "y" * 2 * ROOM}),
    "figure": noise,
    "pictures": lambda disk: write_pictures(disk / "out", [("a", NOISE)]),
}


@pytest.mark.parametrize("what", WRITES)
def test_text_records_figures_and_pictures(disk: Path, tmp_path: Path, what: str) -> None:
    refused(disk, starved(disk, lambda: WRITES[what](disk), tmp_path / "log.txt"))


def test_activations_say_what_they_need(disk: Path, extraction: Extraction, tmp_path: Path) -> None:
    refused(disk, starved(disk, lambda: extraction(disk / "out" / "a.h5"), tmp_path / "log.txt"), needed=True)


def test_a_model_that_is_copied_from_another_disk(disk: Path, weights: Path, tmp_path: Path) -> None:
    if not disk.is_mount():
        pytest.skip("mounting a small disk needs root, and on one disk files of a model are linked and need no room")
    manifest, source = disk / "models" / "m" / "manifest.json", {"path": str(weights)}
    refused(disk, starved(disk, lambda: download(manifest, "m", source), tmp_path / "log.txt"))


def test_a_model_that_comes_from_the_hub(disk: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(disk / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("layerwise.models.hub._PAUSES", (0.0, 0.0))
    manifest = tmp_path / "models" / "m" / "manifest.json"
    with serve(Hub()) as hub:
        point_at(monkeypatch, hub.url)
        source = {"hub": "org/tiny", "revision": hub.add("org/tiny", weights)}
        said = starved(disk, lambda: download(manifest, "m", source), tmp_path / "log.txt")
    close_session()
    assert re.search(r"no room to write \S+: [\d,]+ bytes are free in \S+; free some space and run again\.$", said), said
    assert list(manifest.parent.iterdir()) == []
