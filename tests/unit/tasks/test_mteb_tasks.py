"""Tasks of mteb: every layer by lookup scores what mteb.evaluate gives on an encoder that computes the same vectors."""

from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
from layerwise.errors import DataError
from layerwise.tasks import mteb_source, mteb_task
from layerwise.tasks.encoder import text_key
from mteb import mocks

from tests.mteb_folders import (
    REAL,
    Encoder,
    classification,
    legacy_clustering,
    lines,
    prepared,
    reranking,
    scored,
    sts,
    vector,
)

MOCKS = {
    "MockMultilingualClassificationTask": "correct",
    "LegacyMockClusteringFastTask": "cluster",
    "MockMultilingualClusteringTask": None,
    "MockMultilingualPairClassificationTask": "similarity",
    "MockMultilingualRerankingTask": "query",
    "MockMultilingualRetrievalTask": "query",
    "MockRetrievalDialogTask": "query",
    "MockInstructionReranking": "query",
    "MockMultilingualSTSTask": "similarity",
    "MockSummarizationTask": None,
    "MockBitextMiningTask": None,
}


@pytest.fixture
def mock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look tasks up among mteb's mocks."""
    monkeypatch.setattr(mteb_source, "registered", lambda name: getattr(mocks, name)())


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No network, and a cache of its own."""
    import datasets.config
    from huggingface_hub import constants

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def evaluated(task: Any) -> dict[str, float]:
    """The main score of every subset as mteb computes it, encoding."""
    quiet = {"batch_size": 7, "show_progress_bar": False}
    result = mteb.evaluate(Encoder(), task, cache=None, encode_kwargs=quiet, show_progress_bar=False).task_results[0]
    return {entry["hf_subset"]: entry["main_score"] for entry in result.scores["test"]}


def check(found: Any, expected: dict[str, float]) -> None:
    main = {subset: result["main_score"] for subset, result in found.results.items()}
    assert main.keys() == expected.keys()
    for subset, value in expected.items():
        assert main[subset] is None if np.isnan(value) else main[subset] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("name", MOCKS)
def test_a_mock_of_every_type_scores_as_mteb_scores_it(name: str, mock: None, tmp_path: Path) -> None:
    files, frame = prepared(tmp_path, name)
    found = scored(files, frame)
    check(found, evaluated(getattr(mocks, name)()))
    assert mteb_task.item_kind(files) == MOCKS[name]
    assert len(found.items) == (0 if MOCKS[name] is None else len(mteb_task.gold(files)))
    assert mteb_task.benchmark(files)["prompt"] is None
    assert bool(mteb_task.benchmark(files)["items_absent"]) == (MOCKS[name] is None)
    assert scored(files, frame) == found  # a fresh task object every time


@pytest.mark.parametrize(
    "name", ["MockMultilabelClassification", "MockMultilingualParallelBitextMiningTask", "MockRegressionTask"]
)
def test_a_type_that_needs_more_than_vectors_is_refused(name: str, mock: None, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be scored from stored vectors of texts; its types BitextMining, .* can\."):
        prepared(tmp_path, name)


@pytest.mark.parametrize("name", REAL)
def test_a_real_class_on_a_copy_of_its_dataset_scores_as_mteb_scores_it(name: str, tmp_path: Path) -> None:
    source = REAL[name](tmp_path / "source")
    files, frame = prepared(tmp_path / "made", name, path=str(source))
    task = mteb.get_task(name)
    task.metadata = task.metadata.model_copy(update={"dataset": {"path": str(source), "revision": "local"}})
    found = scored(files, frame)
    check(found, evaluated(task))
    if mteb_task.item_kind(files) == "query":
        assert np.mean(found.items) == pytest.approx(found.scores["mteb"], abs=1e-5)
    baselines = {entry["baseline"] for entry in mteb_task.baselines(files, frame, tmp_path)}
    assert baselines == {"text_length", "tfidf"} | ({"majority"} if files.type != "reranking" else set())


def test_titles_are_part_of_a_document_and_a_repeated_text_has_one_vector(tmp_path: Path) -> None:
    _, frame = prepared(tmp_path / "r", "AskUbuntuDupQuestions", path=str(reranking(tmp_path / "reranking")))
    assert frame["text"].str.startswith("about ").sum() == 24
    _, frame = prepared(tmp_path / "s", "STS12", path=str(sts(tmp_path / "sts")))
    assert len(frame) == 59
    assert frame["occurrences"].sum() == 60


def test_what_is_recorded_of_a_task(tmp_path: Path) -> None:
    path = str(classification(tmp_path / "source"))
    files, _ = prepared(tmp_path, "mine", task="Banking77Classification", path=path, revision="abc", train=30)
    facts = mteb_task.benchmark(files)["benchmark"]
    assert (facts["task"], facts["revision"], facts["dataset"]) == ("Banking77Classification", "abc", path)
    assert facts["task_prompt"] == "Given a online banking query, find the corresponding intents"
    assert facts["superseded_by"] == "Banking77Classification.v2"
    assert len(files.spec["probe"]) == 30
    kept = sorted(file.name for file in (tmp_path / "task").iterdir())
    assert kept == ["000-test.jsonl", "000-train.jsonl", "spec.json"]


def test_a_text_without_a_vector_is_named_by_its_hash(tmp_path: Path) -> None:
    files, frame = prepared(tmp_path, "TwentyNewsgroupsClustering", path=str(legacy_clustering(tmp_path / "source")))
    first = text_key(frame["text"].iloc[0])
    with pytest.raises(DataError, match=f"asks for a text .hash {first}. that its activation file does not hold"):
        scored(files, frame.iloc[1:])


def test_one_class_is_refused_and_a_label_in_no_train_row_is_recorded(tmp_path: Path) -> None:
    rows = [{"text": f"text {i}", "label": i % 2} for i in range(20)]
    lines(tmp_path / "one" / "train.jsonl", rows)
    lines(tmp_path / "one" / "test.jsonl", [row | {"label": 1} for row in rows])
    with pytest.raises(DataError, match="subset 'default' has one class only; two are needed"):
        prepared(tmp_path / "a", "Banking77Classification", path=str(tmp_path / "one"))
    lines(tmp_path / "two" / "train.jsonl", rows)
    lines(tmp_path / "two" / "test.jsonl", [*rows, {"text": "new", "label": 7}])
    files, frame = prepared(tmp_path / "b", "Banking77Classification", path=str(tmp_path / "two"))
    assert files.spec["labels_in_no_train_row"] == ["7"]
    assert scored(files, frame).items[-1] == 0.0


def test_vectors_that_order_nothing_score_0(tmp_path: Path) -> None:
    files, frame = prepared(tmp_path, "STS12", path=str(sts(tmp_path / "source")))
    found = scored(files, frame, lambda _text: np.ones(4))
    assert found.scores == {"mteb": 0.0}
    assert found.results["default"]["main_score"] is None  # undefined, as mteb has it


BAD = {
    "a task that mteb lacks": ("STS21", {}, "mteb has no task 'STS21'; did you mean 'STS17'?"),
    "a subset": ("STS17", {"subset": "en-dee"}, "mteb's STS17 has no subset 'en-dee'; did you mean 'en-de'?"),
    "no folder": ("STS12", {"path": "nowhere"}, "'path' 'nowhere' is no folder; write one with a copy of the dataset."),
    "no network": (
        "STS12",
        {},
        "task 'STS12': dataset mteb/sts12-sts at a0d554a64d88156834ff5ae9920b964011b16384 of mteb's STS12 cannot be loaded "
        "(ConnectionError); run again with a network, or write 'path: FOLDER' with a copy of that repository.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_loaded_is_one_sentence(case: str, tmp_path: Path) -> None:
    name, changes, sentence = BAD[case]
    with pytest.raises(DataError) as caught:
        prepared(tmp_path, name, **changes)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_of_another_dataset_is_refused(tmp_path: Path) -> None:
    lines(tmp_path / "source" / "train.jsonl", [{"text": "a"}])
    with pytest.raises(DataError, match="has no split 'test' of subset 'default'"):
        prepared(tmp_path / "made", "STS12", path=str(tmp_path / "source"))


@pytest.mark.parametrize(
    ("name", "changes", "subsets"),
    [
        ("STS17", {}, ["en-de", "en-ar", "en-en", "en-tr", "es-en", "fr-en", "it-en", "nl-en"]),
        ("STS17", {"subset": "en-en", "subsets": ["en-de", "en-en"]}, ["en-en", "en-de"]),
        ("AmazonCounterfactualClassification", {}, ["en-ext", "en"]),
        ("MassiveIntentClassification", {}, ["en"]),
        ("STS22", {"subsets": ["de", "en"]}, ["de", "en"]),
    ],
)
def test_which_subsets_are_evaluated(name: str, changes: dict[str, Any], subsets: list[str]) -> None:
    entry = {"subset": None, "subsets": None} | changes
    found = mteb_source.chosen_subsets("t", entry, mteb_source.registered(name))
    assert found[0] == subsets[0]
    assert sorted(found) == sorted(subsets)


def test_vectors_depend_on_words() -> None:
    assert not np.allclose(vector("a b"), vector("a c"))
