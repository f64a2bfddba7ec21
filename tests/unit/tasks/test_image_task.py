"""Image tasks: rows are ids, right answers are found, and what is missing is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.config import TaskEntry
from layerwise.data.prepare import from_dataset, from_source
from layerwise.errors import DataError, FileError
from layerwise.samples import read_samples
from layerwise.tasks import image_task
from layerwise.tasks.files import write_task
from layerwise.tasks.rows import task_rows
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    from_source(folder / "glyphs", "glyphs", "glyphs", {"n": 100, "seed": 0, "size": 16}, None)
    from_dataset(folder / "few", "few", folder / "glyphs", {"n": 90, "seed": 0, "balance": None})
    return folder


def make(data: Path, name: str = "letter", label: str = "letter", dataset: str = "glyphs", **changes: Any) -> Path:
    entry = TaskEntry(
        name=name,
        type="image_classification",
        dataset=dataset,
        label=label,
        **{"train": 50, "test": 40} | changes,
    )
    options = entry.model_dump(exclude={"name"})
    rows = task_rows(name, options, read_samples(data / dataset / "samples.parquet"), None)
    write_task(data / name / "task", name, options, rows)
    return data / name / "task"


def vectors(task: image_task.ImageTask, noise: float = 0.0) -> tuple[dict[str, int], np.ndarray]:
    """One direction a class, and rows in another order than the task's."""
    rng = np.random.default_rng(0)
    ids = [i for split in ("test", "train") for i in task.ids[split]]
    labels = np.concatenate([task.labels["test"], task.labels["train"]])
    order = rng.permutation(len(ids))
    points = (
        3 * np.eye(12)[labels] + 0.01 * rng.standard_normal((len(ids), 12)) + noise * rng.standard_normal((len(ids), 12))
    )
    return {ids[k]: row for row, k in enumerate(order)}, points[order]


def test_rows_are_ids_and_labels(data: Path) -> None:
    task = image_task.load(make(data))
    frame = read_samples(data / "glyphs" / "samples.parquet").set_index("id")
    assert [len(task.ids[split]) for split in ("train", "test")] == [50, 40]
    assert not set(task.ids["train"]) & set(task.ids["test"])
    letters = sorted(frame["letter"].unique())
    for split, ids in task.ids.items():
        assert [letters[label] for label in task.labels[split]] == frame.loc[ids, "letter"].tolist()
    assert np.bincount(task.labels["test"]).tolist() == [4] * 10


@pytest.mark.parametrize("folds", [None, 5])
def test_separable_vectors_get_everything_right(data: Path, folds: int | None) -> None:
    task = image_task.load(make(data, folds=folds))
    found = image_task.score(task, *vectors(task))
    assert found.scores == {"knn": 1.0, "standardised": 1.0}
    assert len(found.items) == len(image_task.gold(task)) == (90 if folds else 40)
    assert set(found.items) == {1.0}


def test_vectors_without_the_label_are_near_chance(data: Path) -> None:
    task = image_task.load(make(data))
    rows, points = vectors(task)
    found = image_task.score(task, rows, np.random.default_rng(1).standard_normal(points.shape))
    assert max(found.scores.values()) < 0.35


def test_scores_are_those_of_scikit_learn(data: Path) -> None:
    task = image_task.load(make(data))
    rows, points = vectors(task, noise=1.5)
    found = image_task.score(task, rows, points)
    train, test = (points[[rows[i] for i in task.ids[split]]] for split in ("train", "test"))
    similarity = normalize(test) @ normalize(train).T
    right = 0
    for row, label in zip(similarity, task.labels["test"], strict=True):
        nearest = np.argsort(-row)[:10]
        votes = np.zeros(10)
        for k in nearest:
            votes[task.labels["train"][k]] += 1 / np.sqrt(max(2 - 2 * row[k], 1e-12))
        right += int(votes.argmax() == label)
    assert found.scores["knn"] == pytest.approx(right / 40)
    assert found.scores["standardised"] == np.mean(found.items)
    scaled = (train - train.mean(0)) / train.std(0), (test - train.mean(0)) / train.std(0)
    candidates = {
        float(
            np.mean(
                LogisticRegression(C=c, max_iter=500).fit(scaled[0], task.labels["train"]).predict(scaled[1])
                == task.labels["test"]
            )
        )
        for c in (1e-3, 1e-2, 1e-1)
    }
    assert found.scores["standardised"] in candidates


def test_items_are_in_the_order_of_their_labels(data: Path) -> None:
    task = image_task.load(make(data, folds=4))
    rows, points = vectors(task)
    wrong = task.ids["test"][3]
    points[rows[wrong]] = points[
        rows[next(i for i, y in zip(task.ids["train"], task.labels["train"], strict=True) if y != task.labels["test"][3])]
    ]
    found = image_task.score(task, rows, points)
    assert [k for k, item in enumerate(found.items) if item == 0] == [50 + 3]


def test_a_missing_vector_is_named(data: Path) -> None:
    task = image_task.load(make(data))
    rows, points = vectors(task)
    absent = task.ids["test"][7]
    del rows[absent]
    with pytest.raises(DataError, match=f"task 'letter' asks for image '{absent}', which its activation file does not hold"):
        image_task.score(task, rows, points)


@pytest.mark.parametrize("dataset", ["glyphs", "few"])
def test_the_samples_of_a_task_are_there(data: Path, dataset: str) -> None:
    name = f"quadrant-{dataset}"
    folder = make(data, name, "quadrant", dataset)
    task = image_task.load(folder)
    frame = image_task.samples(folder, read_samples(data / dataset / "samples.parquet"), data / dataset)
    assert set(frame["id"]) == {i for ids in task.ids.values() for i in ids}
    assert frame.groupby("split")["id"].agg(set).to_dict() == {split: set(ids) for split, ids in task.ids.items()}
    assert all((data / name / image).is_file() for image in frame["image"])


def test_baselines_are_majority_and_raw_pixels(data: Path) -> None:
    folder = make(data, "quadrant", "quadrant")
    task = image_task.load(folder)
    frame = image_task.samples(folder, read_samples(data / "glyphs" / "samples.parquet"), data / "glyphs")
    found = pd.DataFrame(image_task.baselines(task, frame, folder.parent))
    assert sorted(map(tuple, found[["baseline", "protocol"]].to_numpy())) == [
        (baseline, protocol) for baseline in ("majority", "raw_pixels") for protocol in ("knn", "standardised")
    ]
    assert found["score"].between(0, 1).all()
    labels = task.labels
    counts = np.bincount(labels["train"])
    majority = found[found["baseline"] == "majority"]["score"]
    assert set(majority) == {float(np.mean(labels["test"] == counts.argmax()))}


def test_two_images_of_the_same_pixels_are_never_in_both_splits(data: Path) -> None:
    frame = read_samples(data / "glyphs" / "samples.parquet")
    frame.loc[50:, "sha256"] = frame["sha256"][:50].to_numpy()
    options = TaskEntry(name="t", type="image_classification", dataset="d", label="letter", train=25, test=20).model_dump(
        exclude={"name"}
    )
    rows = task_rows("t", options, frame, None)
    contents = frame.set_index("id")["sha256"]
    assert not set(contents[rows["train"]["id"]]) & set(contents[rows["test"]["id"]])


@pytest.mark.parametrize("damage", ["no rows", "half row", "no label", "no spec"])
def test_a_damaged_task_is_refused(data: Path, tmp_path: Path, damage: str) -> None:
    folder = make(data, f"damaged-{damage[:2]}-{damage[3:]}".replace(" ", ""))
    lines = folder / "test.jsonl"
    if damage == "no rows":
        lines.unlink()
    elif damage == "half row":
        lines.write_text(lines.read_text()[:-10])
    elif damage == "no label":
        lines.write_text(lines.read_text().replace('"label"', '"l"'))
    else:
        (folder / "spec.json").unlink()
    with pytest.raises(FileError, match="run again"):
        image_task.load(folder)
