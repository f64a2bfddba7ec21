"""Tasks of the attention probe: what they draw, their baselines, their record, and what cannot be probed."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.config import TaskEntry
from layerwise.data.prepare import from_source
from layerwise.errors import DataError, FileError
from layerwise.records import write_record
from layerwise.samples import read_samples
from layerwise.tables.collect import item_store, scores_table
from layerwise.tasks import attention_task, image_task
from layerwise.tasks.attention_probe import Probed, Training
from layerwise.tasks.files import write_task
from layerwise.tasks.registry import load_kind
from layerwise.tasks.rows import task_rows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    from_source(folder / "digits", "digits", "digits", {"n": 120, "seed": 0, "size": 16}, None)
    return folder


def options(kind: str = "attention_probe", **changes: Any) -> dict[str, Any]:
    entry = {"name": "t", "type": kind, "dataset": "digits", "label": "digit", "train": 80, "test": 40} | changes
    return TaskEntry.model_validate(entry).model_dump(exclude={"name"})


def make(folder: Path, data: Path, **changes: Any) -> Path:
    wanted = options(**changes)
    rows = task_rows("t", wanted, read_samples(data / "digits" / "samples.parquet"), None)
    write_task(folder / "t" / "task", "t", wanted, rows)
    return folder / "t" / "task"


def probed(task: image_task.ImageTask, seeds: int) -> Probed:
    rng = np.random.default_rng(0)
    return Probed(rng.random((4, seeds, len(task.ids["test"]))) < 0.5, rng.random((4, seeds)), 8)


def test_it_is_drawn_like_any_task_on_images(tmp_path: Path, data: Path) -> None:
    task = attention_task.load(make(tmp_path, data))
    frame = read_samples(data / "digits" / "samples.parquet")
    other = task_rows("t", options("image_classification"), frame, None)
    assert {split: other[split]["id"].tolist() for split in other} == task.ids
    images, labels = attention_task.images(task, frame)
    assert images["id"].tolist() == task.ids["train"] + task.ids["test"]
    digits = frame.set_index("id")["digit"]
    assert [str(digit) for digit in digits.loc[images["id"]]] == [str(label) for label in labels]
    assert load_kind("attention_probe") is attention_task


def test_the_config_says_how_to_train(tmp_path: Path, data: Path) -> None:
    assert attention_task.training(attention_task.load(make(tmp_path, data))) == Training()
    changed = make(tmp_path, data, seeds=[4, 2], seed=9, epochs=3, batch=16, heads=2, learning_rate="1e-2", weight_decay=0)
    assert attention_task.training(attention_task.load(changed)) == Training((4, 2), 9, 3, 16, 1e-2, 0.0, 2)


def test_baselines_are_majority_and_the_same_probe_on_pixels(tmp_path: Path, data: Path) -> None:
    folder = make(tmp_path, data, epochs=10, batch=16)
    task = attention_task.load(folder)
    frame = attention_task.samples(folder, read_samples(data / "digits" / "samples.parquet"), data / "digits")
    found = {entry["baseline"]: entry for entry in attention_task.baselines(task, frame, folder.parent)}
    assert {entry["protocol"] for entry in found.values()} == {"attention_probe"}
    assert found["majority"]["score"] == pytest.approx(0.1)
    assert 0.5 < found["raw_pixels"]["score"] <= 1


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_tables_read_the_record(tmp_path: Path, data: Path, seeds: list[int]) -> None:
    task = attention_task.load(make(tmp_path, data, seeds=seeds))
    made = probed(task, len(seeds))
    record = {"model": "vit", "task": "t", "type": task.type, "main_score": "accuracy", "dataset_digest": "d"}
    path = tmp_path / "tasks" / "vit" / "t.json"
    path.parent.mkdir(parents=True)
    result = attention_task.result(task, made)
    write_record(path, record | result)
    table = scores_table([path])
    assert set(zip(table["readout"], table["protocol"], strict=True)) == {("attention", "attention_probe")}
    assert table["layer"].tolist() == [0, 1, 2, 3]
    assert table["n_items"].unique().tolist() == [40]
    np.testing.assert_allclose(table["score"], made.correct.mean(axis=(1, 2)))
    items = item_store([path])["vit", "t"]
    assert (items.score, items.protocol, items.n) == ("accuracy", "attention_probe", 40)
    np.testing.assert_allclose(items.scores("attention", np.ones((1, 40)))[0], table["score"], atol=1e-6)
    layer = result["readouts"]["attention"][2]
    accuracy = made.correct[2].mean(axis=1)
    assert layer["seed_scores"] == accuracy.tolist()
    assert layer["train_loss"] == made.train_loss[2].tolist()
    if len(seeds) == 1:
        assert layer["standard_error"] is None
    else:
        assert layer["standard_error"] == pytest.approx(np.std(accuracy, ddof=1) / np.sqrt(3))
    assert result["probe"] == {
        "tokens": "all", "heads": 8, "seeds": seeds, "epochs": 1, "batch": 128, "learning_rate": 1e-3,
        "weight_decay": 1e-4, "n_train": 80,
    }  # fmt: skip


def test_a_class_of_one_train_image_is_named(tmp_path: Path, data: Path) -> None:
    folder = make(tmp_path, data, train=19)
    with pytest.raises(DataError, match=r"task 't': class '\d' has one train image, an attention probe needs two; raise"):
        attention_task.load(folder)


def test_one_class_and_no_label_are_refused(data: Path) -> None:
    frame = read_samples(data / "digits" / "samples.parquet")
    with pytest.raises(DataError, match="column 'digit' has one class only"):
        task_rows("t", options(), frame.assign(digit="same"), None)
    with pytest.raises(DataError, match="no column 'letter'"):
        task_rows("t", options(label="letter"), frame, None)


def test_an_image_that_is_not_there_is_named(tmp_path: Path, data: Path) -> None:
    task = attention_task.load(make(tmp_path, data))
    frame = read_samples(data / "digits" / "samples.parquet")
    gone = task.ids["test"][3]
    with pytest.raises(DataError, match=f"asks for image '{gone}', which its dataset does not hold; run again"):
        attention_task.images(task, frame[frame["id"] != gone])


def test_a_damaged_task_is_refused(tmp_path: Path, data: Path) -> None:
    folder = make(tmp_path, data)
    (folder / "test.jsonl").write_text("{")
    with pytest.raises(FileError, match="run again"):
        attention_task.load(folder)


def test_samples_hold_the_images_of_both_splits(tmp_path: Path, data: Path) -> None:
    folder = make(tmp_path, data)
    frame = attention_task.samples(folder, read_samples(data / "digits" / "samples.parquet"), data / "digits")
    assert isinstance(frame, pd.DataFrame)
    assert frame["split"].value_counts().to_dict() == {"train": 80, "test": 40}
