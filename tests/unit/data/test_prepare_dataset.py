"""A dataset on disk: sampled, derived from another, described; and what stops it."""

import json
from pathlib import Path

import pandas as pd
import pytest
from layerwise.data.prepare import derived, from_dataset, from_source, write_dataset
from layerwise.errors import DataError, FileError
from layerwise.samples import digest, new_samples, read_samples

OPTIONS = {"transform": "surface_noise", "views": 3, "columns": [], "sample": None, "seed": 0}


@pytest.fixture
def table(tmp_path: Path) -> dict[str, str]:
    rows = pd.DataFrame({"id": [f"r{i}" for i in range(40)], "label": ["a"] * 30 + ["b"] * 10})
    rows["text"] = [f"sentence number {i} about something" for i in range(40)]
    rows["other"] = rows["text"].str.upper()
    rows.to_csv(tmp_path / "table.csv", index=False)
    return {"path": str(tmp_path / "table.csv"), "text": "text", "id": "id"}


@pytest.fixture
def parent(tmp_path: Path, table: dict[str, str]) -> Path:
    from_source(tmp_path / "parent", "parent", "table", table, None)
    return tmp_path / "parent"


def facts(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text("utf-8"))


def test_a_source_is_written_with_its_facts(parent: Path, table: dict[str, str]) -> None:
    frame, record = read_samples(parent / "samples.parquet"), facts(parent)
    assert len(frame) == record["n_samples"] == record["n_rows"] == 40
    assert record["columns"] == list(frame.columns) == ["id", "source_id", "view", "split", "text", "label", "other"]
    assert record["digest"] == digest(frame)
    assert record["source"] == {"kind": "table", **table}
    assert record["origin"].startswith("table.csv sha256 ")
    assert pd.read_parquet(parent / "pairs.parquet").empty


def test_a_sample_is_balanced_and_of_the_sources_rows(tmp_path: Path, table: dict[str, str]) -> None:
    sample = {"n": 12, "balance": "label", "seed": 3}
    for name in ("one", "two"):
        from_source(tmp_path / name, name, "table", table, sample)
    one = read_samples(tmp_path / "one" / "samples.parquet")
    assert one["label"].value_counts().to_dict() == {"a": 6, "b": 6}
    assert facts(tmp_path / "one")["sample"] == sample
    assert facts(tmp_path / "one")["digest"] == facts(tmp_path / "two")["digest"]
    with pytest.raises(DataError, match="dataset 'three': there is no column 'genre' to balance over; columns: id, label"):
        from_source(tmp_path / "three", "three", "table", table, sample | {"balance": "genre"})
    assert not (tmp_path / "three").exists()


def test_a_sample_of_a_dataset_keeps_only_pairs_of_its_own(tmp_path: Path) -> None:
    from_source(tmp_path / "lee", "lee", "lee", {"package": "gensim"}, None)
    from_dataset(tmp_path / "ten", "ten", tmp_path / "lee", {"n": 10, "balance": None, "seed": 0})
    frame, pairs = read_samples(tmp_path / "ten" / "samples.parquet"), pd.read_parquet(tmp_path / "ten" / "pairs.parquet")
    assert len(frame) == 10
    assert len(pairs) == 45
    assert set(pairs["id_a"]) | set(pairs["id_b"]) == set(frame["id"])
    whole = pd.read_parquet(tmp_path / "lee" / "pairs.parquet").set_index(["id_a", "id_b"])["score"]
    assert all(whole[a, b] == score for a, b, score in pairs.itertuples(index=False))
    assert facts(tmp_path / "ten")["source"] == {"dataset": "lee"}
    assert facts(tmp_path / "ten")["origin"] == facts(tmp_path / "lee")["origin"]


def test_views_stand_side_by_side_and_know_their_sample(tmp_path: Path, parent: Path) -> None:
    derived(tmp_path / "views", "parent~views", parent, OPTIONS)
    frame, record = read_samples(tmp_path / "views" / "samples.parquet"), facts(tmp_path / "views")
    assert frame["view"].tolist() == [0, 1, 2] * 40
    assert frame["source_id"].tolist() == [f"r{i}" for i in range(40) for _ in range(3)]
    assert frame["id"].tolist()[:3] == ["r0~0", "r0~1", "r0~2"]
    assert (record["n_samples"], record["n_rows"]) == (40, 120)
    assert frame.groupby("source_id")["text"].nunique().min() == 3
    assert "label" not in frame
    derived(tmp_path / "again", "parent~views", parent, OPTIONS | {"seed": 1})
    assert facts(tmp_path / "again")["digest"] != record["digest"]


def test_views_of_a_sample_are_drawn_with_the_seed(tmp_path: Path, parent: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        derived(tmp_path / name, name, parent, OPTIONS | {"sample": 5, "seed": seed})
    chosen = [read_samples(tmp_path / name / "samples.parquet")["source_id"].unique().tolist() for name in "abc"]
    assert len(chosen[0]) == 5
    assert chosen[0] == chosen[1] != chosen[2]


def test_views_of_views_are_taken_of_first_views(tmp_path: Path, parent: Path) -> None:
    derived(tmp_path / "views", "views", parent, OPTIONS)
    derived(tmp_path / "more", "more", tmp_path / "views", OPTIONS | {"views": 2})
    frame = read_samples(tmp_path / "more" / "samples.parquet")
    assert len(frame) == 80
    assert set(frame["source_id"]) == {f"r{i}~0" for i in range(40)}


def test_a_parent_without_first_views_is_refused(tmp_path: Path) -> None:
    rows = new_samples(pd.DataFrame({"id": ["a", "b"], "text": ["x", "y"], "view": [1, 1]}))
    write_dataset(tmp_path / "odd", "odd", rows, {"origin": "o", "licence": "l"})
    with pytest.raises(DataError, match="dataset 'v': the dataset it is derived from has no rows with view 0"):
        derived(tmp_path / "v", "v", tmp_path / "odd", OPTIONS)


def test_columns_are_views(tmp_path: Path, parent: Path) -> None:
    options = OPTIONS | {"transform": "columns", "columns": ["text", "other"], "views": 2}
    derived(tmp_path / "pair", "pair", parent, options)
    frame = read_samples(tmp_path / "pair" / "samples.parquet")
    assert frame["text"].tolist()[:2] == ["sentence number 0 about something", "SENTENCE NUMBER 0 ABOUT SOMETHING"]
    for bad in ({"columns": ["text"]}, {"columns": ["text", "nothing"]}, {"columns": []}):
        with pytest.raises(DataError, match="dataset 'p': 'transform: columns' needs one existing column per view; view "):
            derived(tmp_path / "p", "p", parent, options | bad)
    assert not (tmp_path / "p").exists()


def test_a_view_without_a_text_is_refused_and_not_called_nan(tmp_path: Path) -> None:
    rows = new_samples(pd.DataFrame({"id": ["a", "b"], "text": ["x", "y"], "other": ["X", None]}))
    write_dataset(tmp_path / "gap", "gap", rows, {"origin": "o", "licence": "l"})
    options = OPTIONS | {"transform": "columns", "columns": ["text", "other"], "views": 2}
    with pytest.raises(DataError, match=r"dataset 'v': column 'other' of sample 'b' holds (nan|None), no text"):
        derived(tmp_path / "v", "v", tmp_path / "gap", options)


def test_nothing_is_described_that_was_not_written(tmp_path: Path) -> None:
    bad = new_samples(pd.DataFrame({"id": ["a", "a"], "text": ["x", "y"]}))
    with pytest.raises(DataError, match="dataset 'bad': id 'a' occurs more than once"):
        write_dataset(tmp_path / "bad", "bad", bad, {})
    assert not (tmp_path / "bad").exists() or not list((tmp_path / "bad").iterdir())


def test_a_parent_that_is_not_whole_is_refused(tmp_path: Path, parent: Path) -> None:
    (parent / "manifest.json").unlink()
    for call in (
        lambda: derived(tmp_path / "v", "v", parent, OPTIONS),
        lambda: from_dataset(tmp_path / "v", "v", parent, None),
    ):
        with pytest.raises(FileError, match=r"manifest\.json is not a valid record"):
            call()
