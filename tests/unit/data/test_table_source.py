"""Your own tables: four formats, and what is wrong with them in one sentence."""

import json
from pathlib import Path

import pandas as pd
import pytest
from layerwise.data import table
from layerwise.errors import DataError
from layerwise.samples import new_samples, write_samples

ROWS = pd.DataFrame(
    {"key": ["k1", "k2", "k3"], "body": ["one, two", 'say "hi"', "ünï\u2028 line"], "label": ["NA", "", "x"]}
)


def write(folder: Path, ending: str, frame: pd.DataFrame = ROWS) -> str:
    path = folder / f"table{ending}"
    if ending == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=False) for row in frame.to_dict("records")]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    elif ending == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    return str(path)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".CSV"])
def test_every_format_gives_the_same_samples(tmp_path: Path, ending: str) -> None:
    source = table.read(write(tmp_path, ending.lower()).replace(ending.lower(), ending) if ending.islower() else
                        str(Path(write(tmp_path, ".csv")).rename(tmp_path / "table.CSV")), "body", "key")  # fmt: skip
    assert source.samples["text"].tolist() == ROWS["body"].tolist()
    assert source.samples["id"].tolist() == ROWS["key"].tolist()
    assert source.samples["label"].tolist() == ["NA", "", "x"]  # words, not missing values
    assert "sha256 " in source.origin
    write_samples(tmp_path / "out" / "s.parquet", new_samples(source.samples), "mine")


def test_rows_are_numbered_where_no_id_is_named(tmp_path: Path) -> None:
    assert table.read(write(tmp_path, ".csv"), "body").samples["id"].tolist() == ["row-0", "row-1", "row-2"]


def test_a_text_keeps_its_spaces_and_digits(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["  two  spaces ", "007", "null"]})
    for ending in (".csv", ".jsonl"):
        assert table.read(write(tmp_path, ending, frame)).samples["text"].tolist() == frame["text"].tolist()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_the_named_column_wins_over_one_that_is_called_text(tmp_path: Path, ending: str) -> None:
    frame = ROWS.assign(text=["a", "b", "c"], id=[1, 1, 1])
    samples = new_samples(table.read(write(tmp_path, ending, frame), "body", "key").samples)
    assert list(samples.columns) == ["id", "source_id", "view", "split", "text", "label"]
    assert samples["text"].tolist() == ROWS["body"].tolist()
    assert samples["id"].tolist() == ROWS["key"].tolist()


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, ".csv")
    with pytest.raises(DataError, match="has no column 'text'; its columns: key, body, label"):
        table.read(path)
    with pytest.raises(DataError, match="has no column 'number'; its columns: key, body, label"):
        table.read(path, "body", "number")


@pytest.mark.parametrize("name", ["table.xlsx", "table", "table.csv.gz", "table.pkl"])
def test_an_unknown_ending_is_refused_unread(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=r"unknown ending .*; use one of \.csv, \.tsv, \.jsonl, \.parquet"):
        table.read(str(tmp_path / name))


def test_a_missing_file_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"table 'no/such.csv' does not exist \(looked in /"):
        table.read("no/such.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="does not exist"):
        table.read(str(tmp_path / "folder.csv"))


UNREADABLE = {
    "empty.csv": b"",
    "latin.csv": b"text\ncaf\xe9\n",
    "ragged.csv": b"text,label\na,b\nc,d,e,f\n",
    "open.csv": b'text\n"never closed',
    "half.jsonl": b'{"text": "a"}\n{"text": "b',
    "surrogate.jsonl": b'{"text": "\\ud800"}\n{"text": "b"}\n',
    "text.parquet": b"text,label\n",
    "empty.parquet": b"",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_table_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(UNREADABLE[name])
    with pytest.raises(DataError) as caught:
        write_samples(tmp_path / "s.parquet", new_samples(table.read(str(tmp_path / name)).samples), "mine")
    assert "\n" not in str(caught.value)
    assert name in str(caught.value) or "'mine'" in str(caught.value)


def test_rows_without_a_text_or_an_id_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a", "k": "1"}\n{"k": "2"}\n')
    with pytest.raises(DataError, match="dataset 'mine': sample '2' has no text"):
        write_samples(tmp_path / "s", new_samples(table.read(str(tmp_path / "a.jsonl"), id="k").samples), "mine")
    (tmp_path / "b.jsonl").write_text('{"text": "a", "k": "1"}\n{"text": "b"}\n')
    with pytest.raises(DataError, match="row 1 has no id"):
        new_samples(table.read(str(tmp_path / "b.jsonl"), id="k").samples)
