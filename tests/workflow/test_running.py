"""Starting, being killed, and starting again; threads; what a job imports."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workflow.conftest import REPOSITORY, Workspace

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def start(workspace: Workspace) -> subprocess.Popen[str]:
    command = [sys.executable, "tools/run.py", "--cores", "2"]
    log = workspace.path("run.txt").open("w")
    return subprocess.Popen(
        command, cwd=workspace.folder, stdout=log, stderr=log, env=ENVIRONMENT, text=True, start_new_session=True
    )


def wait_for(pattern: str, workspace: Workspace, process: subprocess.Popen[str], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if list(workspace.folder.glob(pattern)):
            return
        time.sleep(0.05)
    pytest.fail(f"{pattern} did not appear: {workspace.path('run.txt').read_text()[-3000:]}")


def test_a_killed_run_heals(workspace: Workspace) -> None:
    first = start(workspace)
    wait_for("results/activations/*/*.h5", workspace, first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = {path: path.stat().st_mtime_ns for path in workspace.path("results/activations").rglob("*.h5")}
    blocked = workspace.snakemake("results/tables/missing.csv")
    assert blocked.status != 0
    assert "cannot be locked" in blocked.output  # what the README says of plain Snakemake
    second = start(workspace)
    assert second.wait(timeout=400) == 0, workspace.path("run.txt").read_text()[-3000:]
    assert workspace.path("results/tables/layer_summary.csv").is_file()
    assert not list(workspace.path("results").rglob("*.tmp"))
    assert before, "the first run had finished nothing"
    assert workspace.pending() == {}


def test_two_runs_in_one_folder_do_not_meet(workspace: Workspace) -> None:
    first = start(workspace)
    wait_for("results/.run.lock", workspace, first)
    time.sleep(1)
    second = subprocess.run(
        [sys.executable, "tools/run.py", "--cores", "1"],
        cwd=workspace.folder,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    os.killpg(first.pid, signal.SIGKILL)
    assert second.returncode == 1
    assert "Another 'make run' is at work" in second.stderr


@pytest.mark.parametrize("adapter", ["compute_metric", "collect_records", "build_table", "draw_figure", "prepare_dataset"])
def test_light_jobs_import_no_heavy_library(adapter: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, 'workflow_scripts'); import {adapter}; "
        "from layerwise.metrics.registry import METRICS, load_metric; [load_metric(name) for name in METRICS]; "
        "from layerwise.figures.registry import FIGURES, load_figure; "
        "[load_figure(name) for name in FIGURES]; print([m for m in ('torch', 'transformers', 'mteb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_jobs_use_the_threads_of_their_rule(finished: Workspace) -> None:
    script = finished.path("workflow_scripts/compute_metric.py")
    before = script.read_text("utf-8")
    probe = "\nimport os\nfrom pathlib import Path\nPath('threads.txt').write_text(os.environ['OMP_NUM_THREADS'])\n"
    try:
        script.write_text(before + probe, "utf-8")
        run = finished.snakemake("--force", "results/metrics/neox/texts/curvature.json", "--until", "compute_metric")
        assert run.status == 0, run.output[-2000:]
        assert Path(finished.path("threads.txt")).read_text() == "1"
    finally:
        script.write_text(before, "utf-8")
        finished.snakemake()  # leave it finished, as it was found


def test_the_answer_names_the_best_layer_and_the_report(finished: Workspace) -> None:
    done = subprocess.run(
        [sys.executable, "tools/answer.py"], cwd=finished.folder, capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    assert "neox" in done.stdout
    assert "topic" in done.stdout
    assert "results/report.html" in done.stdout
    assert "activations" in done.stdout


def test_the_report_holds_every_figure_with_its_caption(finished: Workspace) -> None:
    run = finished.snakemake("--report", "report.html")
    assert run.status == 0, run.output[-3000:]
    page = finished.path("report.html").read_text("utf-8")
    figures = [path.name for path in finished.path("results/figures").glob("*.png")]
    assert len(figures) > 8
    assert all(name in page for name in figures)
    assert "Score of every layer against depth" in page  # the caption of the figure scores
    assert "can one know it without labels" in page
    assert "neox" in page
    finished.path("report.html").unlink()
