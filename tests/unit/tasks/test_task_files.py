"""Tasks on disk: rows that survive, texts that are all recorded, and a fresh mteb object for every evaluation."""

import json
from pathlib import Path

import numpy as np
import pytest
from layerwise.errors import DataError, FileError
from layerwise.tasks.benchmark import TaskFiles
from layerwise.tasks.encoder import Recorder, Stored, text_key
from layerwise.tasks.files import write_task
from layerwise.tasks.recording import recorded_texts

from tests.task_builders import TYPES, encoder, options, rows, texts_of

ODD = [
    "line\u2028separator",
    "para\u2029graph",
    "new\nline\r\n",
    "next\x85line",
    "\x0b\x0c\x1c\x1e",
    '"quo\\tes"',
    "👩‍👩‍👧‍👦",
    "\x00nul",
    "\ufeffbom",
]


def noise(text: str) -> np.ndarray:
    return np.random.default_rng(int(text_key(text)[:8], 16)).standard_normal(5)


def test_texts_with_line_breaks_of_every_kind_survive(tmp_path: Path) -> None:
    made = rows("classification")
    made["test"].loc[: len(ODD) - 1, "text"] = ODD
    write_task(tmp_path, "t", options("classification"), made)
    files = TaskFiles(tmp_path)
    assert list(files.dataset["test"]["text"]) == made["test"]["text"].tolist()
    recorded = recorded_texts(tmp_path)
    assert set(ODD) <= set(recorded["text"])


@pytest.mark.parametrize("kind", TYPES)
def test_the_texts_recorded_are_the_texts_asked_for(make, tmp_path: Path, kind: str) -> None:
    files = make(kind)
    recorded = recorded_texts(next(tmp_path.iterdir()))
    assert sorted(recorded["text"]) == sorted(texts_of(files))
    assert recorded["id"].tolist() == [text_key(text) for text in recorded["text"]]
    assert recorded["id"].is_unique
    asked = []

    class Watching(Stored):
        def find(self, texts):
            texts = list(texts)
            asked.extend(texts)
            return super().find(texts)

    watching = Watching(
        files.name, {key: i for i, key in enumerate(recorded["id"])}, np.stack([noise(t) for t in recorded["text"]])
    )
    files.fresh().evaluate(watching, "test", encode_kwargs={"batch_size": 7})
    assert asked
    assert set(asked) <= set(recorded["text"])


def test_a_text_of_both_splits_is_a_test_text(tmp_path: Path) -> None:
    made = rows("classification")
    made["train"].loc[0, "text"] = made["test"].loc[3, "text"]
    write_task(tmp_path, "t", options("classification"), made)
    recorded = recorded_texts(tmp_path).set_index("text")["split"]
    assert recorded["test text 3"] == "test"
    assert recorded.value_counts().to_dict() == {"test": 60, "train": 59}


@pytest.mark.parametrize("kind", TYPES)
def test_a_fresh_object_gives_the_same_score_every_time(make, kind: str) -> None:
    files = make(kind)
    stored = encoder(files, noise)
    first, second = files.fresh(), files.fresh()
    assert first is not second
    scores = [
        task.evaluate(stored, "test", encode_kwargs={"batch_size": 64})["default"]["main_score"] for task in (first, second)
    ]
    assert scores[0] == scores[1]
    assert first.metadata.main_score == files.main_score


def test_the_seed_and_the_amounts_of_the_config_reach_mteb(make) -> None:
    task = make("classification", n_experiments=2, samples_per_label=5, seed=9).fresh()
    assert (task.n_experiments, task.samples_per_label, task.seed) == (2, 5, 9)
    task = make("clustering", n_experiments=2).fresh()
    assert (task.n_clusters, task.max_documents_per_cluster, task.max_fraction_of_documents_to_embed) == (2, 60, None)


@pytest.mark.parametrize("name", ["a", "9", "x@step1000", "a.b_c-d", "---", "Banking77"])
def test_every_name_of_the_config_is_a_name_for_mteb(tmp_path: Path, name: str) -> None:
    write_task(tmp_path, name, options("sts"), rows("sts"))
    assert TaskFiles(tmp_path).fresh().metadata.name


def test_the_digest_follows_the_rows(tmp_path: Path) -> None:
    digests = set()
    for i, made in enumerate((rows("sts"), rows("sts"), rows("sts", 59))):
        write_task(tmp_path / str(i), "t", options("sts"), made)
        digests.add(json.loads((tmp_path / str(i) / "spec.json").read_text())["digest"])
    assert len(digests) == 2


@pytest.mark.parametrize("damage", ["no spec", "half spec", "no rows", "half row", "no split", "html"])
def test_a_damaged_task_is_refused(tmp_path: Path, damage: str) -> None:
    write_task(tmp_path, "t", options("classification"), rows("classification"))
    spec, lines = tmp_path / "spec.json", tmp_path / "test.jsonl"
    if damage == "no spec":
        spec.unlink()
    elif damage == "half spec":
        spec.write_text(spec.read_text()[:50])
    elif damage == "no rows":
        lines.unlink()
    elif damage == "half row":
        lines.write_text(lines.read_text()[:-10])
    elif damage == "no split":
        spec.write_text(spec.read_text().replace('"splits"', '"parts"'))
    else:
        lines.write_text("<!DOCTYPE html>\n")
    with pytest.raises(FileError, match="run again"):
        TaskFiles(tmp_path)


def test_an_unknown_text_is_an_error_with_its_hash_and_task(make) -> None:
    files = make("sts")
    stored = encoder(files, noise)
    with pytest.raises(DataError, match=rf"task '{files.name}' asks for a text \(hash {text_key('new')}\) .* results/data/"):
        stored.find(["first 0", "new"])
    del stored.rows[text_key("second 5")]
    with pytest.raises(DataError, match=text_key("second 5")):
        files.fresh().evaluate(stored, "test", encode_kwargs={"batch_size": 64})


def test_vectors_come_back_in_the_order_of_the_texts() -> None:
    vectors = np.arange(6.0).reshape(3, 2)
    stored = Stored("t", {text_key(text): 2 - i for i, text in enumerate("abc")}, vectors)
    np.testing.assert_array_equal(stored.encode([{"text": ["b", "a"]}, {"text": ["b", "c"]}]), vectors[[1, 2, 1, 0]])


def test_a_key_is_of_the_text_alone() -> None:
    assert text_key("a") == text_key("a") != text_key("a ")
    assert len({text_key(text) for text in [*ODD, "\ud800", ""]}) == len(ODD) + 2
    assert text_key("abc") == "ba7816bf8f01cfea414140de5dae2223"


def test_the_recorder_answers_by_text_and_keeps_the_first_order() -> None:
    recorder = Recorder()
    one = recorder.encode([{"text": ["b", "a"]}], hf_split="train")
    two = recorder.encode([{"text": ["a", "c"]}], hf_split="test")
    np.testing.assert_array_equal(one[1], two[0])
    assert recorder.splits == {"b": "train", "a": "test", "c": "test"}
