"""make reproduce-paper: what it asks of the workflow, what it says without a hub, and when it is content."""

import importlib.util
import os
import subprocess
import sys
from types import ModuleType

import pandas as pd
import pytest

from tests.workflow.conftest import REPOSITORY, Workspace


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reproduce", REPOSITORY / "tools" / "reproduce.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def comparison(error: float) -> pd.DataFrame:
    cells = [(task, layer) for task in ("STS12", "STSBenchmark") for layer in range(25)]
    rows = [
        {"task": task, "layer": layer, "readout": readout, "published": 50.0, "ours": 50.0 + gap, "difference": gap}
        for task, layer in cells
        for readout, gap in (("mean", -20.0), ("mean_normed", error))
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("error", "content"), [(0.4, True), (-0.5, True), (0.6, False)])
def test_only_normed_scores_decide(error: float, content: bool) -> None:
    rows, agrees = tool().verdict(comparison(error))
    assert agrees is content
    assert sorted(set(rows["layer"])) == [15, 17, 24]
    assert set(rows["readout"]) == {"mean", "mean_normed"}


def test_a_missing_task_is_no_agreement() -> None:
    found = comparison(0.0)
    assert not tool().verdict(found[found["task"] == "STS12"])[1]


def test_without_a_hub_it_says_that_nothing_was_reproduced(workspace: Workspace) -> None:
    published = workspace.path("published")
    published.mkdir()
    model = {"family": "Pythia", "size": "410m", "revision": "main"}
    scores = [
        model | {"layer": layer, "task": "STS12", "subset_order": 0, "subset": "default", "main_score": 0.5}
        | {"mteb_version": "1.14.19", "dataset_revision": "a"}
        for layer in range(25)
    ]  # fmt: skip
    pd.DataFrame(scores).to_csv(published / "mteb_scores.csv", index=False)
    columns = ["dataset", "task", "split", "metric", "normalization", "layer", "value"]
    pd.DataFrame(columns=[*model, *columns]).to_csv(published / "metrics.csv", index=False)
    (workspace.path("configs")).mkdir()
    preset = REPOSITORY / "configs" / "reproduce-paper.yaml"
    workspace.path("configs/reproduce-paper.yaml").write_text(preset.read_text("utf-8"), "utf-8")
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(workspace.path("cache")),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "tools/reproduce.py", "published", "1"],
        cwd=workspace.folder, capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Not reproduced: the study did not run" in done.stderr
    assert "HF_HUB_OFFLINE is set" in done.stdout + done.stderr
