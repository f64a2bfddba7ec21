"""Tasks on disk."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from layerwise.tasks.benchmark import TaskFiles
from layerwise.tasks.files import write_task

from tests.task_builders import options, rows


@pytest.fixture
def make(tmp_path: Path):
    """Write a task and load it."""

    def write(kind: str, made: dict[str, pd.DataFrame] | None = None, **changes: Any) -> TaskFiles:
        folder = tmp_path / f"task-{len(list(tmp_path.iterdir()))}"
        write_task(folder, "my-task_1.2@x", options(kind, **changes), made or rows(kind))
        return TaskFiles(folder)

    return write
