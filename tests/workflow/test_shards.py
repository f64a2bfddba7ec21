"""A dataset in shards: several jobs, one file, the same metrics."""

import json
from typing import Any

import numpy as np

from tests.workflow import tiny
from tests.workflow.conftest import Workspace

GOALS = [f"results/metrics/neox/{dataset}/dataset_entropy.json" for dataset in ("texts", "parts")]
GOALS.append("results/metrics/neox/parts~views/dime.json")


def study(shards: int, of_views: int = 2) -> dict[str, Any]:
    config = tiny.study()
    views = config["datasets"][0].pop("derive")[0]
    parts = {"name": "parts", "source": {"dataset": "texts"}, "shards": shards, "derive": [views | {"shards": of_views}]}
    config["datasets"].append(parts)
    config["metrics"] = [{"name": "dataset_entropy"}, {"name": "dime", "permutations": 4, "subsamples": 4, "null_draws": 4}]
    return config | {"models": config["models"][:1], "tasks": [], "task_metrics": []}


def curves(workspace: Workspace, goal: str) -> list[list[float]]:
    records = json.loads(workspace.path(goal).read_text("utf-8"))["records"]
    return [[layer["value"] for layer in record["layers"]] for record in records]


def test_shards_run_as_jobs_and_readers_see_one_file(workspace: Workspace) -> None:
    workspace.configure(study(3))
    run = workspace.snakemake(*GOALS)
    assert run.status == 0, run.output[-3000:]
    jobs = run.jobs()
    assert (jobs["extract_activations"], jobs["extract_shard"], jobs["join_shards"]) == (1, 5, 2)
    whole, parts = (curves(workspace, goal) for goal in GOALS[:2])
    np.testing.assert_allclose(whole, parts, rtol=1e-4)
    left = {path.name for path in workspace.path("results/activations/neox").rglob("*.h5")}
    assert left == {"texts.h5", "parts.h5", "parts~views.h5"}
    assert workspace.pending("--", *GOALS) == {}

    workspace.configure(study(4))
    pending = workspace.pending("--", *GOALS)
    assert (pending["extract_shard"], pending["join_shards"], pending["compute_metric"]) == (4, 1, 1)
    assert "extract_activations" not in pending  # texts and the views stay as they are

    workspace.configure(study(3, of_views=21))
    run = workspace.snakemake("results/activations/neox/parts~views.shards/1-of-21.h5")
    assert run.status != 0
    assert "dataset 'parts~views' cannot be cut into 21 shards, it has 20 samples; write 'shards: 20' or fewer" in run.output

    workspace.configure(study(0))
    run = workspace.snakemake("-n", *GOALS)
    assert "datasets: 1 ('parts'): shards: Input should be greater than or equal to 1 (found 0)" in run.output
