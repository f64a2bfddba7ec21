"""What a model wrote, as a dataset."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from layerwise.data.prepare import write_dataset
from layerwise.data.traces import sources, write_traces
from layerwise.errors import DataError
from layerwise.records import read_record
from layerwise.samples import new_samples, read_samples


class Trace(NamedTuple):
    text: str
    n_tokens: int
    finished: bool = True


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    frame = pd.DataFrame({"id": list("abcd"), "text": ["one", "two", "three", "four"], "label": [0, 0, 1, 1]})
    write_dataset(tmp_path / "p", "p", new_samples(frame), {"origin": "here", "licence": "mine"})
    return tmp_path / "p"


def facts(minimum: int) -> dict:
    return {"options": {"minimum_tokens": minimum}, "writer": {"model": "m", "digest": "x"}, "sample": None}


def test_rows_keep_id_and_labels_and_short_traces_are_left_out(parent: Path, tmp_path: Path) -> None:
    frame = sources(parent, None)
    traces = [Trace("one 1", 2), Trace("two 2 2", 3, False), Trace("three", 1), Trace("four 4 4", 3)]
    write_traces(tmp_path / "t", "t", parent, frame, traces, facts(2))
    made = read_samples(tmp_path / "t" / "samples.parquet")
    assert made["id"].tolist() == ["a", "b", "d"]
    assert made["label"].tolist() == [0, 0, 1]
    assert made["text"].tolist() == ["one 1", "two 2 2", "four 4 4"]
    assert made["finished"].tolist() == [True, False, True]
    record = read_record(tmp_path / "t" / "manifest.json", "left_out", "source", "digest")
    assert record["left_out"] == 1
    assert record["source"]["writer"] == {"model": "m", "digest": "x"}


def test_a_sample_is_drawn_before_anything_is_written(parent: Path) -> None:
    assert len(sources(parent, {"n": 2, "seed": 0, "balance": "label"})["label"].unique()) == 2


def test_no_trace_long_enough_is_one_sentence(parent: Path, tmp_path: Path) -> None:
    frame = sources(parent, None)
    with pytest.raises(
        DataError, match="none of 4 traces has 9 tokens, the longest has 3; write a smaller 'minimum_tokens'"
    ):
        write_traces(tmp_path / "t", "t", parent, frame, [Trace("x", 3)] * 4, facts(9))
    assert not (tmp_path / "t").exists()
