"""Changed tokens, prefixes and traces through the real Snakemake: tables, figures, and what a change runs again."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests import builders
from tests.workflow.conftest import Workspace

SHARED = {"max_tokens": 32, "threads": 1}
FEW = {"null_draws": 2, "subsamples": 2}


def save_writer(folder: Path) -> None:
    """A tiny decoder with the head that writing needs."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(builders.FAMILIES["llama"])
    model.generation_config.eos_token_id = None
    model.save_pretrained(folder)
    builders.tokenizer().save_pretrained(folder)


def study() -> dict[str, Any]:
    traces = {"dataset": "texts", "model": "writer", "prompt": "w1 {text}", "max_new_tokens": 12, "minimum_tokens": 16}
    return {
        "title": "levels",
        "models": [
            {
                "name": "writer",
                "source": {"path": "input/writer"},
                "max_tokens": 32,
                "threads": 1,
                "labels": {"kind": "causal"},
            },
            {"name": "bert", "source": {"path": "input/bert"}, "max_tokens": 32, "threads": 1, "labels": {"kind": "masked"}},
        ],
        "datasets": [
            {
                "name": "texts",
                "source": {"table": {"path": "input/words.csv", "id": "id"}},
                "derive": [
                    {"name": "repeated", "transform": "repeat_tokens", "levels": [0, 0.5, 1], "draws": 2},
                    {"name": "lengths", "transform": "random_prompts", "levels": [8, 24], "sample": 3},
                ],
            },
            {
                "name": "written",
                "source": {"traces": traces},
                "derive": [{"name": "prefixes", "transform": "prefixes", "levels": [0.25, 0.5, 1]}],
            },
        ],
        "tasks": [],
        "headline_dataset": "texts",
        "metrics": [{"name": "prompt_entropy", **FEW}, {"name": "dataset_entropy", **FEW}, {"name": "dime", **FEW}],
        "task_metrics": [],
        "export": [],
    }


@pytest.fixture(scope="module")
def levels(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    from tests.workflow.conftest import make_workspace

    workspace = make_workspace(tmp_path_factory.mktemp("levels") / "with a space")
    save_writer(workspace.path("input/writer"))
    builders.save(workspace.path("input/bert"), "bert")
    frame = pd.DataFrame({"id": [f"t{i}" for i in range(6)], "text": builders.texts([9, 5, 12, 7, 10, 6])})
    frame.to_csv(workspace.path("input/words.csv"), index=False)
    workspace.configure(study())
    run = workspace.snakemake()
    assert run.status == 0, run.output[-5000:]
    return workspace


def test_the_table_holds_every_model_level_draw_and_layer(levels: Workspace) -> None:
    table = pd.read_csv(levels.path("results/tables/levels.csv"))
    counts = (
        table[table["layer"] == 0]
        .groupby(["model", "dataset", "metric"])[["level", "draw"]]
        .apply(lambda rows: len(rows.drop_duplicates()))
    )
    for dataset, expected in (("texts~repeated", 6), ("texts~lengths", 2), ("written~prefixes", 3)):
        for model in ("writer", "bert"):
            for metric in ("prompt_entropy", "dataset_entropy"):
                assert counts[model, dataset, metric] == expected
    assert not (table["metric"] == "dime").any()  # it needs views
    metrics = pd.read_csv(levels.path("results/tables/metrics.csv"))
    assert not metrics["dataset"].isin(table["dataset"]).any()


def test_level_0_is_the_text_itself(levels: Workspace) -> None:
    table = pd.read_csv(levels.path("results/tables/levels.csv"))
    plain = pd.read_csv(levels.path("results/tables/metrics.csv"))
    keys = ["model", "metric", "variant", "readout", "recipe", "layer"]
    zero = table[(table["dataset"] == "texts~repeated") & (table["level"] == 0) & (table["draw"] == 1)]
    both = zero.merge(plain[plain["dataset"] == "texts"], on=keys, suffixes=("", "_plain"))
    assert len(both) == len(zero) > 0
    np.testing.assert_allclose(both["value"], both["value_plain"], rtol=1e-4)
    one = table[(table["dataset"] == "texts~repeated") & (table["recipe"] == "raw") & (table["layer"] == 0)]
    one = one[one["model"] == "writer"]  # BERT adds positions at layer 0
    assert (one[one["level"] == 1]["value"] < 0.2 * one[one["level"] == 0]["value"].mean()).all()


def test_figures_and_files(levels: Workspace) -> None:
    for name in ("levels~texts~repeated", "levels~texts~lengths", "levels~written~prefixes", "compared~kind"):
        assert levels.path(f"results/figures/{name}.png").stat().st_size > 10_000
    with h5py.File(levels.path("results/activations/writer/texts~repeated.h5")) as file:
        assert len(file["input_ids"]) == file["n_tokens"][:].sum()


def test_traces_begin_with_their_prompt_and_keep_their_id(levels: Workspace) -> None:
    written = pd.read_parquet(levels.path("results/data/written/samples.parquet"))
    source = pd.read_parquet(levels.path("results/data/texts/samples.parquet")).set_index("id")["text"]
    assert set(written["id"]) <= set(source.index)
    assert len(written) == (source.str.split().str.len() + 1 + 12 >= 16).sum()
    for row in written.to_dict("records"):
        assert row["text"].startswith(f"w1 {source[row['id']]}")
        assert row["n_tokens"] >= 16


def test_a_second_run_does_nothing_and_one_more_level_runs_that_dataset_alone(levels: Workspace) -> None:
    assert levels.pending() == {}
    config = study()
    config["datasets"][0]["derive"][0]["levels"] = [0, 0.5, 0.75, 1]
    levels.configure(config)
    try:
        jobs = levels.pending()
        assert jobs["prepare_dataset"] == 1
        assert jobs["extract_activations"] == 2
        assert jobs["compute_metric"] == 4
        assert jobs["collect_levels"] == 1
        assert not {"write_traces", "download_model"} & set(jobs)
        config = study()
        config["datasets"][1]["source"]["traces"]["max_new_tokens"] = 11
        levels.configure(config)
        jobs = levels.pending()
        assert jobs["write_traces"] == 1
        assert jobs["extract_activations"] == 4  # both models on the traces and on their prefixes
    finally:
        levels.configure(study())


def test_prompts_that_are_too_long_are_one_sentence(levels: Workspace) -> None:
    config = study()
    config["datasets"][0]["derive"][1]["levels"] = [8, 64]
    levels.configure(config)
    try:
        run = levels.snakemake("results/activations/bert/texts~lengths.h5")
        assert run.status != 0
        sentence = "dataset 'texts~lengths': prompts of 64 tokens are asked for, the model reads 32; write 'max_tokens: 64'"
        assert sentence in run.output
    finally:
        levels.configure(study())
