"""The rows of a task: seeded, balanced, train and test apart, and what cannot be drawn."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import DataError
from layerwise.tasks.rows import task_rows

from tests.task_builders import TYPES, options


def samples(n: int = 240) -> pd.DataFrame:
    """Twelve groups of twenty; a group has one genre and both moods."""
    group = np.arange(n) // 20
    return pd.DataFrame(
        {
            "id": [f"s{i}" for i in range(n)],
            "text": [f"text number {i}" for i in range(n)],
            "label": [f"genre {g % 3}" for g in group],
            "mood": ["good" if i % 2 else "bad" for i in range(n)],
            "group": [f"book {g:02d}" for g in group],
        }
    )


PAIRS = pd.DataFrame(
    {"id_a": [f"s{i}" for i in range(60)], "id_b": [f"s{i + 60}" for i in range(60)], "score": np.arange(60) / 59}
)


def draw(
    kind: str, frame: pd.DataFrame | None = None, pairs: pd.DataFrame | None = PAIRS, **changes: Any
) -> dict[str, pd.DataFrame]:
    if "pairs_kind" in changes:  # 'pairs' of the config's entry, not the judged pairs of the dataset
        changes["pairs"] = changes.pop("pairs_kind")
    return task_rows("t", options(kind, **changes), samples() if frame is None else frame, pairs)


@pytest.mark.parametrize("kind", TYPES)
def test_rows_are_seeded(kind: str) -> None:
    small = {"test": 30} | ({"train": 30} if kind == "classification" else {})
    one, same, other = (draw(kind, seed=seed, **small) for seed in (0, 0, 1))
    for split, frame in one.items():
        pd.testing.assert_frame_equal(frame, same[split])
        assert not frame.equals(other[split])
        assert len(frame) == 30


def test_classification_is_balanced_and_splits_share_no_text() -> None:
    found = draw("classification", train=90, test=60)
    assert {split: len(frame) for split, frame in found.items()} == {"train": 90, "test": 60}
    for frame in found.values():
        assert frame["label"].value_counts().nunique() == 1
        assert (frame["label"].map(lambda code: f"genre {code}") == frame["label_name"]).all()
    assert not set(found["train"]["text"]) & set(found["test"]["text"])


def groups_of(frame: pd.DataFrame) -> set[str]:
    return set(samples().set_index("text")["group"].loc[frame["text"]])


def test_groups_are_in_train_or_in_test() -> None:
    found = draw("classification", group="group", train=90, test=60)
    assert not groups_of(found["train"]) & groups_of(found["test"])
    assert set(found["train"]["label_name"]) == set(found["test"]["label_name"]) == {"genre 0", "genre 1", "genre 2"}


@pytest.mark.parametrize("seed", range(6))
def test_groups_that_hold_every_label_leave_half_for_training(seed: int) -> None:
    """Drawing half of the groups for every label anew would put most of them, with many labels all, into test."""
    frame = samples().assign(label=[f"l{i % 5}" for i in range(240)])
    found = draw("classification", frame, group="group", train=100, test=100, seed=seed)
    assert len(groups_of(found["test"])) == len(groups_of(found["train"])) == 6
    assert not groups_of(found["train"]) & groups_of(found["test"])


def test_a_text_that_occurs_twice_is_drawn_once() -> None:
    frame = samples()
    frame["text"] = [f"text {i // 2}" for i in range(len(frame))]
    for kind, column in (("classification", "text"), ("clustering", "sentences")):
        drawn = pd.concat(draw(kind, frame, test=40).values())
        assert drawn[column].is_unique


def test_clustering_takes_as_many_classes_as_asked_for() -> None:
    found = draw("clustering", label="group", classes=4, test=60)["test"]
    assert found["labels"].value_counts().tolist() == [15] * 4
    assert found["labels"].map(type).eq(str).all()


def test_clustering_leaves_out_classes_that_are_too_small() -> None:
    frame = samples()
    frame.loc[0:4, "group"] = "tiny"
    for seed in range(10):
        assert "tiny" not in set(draw("clustering", frame, label="group", classes=4, test=60, seed=seed)["test"]["labels"])


def test_half_of_the_pairs_are_neighbours_and_half_are_not() -> None:
    found = draw("pair_classification", test=100)["test"]
    assert found["labels"].value_counts().to_dict() == {1: 50, 0: 50}
    number = {text: i for i, text in enumerate(samples()["text"])}
    group = samples().set_index("text")["group"]
    for first, second, label in found.itertuples(index=False):
        assert group[first] == group[second]
        distance = abs(number[second] - number[first])
        assert (number[second] - number[first] == 1) if label else distance > 1


def test_pairs_of_groups_too_small_to_have_others_are_left_out() -> None:
    frame = samples().assign(group=lambda f: np.where(f.index < 120, f["group"], "solo " + (f.index // 3).astype(str)))
    found = draw("pair_classification", frame, test=300)["test"]
    big = set(frame["text"][:120])
    assert len(found) == 6 * 19
    assert set(found["sentence1"]) | set(found["sentence2"]) <= big


def test_pairs_of_one_label_or_two_are_always_of_two_groups() -> None:
    found = draw("pair_classification", test=100, label="label", pairs_kind="same")["test"]
    assert found["labels"].value_counts().to_dict() == {1: 50, 0: 50}
    at = samples().set_index("text")
    for first, second, same in found.itertuples(index=False):
        assert at.loc[first, "group"] != at.loc[second, "group"]
        assert (at.loc[first, "label"] == at.loc[second, "label"]) == bool(same)
    unordered = {frozenset(pair) for pair in found[["sentence1", "sentence2"]].itertuples(index=False)}
    assert len(unordered) == 100


def test_a_pool_limits_how_many_texts_the_pairs_are_made_of() -> None:
    found = draw("pair_classification", test=100, label="label", pool=30, pairs_kind="same")["test"]
    texts = set(found["sentence1"]) | set(found["sentence2"])
    assert 20 < len(texts) <= 30
    assert len(found) == 100


def test_sts_rows_are_the_judged_pairs() -> None:
    found = draw("sts", test=1000)["test"]
    assert len(found) == 60
    assert found["score"].tolist() == PAIRS["score"].tolist()
    text = samples().set_index("id")["text"]
    assert found["sentence1"].tolist() == text.loc[PAIRS["id_a"]].tolist()
    assert found["sentence2"].tolist() == text.loc[PAIRS["id_b"]].tolist()


def changed(**columns: Any) -> pd.DataFrame:
    return samples().assign(**columns)


def gap(column: str, value: object) -> pd.DataFrame:
    frame = samples()
    frame[column] = frame[column].astype(object)
    frame.loc[7, column] = value
    return frame


LONE = samples().assign(label=["only" if i == 100 else f"l{i % 2}" for i in range(240)])
BAD = {
    "no label column": (
        ("classification", None, {"label": "topic"}),
        "no column 'topic' .from 'label'.; its columns: id, text",
    ),
    "no group column": (("classification", None, {"group": "author"}), "no column 'author' .from 'group'."),
    "no group of pairs": (("pair_classification", None, {"group": "author"}), "no column 'author' .from 'group'."),
    "no label to cluster": (("clustering", None, {"label": "topic"}), "no column 'topic' .from 'label'."),
    "one class": (("classification", changed(label="x"), {}), "column 'label' has one class only .'x'.; two are needed"),
    "one cluster": (("clustering", changed(label="x"), {}), "has fewer than two classes that are large enough"),
    "too many classes": (("clustering", None, {"classes": 2, "test": 500}), "has fewer than two classes that are large"),
    "a class with one member": (
        ("classification", LONE, {"test": 60}),
        "label 'only' is in the test rows but in no train row; lower 'test' or add samples of it",
    ),
    "all in test": (("classification", None, {"test": 240}), "is in the test rows but in no train row"),
    "a label of one group": (
        ("classification", changed(label=lambda f: f["group"]), {"group": "group"}),
        "is in the test rows but in no train row",
    ),
    "label missing": (("classification", gap("label", None), {}), "1 samples have no 'label', first 's7'; fill or remove"),
    "label nan": (("clustering", gap("label", np.nan), {}), "1 samples have no 'label', first 's7'"),
    "label blank": (("classification", gap("label", "  "), {}), "1 samples have no 'label', first 's7'"),
    "group missing": (("pair_classification", gap("group", None), {}), "1 samples have no 'group', first 's7'"),
    "too few rows": (
        ("classification", samples(9).assign(label=list("ababababa")), {"test": 4}),
        "only [45] (train|test) rows can",
    ),
    "too few pairs": (("sts", None, {"test": 5}), "only 5 test rows can be drawn, at least 10 are needed"),
    "no other label": (
        ("pair_classification", changed(label="x"), {"label": "label", "pairs_kind": "same"}),
        "only 1 test rows",
    ),
    "no neighbours": (
        ("pair_classification", changed(group=[str(i) for i in range(240)]), {}),
        "only 0 test rows can be drawn",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(case: str) -> None:
    (kind, frame, changes), sentence = BAD[case]
    with pytest.raises(DataError, match=f"^task 't': .*{sentence}") as caught:
        draw(kind, frame, **changes)
    assert "\n" not in str(caught.value)


def test_a_dataset_without_judged_pairs_is_refused() -> None:
    with pytest.raises(DataError, match="task 't': its dataset 'd' has no judged pairs; use one that has, like lee"):
        draw("sts", pairs=None)


def test_labels_may_be_numbers() -> None:
    frame = samples().assign(label=[i % 2 for i in range(240)])
    assert set(draw("classification", frame, test=100)["train"]["label_name"]) == {"0", "1"}
    assert set(draw("clustering", frame)["test"]["labels"]) == {"0", "1"}


def test_pairs_of_another_type_are_refused_beside_the_config_too() -> None:
    wrong = options("pair_classification") | {"pairs": "scored"}
    with pytest.raises(DataError, match="task 't': 'pairs: scored' is for sts"):
        task_rows("t", wrong, samples(), PAIRS)
