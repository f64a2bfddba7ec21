"""A second run does only what changed (DESIGN, section 8)."""

import contextlib
import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow import tiny
from tests.workflow.conftest import Workspace

PACKAGE = "workflow_scripts/layerwise"
AFTER_METRICS = {"all", "collect_records", "build_table", "draw_figure"}


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
    assert tables == {"metrics", "scores", "missing", "layer_summary", "correlations", "layer_selection"}
    figures = {path.name for path in finished.path("results/figures").iterdir()}
    assert {"scores.png", "scores.pdf", "metric_dime.png", "valley.png"} <= figures
    assert all(path.stat().st_size > 5000 for path in finished.path("results/figures").glob("*.png"))


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
