"""Images through the whole workflow: a tiny ViT and its untrained twin, to scores and the choice of a layer."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import ViTConfig, ViTModel

from tests.workflow.conftest import Workspace

PROBE = {
    "name": "attended",
    "type": "attention_probe",
    "dataset": "glyphs",
    "label": "quadrant",
    "train": 40,
    "test": 20,
    "epochs": 2,
    "batch": 16,
    "seeds": [0, 1],
}


def save_vit(folder: Path) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(0)
    model = ViTModel(ViTConfig(**sizes, image_size=32, patch_size=8, initializer_range=0.2), add_pooling_layer=False)
    model.save_pretrained(folder)
    processor = {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 32, "width": 32},
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))


def study() -> dict[str, Any]:
    few = {"subsamples": 3, "null_draws": 3}
    return {
        "title": "tiny pictures",
        "models": [
            {"name": "vit", "source": {"path": "input/vit"}, "loader": "vision", "threads": 1},
            {"name": "twin", "source": {"random": {"like": "vit", "seed": 0}}, "loader": "vision", "threads": 1},
        ],
        "datasets": [
            {
                "name": "glyphs",
                "source": {"glyphs": {"n": 60, "size": 32}},
                "derive": [{"name": "views", "transform": "simclr", "views": 2, "sample": 12, "size": 32}],
            }
        ],
        "tasks": [
            {
                "name": "quadrant",
                "type": "image_classification",
                "dataset": "glyphs",
                "label": "quadrant",
                "train": 40,
                "test": 20,
            },
            PROBE,
        ],
        "headline_dataset": "glyphs",
        "metrics": [
            {"name": "dataset_entropy", **few},
            {"name": "curvature", **few},
            {"name": "dime", "permutations": 3, **few},
        ],
    }


def test_images_run_to_scores_and_to_the_choice_of_a_layer(workspace: Workspace) -> None:
    save_vit(workspace.path("input/vit"))
    workspace.configure(study())
    wanted = [
        "results/figures/scores.png",
        "results/tables/layer_selection.csv",
        "results/tables/scores.csv",
        "results/tables/missing.csv",
    ]
    run = workspace.snakemake(*wanted)
    assert run.status == 0, run.output[-5000:]
    assert all(workspace.path(name).stat().st_size > 100 for name in wanted)

    scores = pd.read_csv(workspace.path("results/tables/scores.csv"), keep_default_na=False)
    assert set(scores["model"]) >= {"vit", "twin"}
    baselines = set(scores["baseline"]) - {""}
    assert {"raw_pixels", "majority"} <= baselines
    layered = scores[(scores["model"] == "twin") & (scores["layer"] != "")]
    assert set(layered["layer"].astype(float).astype(int)) == {0, 1, 2, 3}
    assert pd.to_numeric(layered["score"]).between(0, 1).all()

    for model in ("vit", "twin"):
        check_probes(workspace, scores[(scores["task"] == "attended") & scores["model"].isin([model, ""])], model)

    missing = pd.read_csv(workspace.path("results/tables/missing.csv"), keep_default_na=False)
    curvature = missing[missing["metric"] == "curvature"]
    assert set(curvature["model"]) == {"vit", "twin"}
    assert curvature["reason"].str.contains("the patches of images have none").all()
    assert set(missing["metric"]) == {"curvature"}

    assert len(list(workspace.path("results/data/glyphs~views/images").glob("*.png"))) == 24
    assert not workspace.pending("--", *wanted)

    changed = study()
    changed["tasks"][1] = PROBE | {"learning_rate": 0.01}
    workspace.configure(changed)
    pending = workspace.pending("--", "results/tables/scores.csv")
    assert pending == {"prepare_task": 1, "probe_attention": 2, "collect_records": 1}


def check_probes(workspace: Workspace, scores: pd.DataFrame, model: str) -> None:
    """The attention probe of every layer, the last block's included, is in scores.csv beside its baselines."""
    assert set(scores["protocol"]) == {"attention_probe"}
    assert set(scores["baseline"]) == {"", "majority", "raw_pixels"}
    layers = scores[scores["model"] == model]
    assert layers["readout"].unique().tolist() == ["attention"]
    assert layers["layer"].astype(float).tolist() == [0, 1, 2, 3]
    record = json.loads(workspace.path(f"results/tasks/{model}/attended.json").read_text())
    kept = record["readouts"]["attention"]
    assert [layer["main_score"] for layer in kept] == pytest.approx(pd.to_numeric(layers["score"]).tolist())
    assert all(len(layer["seed_scores"]) == len(layer["train_loss"]) == 2 for layer in kept)
    assert record["probe"]["tokens"] == "all"
    assert record["probe"]["heads"] == 8
    assert record["provenance"]["model_revision"]
    assert not workspace.path(f"results/logs/score_task/{model}/attended.log").exists()
