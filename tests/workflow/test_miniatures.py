"""A miniature goes the whole road: trained once, three checkpoints as models, training_dynamics.csv, the figure."""

import json
import subprocess
import sys

import pandas as pd
import pytest

from tests.workflow.conftest import Workspace

TABLE = "results/tables/training_dynamics.csv"
FIGURE = "results/figures/dynamics~mini.png"


def study(**train: object) -> dict:
    run = {"objective": "causal_lm", "dataset": "texts", "steps": 12, "checkpoints": [0, 4, 12], "batch": 16}
    run |= {"blocks": 2, "width": 16, "tokens": 16, "vocabulary": 280, "learning_rate": 0.01}
    return {
        "title": "miniature",
        "models": [{"name": "mini", "source": {"train": run | train}, "threads": 1}],
        "datasets": [{"name": "texts", "source": {"table": {"path": "input/texts.csv"}}}],
        "readouts": [{"name": "mean"}],
        "headline_readout": "mean",
        "headline_dataset": "texts",
        "metrics": [{"name": "dataset_entropy", "subsamples": 3, "null_draws": 3}],
    }


def test_a_training_run_goes_from_its_texts_to_a_figure(workspace: Workspace) -> None:
    workspace.configure(study())
    run = workspace.snakemake(TABLE, FIGURE)
    assert run.status == 0, run.output[-5000:]
    assert run.jobs()["train_model"] == 1
    assert run.jobs()["download_model"] == run.jobs()["compare_layers"] == 3
    assert workspace.path(FIGURE).stat().st_size > 5000

    record = json.loads(workspace.path("results/models/mini/training.json").read_text())
    losses = [point["heldout_loss"] for point in record["checkpoints"]]
    table = pd.read_csv(workspace.path(TABLE))
    assert set(table["model"]) == {"mini"}
    assert table.groupby("step")["heldout_loss"].first().tolist() == pytest.approx(losses)
    assert losses[-1] < losses[0]
    change = table[(table["metric"] == "layer_change") & (table["variant"] == "paper")].set_index(["step", "layer"])
    assert list(change.index) == [(step, layer) for step in (0, 4, 12) for layer in range(3)]
    assert change.loc[12, "stability"].tolist() == pytest.approx([1.0] * 3)
    assert change.loc[0, "stability"].max() < 1.0
    assert set(table["metric"]) == {"layer_change", "dataset_entropy"}
    done = subprocess.run(
        [sys.executable, "tools/miniatures.py"], cwd=workspace.folder, capture_output=True, text=True, timeout=60
    )
    assert f"{losses[0]:.3f}" in done.stdout, done.stderr

    assert workspace.pending("--", TABLE, FIGURE) == {}
    manifest = json.loads(workspace.path("results/models/mini@step4/manifest.json").read_text())
    assert (manifest["conversion"]["step"], manifest["n_layers"]) == (4, 2)
    workspace.configure(study(seed=1))
    assert workspace.pending("--", TABLE)["train_model"] == 1


def test_a_run_that_diverges_says_step_and_loss_and_leaves_nothing(workspace: Workspace) -> None:
    workspace.configure(study(learning_rate=1e6, steps=60, checkpoints=[0, 60]))
    run = workspace.snakemake("results/models/mini@step60/manifest.json")
    assert run.status != 0
    assert "train_model mini: causal_lm on 'texts': training diverged at step" in run.output
    assert not list(workspace.path("results/models").glob("mini/*"))
    assert not workspace.path("results/models/mini@step60/manifest.json").exists()
