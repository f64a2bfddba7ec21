"""A task from the user's own table and one of mteb on a copy of its data, through the whole workflow, offline."""

import json
import subprocess
import sys
from pathlib import Path

import mteb
import pandas as pd
from mteb.results import TaskResult

from tests import mteb_folders
from tests.table_files import candidates
from tests.workflow import tiny
from tests.workflow.conftest import REPOSITORY, Workspace

WANTED = [f"results/tables/{name}.csv" for name in ("scores", "layer_summary", "missing")]


def save(folder: Path) -> None:
    """Write a table of candidates and a copy of a dataset of mteb."""
    candidates(14).to_csv(folder / "answers.csv", index=False)
    mteb_folders.sts(folder / "sts12")


def study() -> dict:
    table = {"path": "input/answers.csv", "query": "question", "document": "answer", "relevant": "good"}
    small = tiny.study()
    return small | {
        "models": small["models"][:1],
        "readouts": [{"name": "mean"}, {"name": "mean_normed", "norm": "final"}],
        "tasks": [
            {"name": "answers", "type": "reranking", "table": table, "sample": 20},
            {"name": "STS12", "type": "mteb", "path": "input/sts12", "sample": 20},
        ],
        "metrics": [],
        "task_metrics": [],
        "datasets": [],
        "headline_dataset": "",
        "keep_task_activations": False,
    }


def test_own_tables_and_tasks_of_mteb_run_to_scores_and_gains(workspace: Workspace) -> None:
    save(workspace.path("input"))
    workspace.configure(study())
    run = workspace.snakemake("--", *WANTED)
    assert run.status == 0, run.output[-5000:]

    scores = pd.read_csv(workspace.path(WANTED[0]), keep_default_na=False)
    layered = scores[scores["model"] == "neox"]
    assert {(row.task, row.type) for row in layered.itertuples()} == {("answers", "reranking"), ("STS12", "sts")}
    assert set(layered["layer"].astype(float)) == {0, 1, 2, 3}
    summary = pd.read_csv(workspace.path(WANTED[1])).query("task != 'all'")
    assert summary["gain_low"].notna().all()
    assert pd.read_csv(workspace.path(WANTED[2])).empty

    manifest = json.loads(workspace.path("results/data/STS12/manifest.json").read_text())
    assert (manifest["n_texts"], manifest["n_duplicates"]) == (60, 1)
    assert manifest["origin"].startswith("mteb task STS12: ")
    record = json.loads(workspace.path("results/tasks/neox/STS12.json").read_text())
    assert record["prompt"] is None
    assert record["benchmark"]["revision"] == "local"
    assert set(record["readouts"]["mean"][0]["subsets"]) == {"default"}
    assert not list(workspace.path("results/activations").glob("*/*.h5"))  # removed once scored

    check_mteb_format(workspace, record)
    check_reruns(workspace)


def check_mteb_format(workspace: Workspace, record: dict) -> None:
    """mteb reads the results, one experiment for each layer and readout."""
    command = [sys.executable, REPOSITORY / "tools/mteb_results.py", "results/tasks/neox", "--output", "mteb"]
    done = subprocess.run(command, cwd=workspace.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file = next(workspace.path("mteb").glob("results/layerwise__neox/*/experiments/layer_2__readout_mean/STS12.json"))
    result = TaskResult.from_disk(file)
    assert result.task_name == "STS12"
    assert result.get_score() == record["readouts"]["mean"][2]["main_score"]
    cache = mteb.ResultCache(workspace.path("mteb"))
    found = cache.load_results(load_experiments="match_name", include_remote=False).model_results
    assert len(found) == 4 * 2
    assert {model.model_name for model in found} == {"layerwise/neox"}


def check_reruns(workspace: Workspace) -> None:
    """Nothing is pending; a changed file concerns its own task only."""
    assert not workspace.pending("--", *WANTED)
    candidates(13).to_csv(workspace.path("input/answers.csv"), index=False)
    pending = workspace.pending("--", WANTED[0])
    assert pending["prepare_task"] == 1
    assert pending["score_task"] == pending["extract_task_activations"] == 1


def test_a_task_of_the_hub_without_a_network_fails_with_one_sentence(workspace: Workspace) -> None:
    workspace.configure(study() | {"tasks": [{"name": "STS12", "type": "mteb"}]})
    run = workspace.snakemake("--", "results/data/STS12/samples.parquet")
    assert run.status != 0
    sentences = [line for line in run.output.splitlines() if line.startswith("prepare_task STS12: ")]
    assert len(sentences) == 1
    assert "dataset mteb/sts12-sts at " in sentences[0]
    assert "run again with a network, or write 'path: FOLDER' with a copy of that repository." in sentences[0]


def test_a_typo_in_the_name_of_a_task_is_named(workspace: Workspace) -> None:
    workspace.configure(study() | {"tasks": [{"name": "STS12s", "type": "mteb"}]})
    run = workspace.snakemake("--", "results/data/STS12s/samples.parquet")
    assert "prepare_task STS12s: mteb has no task 'STS12s'; did you mean 'STS12'?" in run.output
