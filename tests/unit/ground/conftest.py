"""A whole activation file, and processes of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.activation_files import write_file

SOURCES = Path(__file__).parents[3] / "workflow_scripts"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A whole activation file."""
    write_file(tmp_path / "a.h5")
    return tmp_path / "a.h5"


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run Python code in a process of its own, in ``tmp_path``."""

    def run(code: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(SOURCES)}
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
