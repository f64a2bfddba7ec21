"""Every preset runs to its figures: through the real workflow, in small, on random weights and local data."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests import mini
from tests.workflow import tiny
from tests.workflow.conftest import COPIED, REPOSITORY, Workspace

PRESETS = sorted(path.stem for path in (REPOSITORY / "configs").glob("*.yaml") if path.stem != "miniatures")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """The workflow and the default config, over which a preset is laid as a user lays it."""
    folder = tmp_path / "small"
    shutil.copytree(REPOSITORY / "workflow_scripts", folder / "workflow_scripts")
    for name in (*COPIED, "config.yaml"):
        source = REPOSITORY / name
        if source.is_file():
            shutil.copy(source, folder / name)
        else:
            shutil.copytree(source, folder / name, dirs_exist_ok=True)
    (folder / "input").mkdir()
    return Workspace(folder)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_runs_to_its_figures(workspace: Workspace, preset: str) -> None:
    written = yaml.safe_load((REPOSITORY / "configs" / f"{preset}.yaml").read_text("utf-8"))
    config, blocks = mini.shrink(written, workspace.path("input"))
    tiny.write_config(workspace.path("preset.yaml"), config)
    run = workspace.snakemake("--configfile", "preset.yaml")
    assert run.status == 0, run.output[-5000:]
    figures = workspace.path("results/figures")
    assert expected_figures(config, blocks) <= {path.stem for path in figures.glob("*.pdf")}
    assert {path.stem for path in figures.glob("*.pdf")} == {path.stem for path in figures.glob("*.png")}
    assert all(path.stat().st_size > 5000 for path in figures.iterdir())
    check_metrics(table(workspace, "metrics"), config, blocks)
    check_scores(workspace, config, blocks)
    missing = table(workspace, "missing")
    assert missing.empty, missing[["model", "dataset", "metric", "reason"]].to_string()


def table(workspace: Workspace, name: str) -> pd.DataFrame:
    return pd.read_csv(workspace.path(f"results/tables/{name}.csv"), keep_default_na=False)


def expected_figures(config: dict[str, Any], blocks: dict[str, int]) -> set[str]:
    metrics, tasks = [metric["name"] for metric in config["metrics"]], config["tasks"]
    names = {f"metric_{metric}" for metric in metrics}
    names |= {"valley"} if "prompt_entropy" in metrics else set()
    names |= {"scores", "depth_profile", "best_layers", "gains"} if tasks else set()
    names |= {"metric_vs_score", "correlations", "correlation_matrix", "selection"} if tasks and metrics else set()
    for entry in config["models"]:
        if "random" in entry["source"]:
            continue
        revisions = entry.get("revisions", [])
        name = f"{entry['name']}@{revisions[-1]}" if revisions else entry["name"]
        names |= {f"scores~{name}"} if tasks else set()
        names |= {f"metrics~{name}"} if metrics else set()
        names |= {f"dynamics~{entry['name']}"} if len(revisions) > 1 else set()
    return names


def check_metrics(metrics: pd.DataFrame, config: dict[str, Any], blocks: dict[str, int]) -> None:
    """Every metric has a value at every layer of every model."""
    names = {metric["name"] for metric in config["metrics"]}
    if not names:
        assert metrics.empty
        return
    assert set(metrics["model"]) == set(blocks)
    for model, rows in metrics.groupby("model"):
        assert set(rows["metric"]) == names, model
        assert set(rows["layer"].astype(int)) == set(range(blocks[model] + 1)), model
        assert pd.to_numeric(rows["value"]).notna().all(), rows[rows["undefined"] != ""]["undefined"].unique()
        spread = rows.assign(value=pd.to_numeric(rows["value"])).groupby("metric")["value"].std()
        assert (spread > 0).all(), spread  # layers and readouts differ


def check_scores(workspace: Workspace, config: dict[str, Any], blocks: dict[str, int]) -> None:
    """Every task has a score at every layer of every model that reads it."""
    scores = table(workspace, "scores")
    tasks = {task["name"] for task in config["tasks"]}
    if not tasks:
        assert scores.empty
        return
    assert set(scores["task"]) == tasks
    layered = scores[scores["model"] != ""]
    readers = {e["name"]: set(e.get("datasets", tasks)) for e in config["models"] if "loader" in e or "mteb" in str(config)}
    assert set(layered["model"]) == set(readers)
    for (model, task), rows in layered.groupby(["model", "task"]):
        assert task in readers[model]
        assert set(rows["layer"].astype(int)) == set(range(blocks[model] + 1)), (model, task)
        assert pd.to_numeric(rows["score"]).between(-1, 1).all()
