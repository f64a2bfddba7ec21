"""What the config says of tasks with their own tables and of tasks of mteb."""

import os
from pathlib import Path
from typing import Any

import pytest
from layerwise.config import load_study
from layerwise.config_tasks import TaskEntry
from layerwise.errors import ConfigError
from layerwise.plan import dataset_plans, looked_up

PAIRS = {"path": "pairs.csv", "first": "a", "second": "b"}


def study(**task: Any) -> dict[str, Any]:
    models = [{"name": "m", "source": {"path": "m"}}]
    return {"models": models, "datasets": [], "tasks": [{"name": "t"} | task]}


def test_a_task_needs_no_dataset() -> None:
    config = load_study(study(type="mteb", task="STS12", revision="abc", subset="en"))
    plans = dataset_plans(config)
    assert list(plans) == ["t"]
    assert plans["t"].modality == "text"
    assert looked_up(config.tasks[0]) == "t"
    assert config.tasks[0].source == "mteb"
    assert config.keep_task_activations


def test_the_rows_of_a_dataset_are_drawn_and_those_of_a_table_all_taken() -> None:
    assert TaskEntry(name="t", type="sts", dataset="d", pairs="scored").test == 300
    assert TaskEntry(name="t", type="sts", table=PAIRS).test is None
    assert TaskEntry(name="t", type="sts", table=PAIRS | {"score": "s"}).table.columns("sts")["score"] == "s"


BAD = {
    "both": ({"type": "sts", "table": PAIRS, "dataset": "d"}, "takes 'dataset' or 'table', not both"),
    "a foreign column": (
        {"type": "sts", "table": PAIRS | {"query": "q"}},
        "has no 'query'; its columns: first, second, score",
    ),
    "a typo": ({"type": "sts", "table": PAIRS | {"scores": "q"}}, "scores is an unknown key; did you mean 'score'?"),
    "no path": ({"type": "sts", "table": {"first": "a"}}, "table: path is missing"),
    "no split": (
        {"type": "classification", "table": {"path": "x.csv"}},
        "a classification task whose table has no 'split' column needs 'train' and 'test'",
    ),
    "two splits": (
        {"type": "classification", "table": {"path": "x.csv", "split": "part"}, "test": 5},
        "whose table has a 'split' column takes no 'test'",
    ),
    "reranking of a dataset": ({"type": "reranking", "dataset": "d"}, "a reranking task needs 'table'"),
    "no queries": ({"type": "retrieval", "corpus": {"path": "c"}}, "a retrieval task needs 'queries' and 'qrels'"),
    "mteb of a dataset": ({"type": "mteb", "dataset": "d"}, "an mteb task takes no 'dataset'; leave it out"),
    "mteb's sizes": ({"type": "mteb", "n_experiments": 2}, "an mteb task takes no 'n_experiments'; leave it out"),
    "a path of no task": ({"type": "sts", "table": PAIRS, "path": "x"}, "a sts task takes no 'path'; leave it out"),
    "images": (
        {"type": "image_classification", "label": "l", "train": 5, "table": {"path": "x"}},
        "takes 'dataset', no 'table'",
    ),
    "a subset": ({"type": "mteb", "subset": "a", "subsets": ["b"]}, "'subset' is 'a', which is not among 'subsets'"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_entry_is_one_sentence(case: str) -> None:
    task, sentence = BAD[case]
    with pytest.raises(ConfigError) as caught:
        load_study(study(**task))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_changed_file_or_folder_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    entry = TaskEntry(name="t", type="sts", table=PAIRS | {"path": str(file)})
    assert entry.file_digests == {"table": "absent"}
    file.write_text("a,b,score\n")
    before = entry.file_digests
    file.write_text("a,b,score\nx,y,1\n")
    assert entry.file_digests != before
    folder = TaskEntry(name="t", type="mteb", path=str(tmp_path))
    before = folder.file_digests
    os.utime(file, (1, 1))
    assert folder.file_digests != before
    assert TaskEntry(name="t", type="mteb", path="nowhere").file_digests == {"path": "absent"}
