"""Tasks from the user's own files: their rows, their scores, and every sentence about what is wrong in them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.config_tasks import TaskEntry
from layerwise.errors import DataError
from layerwise.tasks.registry import load_kind, load_task_source

from tests.mteb_folders import vector
from tests.table_files import TABLES, candidates, entry, labelled, pairs, retrieval

SOURCES = {kind: "retrieval" if kind == "reranking" else "table" for kind in TABLES}


def written(tmp_path: Path, kind: str, frame: pd.DataFrame | None = None, ending: str = ".csv", **changes: Any) -> Any:
    """Write a table and prepare its task; return the kind's module, the files and the texts."""
    path = tmp_path / f"table{ending}"
    frame = TABLES[kind][0] if frame is None else frame
    if ending == ".parquet":
        frame.to_parquet(path, index=False)
    elif ending == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    return prepare(tmp_path, kind, entry(kind, path, **changes), SOURCES[kind])


def prepare(tmp_path: Path, kind: str, options: dict[str, Any], source: str) -> Any:
    facts = load_task_source(source).prepare(tmp_path / "task", "t", options, None)
    assert "sha256" in facts["origin"]
    module = load_kind(kind)
    frame = module.samples(tmp_path / "task", None, tmp_path)
    return module, module.load(tmp_path / "task"), frame


def score(module: Any, files: Any, frame: pd.DataFrame) -> Any:
    rows = {key: row for row, key in enumerate(frame["id"])}
    return module.score(files, rows, np.stack([vector(text) for text in frame["text"]]))


@pytest.mark.parametrize("kind", TABLES)
def test_every_type_has_a_score_items_and_baselines(kind: str, tmp_path: Path) -> None:
    module, files, frame = written(tmp_path, kind)
    found = score(module, files, frame)
    assert all(-1 <= value <= 1 for value in found.scores.values())
    assert len(found.items) == len(module.gold(files)) > 8
    assert module.item_kind(files)
    assert module.benchmark(files)["benchmark"]["local"]
    assert {"tfidf", "text_length"} <= {row["baseline"] for row in module.baselines(files, frame, tmp_path)}
    assert frame["id"].is_unique


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".parquet"])
def test_every_format_gives_the_same_task(ending: str, tmp_path: Path) -> None:
    (tmp_path / "csv").mkdir()
    _, first, _ = written(tmp_path / "csv", "reranking")
    _, second, _ = written(tmp_path, "reranking", ending=ending)
    assert first.spec["digest"] == second.spec["digest"]


def test_a_split_column_decides_and_without_one_rows_are_drawn(tmp_path: Path) -> None:
    _, files, _ = written(tmp_path, "classification")
    assert [len(files.dataset[split]) for split in ("train", "test")] == [20, 20]
    assert files.dataset["train"]["text"][0] == "a text 0"


def test_duplicates_have_one_vector_and_are_counted(tmp_path: Path) -> None:
    _, _, frame = written(tmp_path, "sts")
    assert frame["occurrences"].sum() == 40
    assert len(frame) == 27


def test_queries_that_say_nothing_are_left_out_and_counted(tmp_path: Path) -> None:
    module, files, frame = written(tmp_path, "reranking")
    assert files.facts["n_queries_left_out"] == 1
    assert len(module.gold(files)) == 9
    found = score(module, files, frame)
    assert found.scores["mteb"] == pytest.approx(np.mean(found.items), abs=1e-5)


def test_retrieval_ranks_a_corpus_whose_titles_belong_to_the_text(tmp_path: Path) -> None:
    module, files, frame = prepare(tmp_path, "retrieval", retrieval(tmp_path), "retrieval")
    assert "On it document 1" in set(frame["text"])
    assert files.facts["n_queries_left_out"] == 2  # one without judgements, one without a relevant document
    found = score(module, files, frame)
    assert found.scores["mteb"] == pytest.approx(np.mean(found.items), abs=1e-5)
    assert found.scores["mteb"] > 0.6
    assert {row["baseline"] for row in module.baselines(files, frame, tmp_path)} == {"tfidf", "text_length"}


def changed(frame: pd.DataFrame, **cells: Any) -> pd.DataFrame:
    """A copy with other values in row 3."""
    frame = frame.astype(object).copy()
    for column, value in cells.items():
        frame.loc[2, column] = value
    return frame


BAD = {
    "a column": ("sts", pairs(), {"score": "stars"}, "has no column 'stars'; its columns: a, b, score"),
    "a score": ("sts", changed(pairs(), score="high"), {}, "column 'score' of row 3 holds no finite number (found 'high')"),
    "equal scores": ("sts", pairs().assign(score=1), {}, "column 'score': all scores are equal, so no rank correlation"),
    "a label": ("pair_classification", changed(pairs(value="label"), label=2), {}, "row 3 holds neither 0 nor 1 (found 2)"),
    "one pair class": (
        "pair_classification",
        pairs(value="label").assign(label=1),
        {},
        "column 'label': one class only (1)",
    ),
    "no text": ("clustering", labelled().assign(body=1), {}, "column 'body' of row 1 holds no text (found 1)"),
    "no label": ("clustering", changed(labelled(), urgent=" "), {}, "column 'urgent' of row 3 holds no label"),
    "one cluster": ("clustering", labelled().assign(urgent=1), {}, "fewer than two classes"),
    "a split": (
        "classification",
        changed(labelled(split=True), part="dev"),
        {},
        "row 3 holds 'dev'; write 'train' or 'test'",
    ),
    "one class": ("classification", labelled(split=True).assign(urgent="x"), {}, "one class only ('x'); two are needed"),
    "a new label": (
        "classification",
        labelled(split=True).assign(urgent=[0, 1] * 19 + [0, 5]),
        {},
        "column 'urgent': label '5' of test row 40 is in no train row",
    ),
    "few rows": ("sts", pairs(9), {}, "has 9 test rows, at least 10 are needed"),
    "relevance": (
        "reranking",
        changed(candidates(), good=0.5),
        {},
        "column 'good' of row 3 holds no whole number from 0 on",
    ),
    "two judgements": (
        "reranking",
        changed(candidates(), answer="document 0 0", good=0),
        {},
        "column 'good' of row 3 says 0, an earlier row of the same query and document 1",
    ),
    "nothing relevant": ("reranking", candidates().assign(good=0), {}, "has a relevant document and one that is not"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_in_a_table_is_one_sentence(case: str, tmp_path: Path) -> None:
    kind, frame, changes, sentence = BAD[case]
    with pytest.raises(DataError) as caught:
        written(tmp_path, kind, frame, **changes)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_RETRIEVAL = {
    "an unknown document": (
        "qrels",
        {"query": ["q0"], "document": ["x"], "relevance": [1]},
        "of row 1 names 'x', which is not",
    ),
    "an unknown query": (
        "qrels",
        {"query": ["z"], "document": ["0"], "relevance": [1]},
        "column 'query' of row 1 names 'z'",
    ),
    "a level": (
        "qrels",
        {"query": ["q0"], "document": ["0"], "relevance": [-1]},
        "holds no whole number from 0 on (found -1)",
    ),
    "a repeated id": ("queries", {"id": ["q0", "q0"], "text": ["a", "b"]}, "column 'id' of row 2 repeats id 'q0'"),
    "no text": ("queries", {"id": ["q0"], "text": [5]}, "column 'text' of row 1 holds no text (found 5)"),
}


@pytest.mark.parametrize("case", BAD_RETRIEVAL)
def test_what_is_wrong_in_a_retrieval_file_is_one_sentence(case: str, tmp_path: Path) -> None:
    file, columns, sentence = BAD_RETRIEVAL[case]
    options = retrieval(tmp_path, **{file: pd.DataFrame(columns)})
    with pytest.raises(DataError) as caught:
        prepare(tmp_path, "retrieval", options, "retrieval")
    assert sentence in str(caught.value)


def test_rows_are_drawn_where_no_column_splits_them_and_groups_stay_apart(tmp_path: Path) -> None:
    frame = labelled(80).assign(team=[f"g{i // 2 % 8}" for i in range(80)])
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    options = TaskEntry(
        name="t",
        type="classification",
        table={"path": str(path), "text": "body", "label": "urgent"},
        group="team",
        train=30,
        test=20,
    ).model_dump(exclude={"name"})
    _, files, _ = prepare(tmp_path, "classification", options, "table")
    teams = [{frame["team"][int(text.split()[-1])] for text in files.dataset[split]["text"]} for split in ("train", "test")]
    assert len(files.dataset["train"]) == 30
    assert not teams[0] & teams[1]
