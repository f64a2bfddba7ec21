"""A copy of the workflow in a folder with a space, and a runner that calls the real Snakemake in it."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow import tiny

REPOSITORY = Path(__file__).parents[2]
COPIED = ("Snakefile", "rules", "workflow_scripts", "profiles", "envs", "tools", "Makefile")


@dataclasses.dataclass
class Run:
    """What a call of Snakemake did."""

    status: int
    output: str

    def jobs(self) -> dict[str, int]:
        """Jobs by rule, from the table that Snakemake prints at the start."""
        return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", self.output, re.M) if rule != "total"}


@dataclasses.dataclass
class Workspace:
    """A folder in which the workflow runs."""

    folder: Path

    def snakemake(self, *options: str, **variables: str) -> Run:
        """Run Snakemake here, with ``variables`` in its environment."""
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *options]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1", **variables}
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=environment, timeout=600)
        return Run(done.returncode, done.stdout + done.stderr)

    def pending(self, *options: str) -> dict[str, int]:
        """Jobs that a run would do now, by rule."""
        run = self.snakemake("-n", "--quiet", "rules", *options)
        assert run.status == 0, run.output
        jobs = run.jobs()
        assert jobs or "Nothing to be done" in run.output, run.output
        return jobs

    def configure(self, config: dict) -> None:
        """Write config.yaml."""
        tiny.write_config(self.folder / "config.yaml", config)

    def path(self, relative: str) -> Path:
        """Return a path in the folder."""
        return self.folder / relative


def make_workspace(folder: Path) -> Workspace:
    """Copy the workflow into ``folder`` and give it the tiny study."""
    folder.mkdir(parents=True)
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, folder / name)
    (folder / "input").mkdir()
    tiny.save_models(folder / "input")
    tiny.save_texts(folder / "input" / "texts.csv")
    workspace = Workspace(folder)
    workspace.configure(tiny.study())
    return workspace


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which the tiny study has run to its end; tests leave it as they found it."""
    workspace = make_workspace(tmp_path_factory.mktemp("run") / "with a space")
    run = workspace.snakemake()
    assert run.status == 0, run.output[-5000:]
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace in which nothing has run."""
    return make_workspace(tmp_path / "work space")
