"""Prompt templates: what the model reads, what stays as it was, and templates that are none."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layerwise.config import load_study
from layerwise.data.prepare import write_dataset
from layerwise.errors import ConfigError
from layerwise.models.snapshot import download
from layerwise.plan import dataset_plans
from layerwise.store import Activations
from layerwise.template import filled, seen_digest

from tests import builders

TEMPLATE = 'w1 {"w2"} {text} {0} w3'
SCRIPTS = Path(__file__).parents[3] / "workflow_scripts"


def adapter() -> Any:
    spec = importlib.util.spec_from_file_location("extract_activations", SCRIPTS / "extract_activations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_vectors_are_those_of_the_written_out_texts_and_the_samples_stay(saved: dict[str, Path], tmp_path: Path) -> None:
    frame = builders.samples([3, 1, 7, 5])
    written = frame.assign(text=[f'w1 {{"w2"}} {text} {{0}} w3' for text in frame["text"]])
    download(tmp_path / "model/manifest.json", "m", {"path": str(saved["llama"])}, None, "text")
    facts = {"origin": "here", "licence": "none", "source": {}, "sample": None}
    entry = {
        "name": "m",
        "loader": "text",
        "dtype": "float32",
        "device": "cpu",
        "max_tokens": 40,
        "batch_tokens": 64,
        "attention": "model",
    }
    collect = {
        "readouts": [{"name": "last", "norm": "final", "tokens": "all", "pool": "last"}],
        "recipes": ["raw"],
        "taps": ["residual"],
        "storage": "float32",
        "compression": None,
        "token_transform": {},
        "code": "0" * 16,
    }
    stores = {}
    for name, texts, template in (("filled", frame, TEMPLATE), ("written", written, ""), ("plain", frame, "")):
        write_dataset(tmp_path / name, "texts", texts, facts)
        inputs = {
            "model": str(tmp_path / "model/manifest.json"),
            "samples": str(tmp_path / name / "samples.parquet"),
            "dataset": str(tmp_path / name / "manifest.json"),
        }
        output = str(tmp_path / f"{name}.h5")
        adapter().main(output, inputs, entry, collect | {"template": template}, lambda *_: None)
        stores[name] = Activations(output)
    assert stores["filled"].ids == frame["id"].tolist()
    assert stores["filled"].n_tokens.tolist() == [n + 4 for n in (3, 1, 7, 5)]
    for layer in range(builders.LAYERS + 1):
        found = stores["filled"].rows("last", layer)
        np.testing.assert_array_equal(found, stores["written"].rows("last", layer))
        assert layer == 0 or not np.allclose(found, stores["plain"].rows("last", layer), rtol=1e-3)
    digests = {name: store.header.dataset_digest for name, store in stores.items()}
    assert len(set(digests.values())) == 3
    assert digests["filled"] == seen_digest(digests["plain"], TEMPLATE)
    assert stores["filled"].header.provenance["template"] == TEMPLATE
    for store in stores.values():
        store.file.close()


def test_a_text_that_looks_like_a_template_is_a_text() -> None:
    frame = builders.samples([2]).assign(text=["a {text} {b} \\1"])
    assert filled(frame, "x {text} y")["text"].tolist() == ["x a {text} {b} \\1 y"]
    assert filled(frame, "") is frame


def study(template: Any = "x {text}", task: Any = "y {text}", **dataset: Any) -> dict[str, Any]:
    views = {"name": "views", "transform": "surface_noise", "views": 2}
    entry = {"name": "d", "source": {"table": {"path": "d.csv"}}, "derive": [views], "template": template} | dataset
    topic = {"name": "t", "type": "classification", "dataset": "d", "label": "l", "train": 9, "template": task}
    return {
        "models": [{"name": "m", "source": {"path": "m"}}],
        "datasets": [entry, {"name": "few", "source": {"dataset": "d"}}],
        "tasks": [topic],
        "metrics": [{"name": "prompt_entropy"}],
        "task_metrics": ["prompt_entropy"],
    }


def test_views_and_samples_have_it_and_what_is_drawn_from_the_same_texts_has_its_own() -> None:
    plans = dataset_plans(load_study(study()))
    found = {name: plan.template for name, plan in plans.items()}
    assert found == {"d": "x {text}", "d~views": "x {text}", "few": "", "t": "y {text}", "t~sample": "y {text}"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (study("no place"), r"'no place' holds \{text\} 0 times; write it once"),
        (study("{text} {text}"), r"holds \{text\} 2 times"),
        (study(task="{ text }"), r"t.*template.*holds \{text\} 0 times"),
        (study(""), r"'' holds \{text\} 0 times"),
        (study(7), "template"),
        (study(source={"digits": {"n": 9}}, derive=[]), "holds images, which have no 'template'"),
        (
            study(derive=[{"name": "r", "transform": "random_prompts", "levels": [4]}]),
            "'random_prompts' of dataset 'd' would change the tokens of its 'template' too",
        ),
    ],
)
def test_what_is_no_template_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        dataset_plans(load_study(config))
    assert str(caught.value).count("\n") == 0


def test_a_task_on_images_has_none() -> None:
    config = study(None, source={"digits": {"n": 9}}, derive=[])
    config["tasks"][0] |= {"type": "image_classification", "template": "a {text}"}
    with pytest.raises(ConfigError, match="an image_classification task takes no 'template'"):
        load_study(config)
