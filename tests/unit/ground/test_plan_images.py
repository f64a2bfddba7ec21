"""The plan with two modalities: who reads what, what is absent and why, and what does not fit together."""

from pathlib import Path
from typing import Any

import pytest
from layerwise.config import Study, load_study
from layerwise.config_datasets import DatasetSource
from layerwise.errors import ConfigError
from layerwise.metrics.registry import load_metric
from layerwise.plan import dataset_plans, looked_up, metric_cells, runs

METRICS = ("curvature", "prompt_entropy", "dataset_entropy", "dime", "lidar")
SIMCLR = {"name": "views", "transform": "simclr", "views": 8}
SPELLING = {"name": "views", "transform": "surface_noise", "views": 8}
LETTER = {"name": "letter", "type": "image_classification", "dataset": "glyphs", "label": "letter", "train": 40}
TOPIC = {"name": "topic", "type": "classification", "dataset": "lee", "label": "topic", "train": 40}


def study(**changes: Any) -> Study:
    models = [
        {"name": "reader", "source": {"path": "x"}},
        {"name": "seer", "source": {"path": "y"}, "loader": "vision"},
        {"name": "timmy", "source": {"path": "z"}, "loader": "timm"},
        {"name": "twin", "source": {"random": {"like": "seer"}}, "loader": "vision", "datasets": ["glyphs"]},
    ]
    datasets = [
        {"name": "lee", "source": {"lee": {}}, "derive": [SPELLING]},
        {"name": "glyphs", "source": {"glyphs": {"n": 60}}, "derive": [SIMCLR]},
        {"name": "few", "source": {"dataset": "glyphs"}},
        {"name": "own", "source": {"image_folder": {"path": "pictures"}}},
        {"name": "digits", "source": {"digits": {}}},
    ]
    base = {"models": models, "datasets": datasets, "tasks": [TOPIC, LETTER]}
    return load_study(base | {"metrics": [{"name": name} for name in METRICS], "task_metrics": ["prompt_entropy"]} | changes)


def test_models_read_their_own_modality_only() -> None:
    made = study()
    plans = dataset_plans(made)
    read = {model.name: {name for name, plan in plans.items() if runs(model, plan)} for model in made.models}
    text, images = {"lee", "lee~views", "topic", "topic~sample"}, {"glyphs", "glyphs~views", "few", "own", "digits"}
    assert set(plans) == text | images
    assert read == {"reader": text, "seer": images, "timmy": images, "twin": {"glyphs", "glyphs~views"}}


def test_a_task_of_images_looks_its_datasets_vectors_up() -> None:
    made = study()
    assert {task.name: looked_up(task) for task in made.tasks} == {"topic": "topic", "letter": "glyphs"}
    assert "letter" not in dataset_plans(made)


def test_what_needs_an_order_of_tokens_is_absent_on_images() -> None:
    made = study()
    plans = dataset_plans(made)
    cells, absent = metric_cells(made, plans, {name: load_metric(name).SPEC for name in METRICS})
    image_cells = {cell for cell in cells if plans[cell[0]].modality == "image"}
    assert ("lee", "curvature") in cells
    assert not [cell for cell in image_cells if cell[1] == "curvature"]
    assert {cell for cell in image_cells if cell[0].startswith("glyphs")} == {
        ("glyphs", "prompt_entropy"),
        ("glyphs", "dataset_entropy"),
        ("glyphs~views", "dime"),
        ("glyphs~views", "lidar"),
    }
    reasons = {(cell.dataset, cell.metric): cell.reason for cell in absent}
    for name in ("glyphs", "few", "own", "digits"):
        assert reasons[name, "curvature"] == "curvature needs tokens in an order, the patches of images have none"
    assert reasons["few", "dime"] == "dataset 'few' has 1 view, dime needs 2"
    assert ("glyphs", "dime") not in reasons


@pytest.mark.parametrize(("source", "derivation"), [({"lee": {}}, SIMCLR), ({"digits": {}}, SPELLING)])
def test_a_transform_of_the_other_modality_is_refused(source: dict[str, Any], derivation: dict[str, Any]) -> None:
    modality = "text" if "lee" in source else "image"
    made = study(datasets=[{"name": "d", "source": source, "derive": [derivation]}], tasks=[], models=study().models[:2])
    with pytest.raises(ConfigError, match=f"transform '{derivation['transform']}' does not fit {modality} dataset 'd'"):
        dataset_plans(made)


def test_views_of_a_tasks_texts_are_not_simclr() -> None:
    with pytest.raises(ConfigError, match="'simclr' does not fit text dataset 'topic~sample'"):
        dataset_plans(study(task_views=SIMCLR))


@pytest.mark.parametrize(("task", "dataset", "modality"), [(LETTER, "lee", "text"), (TOPIC, "few", "image")])
def test_a_task_of_the_other_modality_is_refused(task: dict[str, Any], dataset: str, modality: str) -> None:
    made = study(tasks=[task | {"dataset": dataset}])
    with pytest.raises(ConfigError, match=f"task '{task['name']}' of type {task['type']} cannot use {modality} dataset"):
        dataset_plans(made)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([{"name": "twin", "source": {"random": {"like": "nobody"}}}], "'random: like' names 'nobody', which is not"),
        ([{"name": "twin", "source": {"random": {"like": "twin"}}}], "'random: like' names 'twin', which is not"),
        ([{"name": "m", "source": {"path": "x"}, "datasets": ["glyps"]}], "'datasets' names 'glyps', which is not"),
        ([{"name": "m", "source": {"path": "x", "random": {"like": "m"}}}], "exactly one of"),
        ([{"name": "m", "source": {"path": "x"}, "loader": "vision", "image_size": 4}], "image_size"),
        ([{"name": "m", "source": {"path": "x"}, "loader": "clip"}], "loader"),
    ],
)
def test_models_that_make_no_sense_are_refused(models: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        study(models=models)


def test_a_twin_is_read_by_the_loader_of_its_model() -> None:
    models = [
        {"name": "seer", "source": {"path": "y"}, "loader": "vision"},
        {"name": "twin", "source": {"random": {"like": "seer"}}},
    ]
    with pytest.raises(ConfigError, match=r"'twin'.*loader.*'vision'"):
        study(models=models)


def test_a_model_is_not_kept_to_a_task_that_owns_no_vectors() -> None:
    models = [{"name": "seer", "source": {"path": "y"}, "loader": "vision", "datasets": ["letter"]}]
    with pytest.raises(ConfigError, match=r"'datasets' names 'letter'.*'glyphs'"):
        study(models=models)


@pytest.mark.parametrize(("loader", "dataset"), [("vision", "lee"), ("text", "glyphs")])
def test_a_model_cannot_be_kept_to_a_dataset_it_cannot_read(loader: str, dataset: str) -> None:
    made = study(models=[{"name": "m", "source": {"path": "y"}, "loader": loader, "datasets": [dataset]}])
    with pytest.raises(ConfigError, match=rf"model 'm' reads \w+, its 'datasets' name '{dataset}', which holds"):
        dataset_plans(made)


def test_a_changed_image_folder_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    picture = tmp_path / "cat" / "1.png"
    picture.write_bytes(b"one")
    source = DatasetSource.model_validate({"image_folder": {"path": str(tmp_path)}})
    before = source.file_digest
    assert source.file_digest == before
    picture.write_bytes(b"another")
    changed = source.file_digest
    (tmp_path / "cat" / "2.png").write_bytes(b"new")
    assert len({before, changed, source.file_digest}) == 3
