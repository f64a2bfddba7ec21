"""Records: strict JSON, whole and of one version, or refused."""

import json
import math
from pathlib import Path

import pytest
from layerwise.errors import FileError
from layerwise.records import read_record, write_record

GOLDEN = '{\n "schema_version": 1,\n "name": "ä\u2028",\n "values": [\n  0.1,\n  null\n ]\n}\n'


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = {"name": "ä\u2028", "values": [0.1, None]}
    write_record(tmp_path / "a.json", record)
    assert (tmp_path / "a.json").read_text("utf-8") == GOLDEN
    assert read_record(tmp_path / "a.json", "name", "values") == {"schema_version": 1, **record}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [{"deep": math.nan}]])
def test_a_number_that_json_has_not_is_never_written(tmp_path: Path, value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_record(tmp_path / "a.json", {"value": value})
    assert not list(tmp_path.iterdir())


BAD = {
    "empty": ("", "is not a valid record"),
    "half": (GOLDEN[:30], "is not a valid record"),
    "without its last brace": (GOLDEN[:-3], "is not a valid record"),
    "nan": ('{"schema_version": 1, "x": NaN}', "it holds NaN"),
    "infinity": ('{"schema_version": 1, "x": [-Infinity]}', "it holds -Infinity"),
    "a key twice": ('{"schema_version": 1, "x": 1, "x": 2}', "a key occurs twice"),
    "a key twice inside": ('{"schema_version": 1, "x": {"y": 1, "y": 1}}', "a key occurs twice"),
    "no version": ('{"x": 1}', "has schema version None, this program reads 1"),
    "a version to come": ('{"schema_version": 2}', "has schema version 2, this program reads 1"),
    "a version in words": ('{"schema_version": "1"}', "has schema version '1'"),
    "a list": ("[1]", "has schema version None"),
    "two records": ('{"schema_version": 1}{"schema_version": 1}', "is not a valid record"),
    "a missing key": ('{"schema_version": 1, "y": 1}', "lacks x, z"),
    "html": ("<!DOCTYPE html>", "is not a valid record"),
}


@pytest.mark.parametrize("case", BAD)
def test_anything_else_is_refused_with_what_to_do(tmp_path: Path, case: str) -> None:
    content, sentence = BAD[case]
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(FileError, match=sentence) as caught:
        read_record(tmp_path / "a.json", "x", "z")
    assert "delete it and run again" in str(caught.value)
    assert str(tmp_path / "a.json") in str(caught.value)


def test_bytes_that_are_no_text_and_absent_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe{}")
    for name in ("a.json", "b.json"):
        with pytest.raises(FileError, match="is not a valid record"):
            read_record(tmp_path / name)


def test_a_record_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = json.dumps({"schema_version": 1, "x": [1.5, "text"], "z": 0})
    for end in range(len(whole)):
        (tmp_path / "a.json").write_text(whole[:end])
        with pytest.raises(FileError):
            read_record(tmp_path / "a.json", "x", "z")
