"""A second run does only what changed (DESIGN, section 8)."""

import contextlib
import copy
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from layerwise.config import load_study

from tests.workflow import tiny
from tests.workflow.conftest import Workspace

PACKAGE = "workflow_scripts/layerwise"
AFTER_METRICS = {"all", "collect_records", "build_table", "draw_figure", "write_findings", "record_study"}


@contextlib.contextmanager
def edited(path: Path, old: str, new: str) -> Iterator[None]:
    """Replace ``old`` by ``new`` in a file for the length of the block."""
    before = path.read_text("utf-8")
    assert old in before
    path.write_text(before.replace(old, new, 1), "utf-8")
    try:
        yield
    finally:
        path.write_text(before, "utf-8")


@contextlib.contextmanager
def configured(workspace: Workspace, config: dict) -> Iterator[None]:
    """Use another configuration for the length of the block."""
    workspace.configure(config)
    try:
        yield
    finally:
        workspace.configure(tiny.study())


def test_a_second_run_does_nothing(finished: Workspace) -> None:
    assert finished.pending() == {}


def test_the_whole_graph_left_its_tables_and_figures(finished: Workspace) -> None:
    tables = {path.stem for path in finished.path("results/tables").glob("*.csv")}
    of_tasks = {"layer_summary", "correlations", "layer_selection", "layer_costs"}
    assert tables == {"metrics", "scores", "missing"} | of_tasks
    figures = {path.name for path in finished.path("results/figures").iterdir()}
    assert {"scores.png", "scores.pdf", "metric_dime.png", "valley.png"} <= figures
    assert all(path.stat().st_size > 5000 for path in finished.path("results/figures").glob("*.png"))


def test_the_record_of_the_study_runs_it_again_and_names_nobody(finished: Workspace) -> None:
    record = json.loads(finished.path("results/provenance/study.json").read_text("utf-8"))
    assert [model["name"] for model in record["models"]] == ["neox", "bert"]
    assert {entry["name"] for entry in record["data"]} == {"texts", "texts~views", "topic", "topic~sample"}
    assert record["config"]["models"][0]["batch_tokens"] == 4096  # a default
    table = finished.path("results/tables/layer_costs.csv")
    assert record["tables"]["results/tables/layer_costs.csv"] == hashlib.sha256(table.read_bytes()).hexdigest()
    config = finished.path("results/provenance/config.yaml").read_text("utf-8")
    assert load_study(yaml.safe_load(config)) == load_study(tiny.study())
    content = config + finished.path("results/provenance/study.json").read_text("utf-8")
    assert str(finished.folder) not in content
    assert f"{Path.home()}/" not in content
    with configured(finished, yaml.safe_load(config)):
        assert finished.pending() == {}


def test_costs_are_those_of_every_model_task_and_layer(finished: Workspace) -> None:
    costs = pd.read_csv(finished.path("results/tables/layer_costs.csv"))
    assert costs[["model", "task", "layer"]].drop_duplicates().shape[0] == len(costs) == 2 * 1 * 4
    assert costs.groupby("model")["flops_share"].max().tolist() == [1.0, 1.0]
    assert costs["tokens"].between(7, 11).all()


@pytest.mark.parametrize("file", [f"{PACKAGE}/metrics/dime.py", f"{PACKAGE}/store.py", "workflow_scripts/compute_metric.py"])
def test_a_comment_or_docstring_runs_nothing(finished: Workspace, file: str) -> None:
    with edited(finished.path(file), '"""', '"""Reworded: '):
        finished.path(file).write_text(finished.path(file).read_text("utf-8") + "\n# a remark\n", "utf-8")
        assert finished.pending() == {}


def test_an_edit_of_one_metric_runs_that_metric_and_what_follows(finished: Workspace) -> None:
    path = finished.path(f"{PACKAGE}/metrics/dime.py")
    with edited(path, path.read_text("utf-8"), path.read_text("utf-8") + "\nEDITED = True\n"):
        pending = finished.pending()
        assert pending.pop("compute_metric") == 2  # two models, one dataset with views
        assert set(pending) == AFTER_METRICS
        listing = finished.snakemake("-n").output
    assert "lidar" not in "".join(line for line in listing.splitlines() if "rule compute_metric" in line)
    assert "output: results/metrics/neox/texts~views/dime.json" in listing
    assert "output: results/metrics/neox/texts~views/lidar.json" not in listing


def test_an_edit_of_the_readouts_runs_extraction(finished: Workspace) -> None:
    path = finished.path(f"{PACKAGE}/activations/readout.py")
    with edited(path, path.read_text("utf-8"), path.read_text("utf-8") + "\nEDITED = True\n"):
        pending = finished.pending()
    assert pending["extract_activations"] == 8
    assert "download_model" not in pending
    assert "prepare_dataset" not in pending


def test_a_changed_parameter_runs_that_metric_only(finished: Workspace) -> None:
    config = tiny.study()
    config["metrics"][-1]["permutations"] = 5
    with configured(finished, config):
        pending = finished.pending()
    assert pending.pop("compute_metric") == 2
    assert set(pending) == AFTER_METRICS


def test_a_template_runs_the_passes_that_read_it_only(finished: Workspace) -> None:
    config = tiny.study()
    config["datasets"][0]["template"] = 'Topic of "{text}":'
    with configured(finished, config):
        pending = finished.pending()
    assert (pending["extract_activations"], pending["compute_metric"]) == (4, 8)  # texts and texts~views, two models
    assert not {"download_model", "prepare_dataset", "prepare_task", "score_task"} & set(pending)

    config = tiny.study()
    config["tasks"][0]["template"] = 'Topic of "{text}":'
    with configured(finished, config):
        pending = finished.pending()
    assert (pending["extract_activations"], pending["score_task"], pending["compute_metric"]) == (4, 2, 2)
    assert not {"download_model", "prepare_dataset", "prepare_task"} & set(pending)


def test_a_new_model_runs_that_model_only(finished: Workspace) -> None:
    config = tiny.study()
    config["models"].append({**copy.deepcopy(config["models"][0]), "name": "neox-again"})
    before = finished.snakemake("-n", "--forceall", "--quiet", "rules").jobs()
    with configured(finished, config):
        pending = finished.pending()
    for rule in ("download_model", "extract_activations", "compute_metric", "score_task"):
        assert pending[rule] == before[rule] // 2
    assert "prepare_dataset" not in pending
    assert "prepare_task" not in pending


def test_a_new_dataset_runs_that_dataset_only(finished: Workspace) -> None:
    config = tiny.study()
    entry = {"name": "few", "source": {"dataset": "texts"}, "sample": {"n": 12}, "metrics": ["curvature"]}
    config["datasets"].append(entry)
    with configured(finished, config):
        pending = finished.pending()
    assert (pending["prepare_dataset"], pending["extract_activations"], pending["compute_metric"]) == (1, 2, 2)
    assert "score_task" not in pending


def test_a_task_record_names_the_version_of_its_evaluator(finished: Workspace) -> None:
    record = json.loads(finished.path("results/tasks/neox/topic.json").read_text("utf-8"))
    assert {"mteb", "scikit-learn"} <= set(record["provenance"]["versions"])


def test_new_file_times_run_nothing(finished: Workspace) -> None:
    for path in [*finished.path("results/data").rglob("*.parquet"), *finished.path("results/activations").rglob("*.h5")]:
        os.utime(path)
    assert finished.pending() == {}


def test_changed_table_content_runs_what_reads_it(finished: Workspace) -> None:
    with edited(finished.path("input/texts.csv"), "river", "stone"):
        pending = finished.pending()
    assert pending["prepare_dataset"] >= 1
    assert "download_model" not in pending
