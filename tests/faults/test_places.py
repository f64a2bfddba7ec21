"""The whole workflow where a user may put it: odd names, a linked results folder, no locks, no right to execute, a token."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workflow import tiny
from tests.workflow.conftest import Run, Workspace, make_workspace

TOKEN = "hf_CanaryThatMustBeNowhere"
SHELL = "; touch canary; $(touch canary) `touch canary` \" ' \\ é & | > canary"
FOLDER = "wörk späce 研究 $(touch canary) ; 'quoted' & more"
GOALS = [f"results/{goal}" for goal in ("tables/layer_summary.csv", "tables/missing.csv", "figures/scores.png")]
LABEL = "topic; $(touch canary) 'x'"


def hostile_study(workspace: Workspace) -> dict[str, Any]:
    """The tiny study with shell commands in every string that it may hold, and files of such names."""
    config = tiny.study()
    names = {"input/texts.csv": f"input/{SHELL.replace('/', '')}.csv", "input/neox": f"input/neox {SHELL}"}
    for old, new in names.items():
        workspace.path(old).rename(workspace.path(new))
    table = workspace.path(names["input/texts.csv"])
    table.write_text(table.read_text("utf-8").replace("topic", f'"{LABEL}"', 1), "utf-8")
    (dataset,), (task,) = config["datasets"], config["tasks"]
    dataset["source"]["table"]["path"] = names["input/texts.csv"]
    dataset["derive"][0]["sample"] = 8
    task["label"] = LABEL
    model = config["models"][0]
    model["source"]["path"] = names["input/neox"]
    metrics = [entry for entry in config["metrics"] if entry["name"] in ("prompt_entropy", "dime")]
    return config | {"title": f"odd\n{SHELL}", "models": [model], "metrics": metrics}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, Run, Path]]:
    """A finished run of the hostile study, and the folder that its results link to."""
    base = tmp_path_factory.mktemp("p")
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "noexec,size=200m", "none", str(base)], check=False, capture_output=True
        ).returncode
    )
    try:
        folder = base / FOLDER / ("long-" * 30) / FOLDER
        assert len(str(folder)) > 250
        workspace = make_workspace(folder)
        elsewhere = base / "elsewhere"
        elsewhere.mkdir()
        workspace.path("results").symlink_to(elsewhere)
        workspace.configure(hostile_study(workspace))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HF_TOKEN", TOKEN)
            patch.setenv("HDF5_USE_FILE_LOCKING", "FALSE")
            yield workspace, workspace.snakemake(*GOALS), elsewhere
    finally:
        if mounted:
            subprocess.run(["umount", str(base)], check=True)


def test_it_runs_to_its_end_and_nothing_is_left_to_do(place: tuple[Workspace, Run, Path]) -> None:
    workspace, run, elsewhere = place
    assert run.status == 0, run.output[-5000:]
    assert workspace.path("results").is_symlink()
    assert (elsewhere / "tables" / "layer_summary.csv").is_file()
    assert (elsewhere / "activations" / "neox" / "texts.h5").is_file()
    assert not list(elsewhere.rglob("*.tmp"))
    assert workspace.pending("--", *GOALS) == {}


def test_no_string_of_the_config_reached_a_shell(place: tuple[Workspace, Run, Path]) -> None:
    workspace, _, elsewhere = place
    assert not list(workspace.folder.rglob("canary"))
    assert not list(elsewhere.rglob("canary"))


def test_the_token_is_in_no_file_and_no_output(place: tuple[Workspace, Run, Path]) -> None:
    workspace, run, elsewhere = place
    files = [path for folder in (workspace.folder, elsewhere) for path in folder.rglob("*") if path.is_file()]
    assert any(".snakemake" in path.parts for path in files)
    assert any("logs" in path.parts for path in files)
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in run.output


def test_a_results_folder_that_cannot_be_written_is_named(place: tuple[Workspace, Run, Path], tmp_path: Path) -> None:
    """Through a link, so that Snakemake's own folder can be written."""
    workspace, _, elsewhere = place
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    mounted = os.geteuid() == 0
    if mounted and subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(locked)], capture_output=True).returncode:
        pytest.skip("root may write anywhere, and a folder that is read-only for root cannot be mounted here")
    link = workspace.path("results")
    link.unlink()
    link.symlink_to(locked)
    try:
        run = workspace.snakemake("results/activations/neox/texts.h5")
        left = list(locked.iterdir())
    finally:
        link.unlink()
        link.symlink_to(elsewhere)
        if mounted:
            subprocess.run(["umount", str(locked)], check=True)
    assert run.status != 0
    assert "Read-only file system: 'results" in run.output or "Permission denied: 'results" in run.output, run.output[-3000:]
    assert left == []
