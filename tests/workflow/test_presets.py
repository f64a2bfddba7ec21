"""Every preset runs to its figures: through the real workflow, in small, on random weights and local data."""

import re
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
ABSENT = "needs tokens in an order, the patches of images have none|no cross-fitted gain: v_measure .* is no mean over items"
SINKS = {"sink_norm_ratio", "sink_variance_share"}  # one figure shows both
TRUE_OF_ALL = "none of 12 samples has a value"  # one token repeated throughout has no spread and turns nowhere


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """The workflow and the default config, over which a preset is laid as a user lays it."""
    folder = tmp_path / "small"
    for name in (*COPIED, "config.yaml"):
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(source, folder / name)
    (folder / "input").mkdir()
    return Workspace(folder)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_runs_to_its_figures(workspace: Workspace, preset: str) -> None:
    written = yaml.safe_load((REPOSITORY / "configs" / f"{preset}.yaml").read_text("utf-8"))
    config, blocks = mini.shrink(written, workspace.path("input"))
    tiny.write_config(workspace.path("preset.yaml"), config)
    run = workspace.snakemake("--configfile", "preset.yaml")
    assert run.status == 0, run.output[-5000:]
    check_figures(workspace, config)
    check_metrics(table(workspace, "metrics"), config, blocks)
    check_scores(workspace, config, blocks)
    missing = table(workspace, "missing")
    assert missing["reason"].str.contains(ABSENT).all(), missing[["model", "dataset", "metric", "reason"]].to_string()
    if any(derivation.get("levels") for dataset in config["datasets"] for derivation in dataset["derive"]):
        check_levels(table(workspace, "levels"), config, blocks)
    if any("revisions" in entry for entry in config["models"]):
        check_training(table(workspace, "training_dynamics"), config)
    check_findings(workspace.path("results/summary.md").read_text("utf-8"), config)


def table(workspace: Workspace, name: str) -> pd.DataFrame:
    return pd.read_csv(workspace.path(f"results/tables/{name}.csv"), keep_default_na=False)


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in entries]


def shown(config: dict[str, Any]) -> list[str]:
    """The models that have a section of their own: no twins, and of a run its last checkpoint."""
    trained = [entry for entry in config["models"] if "random" not in entry["source"]]
    return [f"{e['name']}@{e['revisions'][-1]}" if "revisions" in e else e["name"] for e in trained]


def check_figures(workspace: Workspace, config: dict[str, Any]) -> None:
    """Every figure that this preset promises is there, twice, and none is an empty page."""
    metrics, tasks = set(names(config["metrics"])), config["tasks"]
    wanted = {f"metric_{metric}" for metric in metrics - SINKS} | ({"sink"} if metrics & SINKS else set())
    wanted |= {"valley"} if "prompt_entropy" in metrics else set()
    wanted |= {"taps"} if any("taps" in dataset for dataset in config["datasets"]) else set()
    wanted |= {"scores", "depth_profile", "best_layers", "gains"} if tasks else set()
    wanted |= {"metric_vs_score", "correlations", "correlation_matrix", "selection"} if tasks and metrics else set()
    wanted |= {f"metrics~{name}" for name in shown(config) if metrics}
    wanted |= {f"dynamics~{entry['name']}" for entry in config["models"] if "revisions" in entry}
    wanted |= {
        f"levels~{dataset['name']}~{derivation['name']}"
        for dataset in config["datasets"]
        for derivation in dataset["derive"]
        if "levels" in derivation
    }
    files = list(workspace.path("results/figures").iterdir())
    for kind in (".png", ".pdf"):
        assert wanted <= {path.stem for path in files if path.suffix == kind}
    assert all(path.stat().st_size > 5000 for path in files)


def check_metrics(metrics: pd.DataFrame, config: dict[str, Any], blocks: dict[str, int]) -> None:
    """Every metric that fits has a value at every layer of every model, and the layers differ."""
    wanted = set(names(config["metrics"]))
    if not wanted:
        assert metrics.empty
        return
    assert set(metrics["model"]) == set(blocks)
    images = {entry["name"] for entry in config["models"] if "loader" in entry}
    for model, rows in metrics.groupby("model"):
        assert set(rows["metric"]) == wanted - ({"curvature"} if model in images else set()), model
        assert set(rows["layer"].astype(int)) == set(range(blocks[model] + 1)), model
        assert (rows["undefined"] == "").all(), set(rows["undefined"])
        values = rows.assign(value=pd.to_numeric(rows["value"]))
        assert values["value"].notna().all()
        curves = values.groupby(["dataset", "metric", "variant", "readout", "recipe", "tap"])["value"]
        assert (curves.std() > 0).all(), curves.std()


def check_scores(workspace: Workspace, config: dict[str, Any], blocks: dict[str, int]) -> None:
    """Every task has a score at every layer of every model that reads it, and baselines."""
    scores, tasks = table(workspace, "scores"), names(config["tasks"])
    images = any(task["type"] != "mteb" for task in config["tasks"])
    readers = {
        (entry["name"], task)
        for entry in config["models"]
        for task in tasks
        if task in entry.get("datasets", tasks) and ("loader" in entry) == images
    }
    layered = scores[scores["model"] != ""]
    assert set(zip(layered["model"], layered["task"], strict=True)) == readers
    assert set(scores[scores["baseline"] != ""]["task"]) == set(tasks)
    for (model, task), rows in layered.groupby(["model", "task"]):
        assert set(rows["layer"].astype(int)) == set(range(blocks[model] + 1)), (model, task)
        assert pd.to_numeric(rows["score"]).between(-1, 1).all()


def check_levels(levels: pd.DataFrame, config: dict[str, Any], blocks: dict[str, int]) -> None:
    """Every level and draw of every derived dataset has every metric at every layer of every model."""
    for dataset in config["datasets"]:
        for derivation in dataset["derive"]:
            rows = levels[levels["dataset"] == f"{dataset['name']}~{derivation['name']}"]
            assert set(rows["transform"]) == {derivation["transform"]}
            assert set(rows["model"]) == set(blocks)
            assert set(rows["metric"]) == set(names(config["metrics"]))
            assert set(rows["level"]) == set(derivation["levels"])
            assert set(rows["draw"]) == set(range(derivation.get("draws", 1)))
            cells = rows.groupby(["model", "metric", "variant", "readout", "recipe", "level", "draw"])["layer"].nunique()
            assert (cells.reset_index()["model"].map(blocks) + 1 == cells.to_numpy()).all()
            odd = rows[rows["undefined"] != ""]
            assert set(odd["level"]) <= ({1.0} if derivation["transform"] == "repeat_tokens" else set())
            assert odd["undefined"].str.contains(TRUE_OF_ALL).all(), set(odd["undefined"])


def check_training(dynamics: pd.DataFrame, config: dict[str, Any]) -> None:
    """Every checkpoint is there, and the last is its own final state."""
    for entry in config["models"]:
        rows = dynamics[dynamics["model"] == entry["name"]]
        steps = [int(revision.removeprefix("step")) for revision in entry["revisions"]]
        assert sorted(set(rows["step"])) == sorted(steps)
        stability = pd.to_numeric(rows["stability"]).groupby(rows["step"]).mean()
        assert stability[max(steps)] == pytest.approx(1.0)
        assert stability[min(steps)] < 0.99


def check_findings(text: str, config: dict[str, Any]) -> None:
    """Ten lines, left out only where the preset has nothing to say."""
    lines = dict(re.findall(r"^\d+\. \*\*(.+?)\.\*\* (.+)$", text, re.M))
    assert len(lines) == 10
    metrics, tasks = names(config["metrics"]), config["tasks"]
    derived = [derivation for dataset in config["datasets"] for derivation in dataset["derive"]]
    said = {
        "Best layer": tasks,
        "Gain over the last layer": tasks,
        "Choosing without labels": tasks and metrics,
        "Baselines": tasks,
        "Compression valley": "prompt_entropy" in metrics and config["datasets"],
        "First token": "sink_norm_ratio" in metrics,
        "Untrained twins": any("random" in entry["source"] for entry in config["models"]),
        "Training": any("revisions" in entry for entry in config["models"]),
        "Changed tokens": any("levels" in derivation for derivation in derived),
    }
    for title, wanted in said.items():
        assert lines[title].startswith("Left out: ") != bool(wanted), (title, lines[title])
