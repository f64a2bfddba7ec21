"""Every kind of model goes the whole road, from its folder to a figure: one random-weight model of each."""

from pathlib import Path
from typing import Any

import pandas as pd

from tests import builders, mini, vision_builders
from tests.workflow.conftest import Workspace
from tests.workflow.tiny import WORDS

TEXT = {
    "neox": {},
    "mamba": {},
    "bert": {},
    "llama": {"attention": "bidirectional", "adapters": ["mntp", "simcse"]},  # as LLM2Vec's models are made
}
VISION = {"vit": "vision", "mae": "vision", "open_clip": "open_clip", "aim": "aim"}


def save_models(folder: Path) -> None:
    for family in TEXT:
        builders.save(folder / family, family)
    for number, name in enumerate(TEXT["llama"]["adapters"]):
        mini.save_adapter(folder / name, "llama", number)
    for family in VISION:
        vision_builders.save(folder / family, family)


def entries() -> list[dict[str, Any]]:
    common = {"threads": 1}
    made: list[dict[str, Any]] = []
    for family, special in TEXT.items():
        source: dict[str, Any] = {"path": f"input/{family}"}
        if "adapters" in special:
            source["adapters"] = [{"path": f"input/{name}"} for name in special["adapters"]]
        attention = {"attention": special["attention"]} if "attention" in special else {}
        made.append({"name": family, "source": source, "max_tokens": 32, **attention, **common})
    for family, loader in VISION.items():
        made.append({"name": family, "source": {"path": f"input/{family}"}, "loader": loader, "image_size": 32, **common})
    return made


def study() -> dict[str, Any]:
    few = {"subsamples": 3, "null_draws": 3}
    task = {"label": "topic", "train": 30, "test": 20, "samples_per_label": 8, "sample": 0}
    pictures = {"label": "quadrant", "train": 40, "test": 20}
    return {
        "title": "every family",
        "models": entries(),
        "datasets": [
            {"name": "texts", "source": {"table": {"path": "input/texts.csv"}}},
            {"name": "glyphs", "source": {"glyphs": {"n": 60, "size": 32}}},
        ],
        "tasks": [
            {"name": "topic", "type": "classification", "dataset": "texts", **task},
            {"name": "quadrant", "type": "image_classification", "dataset": "glyphs", **pictures},
        ],
        "headline_dataset": "texts",
        "metrics": [{"name": "dataset_entropy", **few}, {"name": "prompt_entropy", **few}],
    }


def test_every_family_goes_from_its_folder_to_a_figure(workspace: Workspace) -> None:
    save_models(workspace.path("input"))
    vocabulary = dict(zip(WORDS, builders.WORDS, strict=False))  # the words that these models' tokenizer knows
    texts = pd.read_csv(workspace.path("input/texts.csv"))
    texts["text"] = [" ".join(vocabulary[word] for word in text.split()) for text in texts["text"]]
    texts.to_csv(workspace.path("input/texts.csv"), index=False)
    workspace.configure(study())
    names = [*TEXT, *VISION]
    figures = ["results/figures/scores.png", *(f"results/figures/scores~{name}.png" for name in names)]
    run = workspace.snakemake("results/tables/missing.csv", *figures)
    assert run.status == 0, run.output[-5000:]
    assert all(workspace.path(name).stat().st_size > 5000 for name in figures)

    scores = pd.read_csv(workspace.path("results/tables/scores.csv"), keep_default_na=False)
    metrics = pd.read_csv(workspace.path("results/tables/metrics.csv"), keep_default_na=False)
    for name in names:
        layers = scores[(scores["model"] == name) & (scores["readout"] == "mean_normed")]["layer"]
        assert set(pd.to_numeric(layers)) == {0, 1, 2, 3}, name
        values = metrics[(metrics["model"] == name) & (metrics["metric"] == "dataset_entropy")]
        assert set(values["layer"]) == {0, 1, 2, 3}, name
        assert (pd.to_numeric(values["value"]) > 0).all(), name
