"""levels.csv: the rows of one level and draw are kept apart from those of another."""

from pathlib import Path
from typing import Any

import pytest
from layerwise.errors import FileError
from layerwise.records import write_record
from layerwise.tables.collect import levels_table, metrics_table
from layerwise.tables.frames import LEVEL_COLUMNS
from table_inputs import metric_record


def record(cells: list[tuple[float, int]]) -> dict[str, Any]:
    whole = metric_record([1.0, 2.0, 3.0], dataset="d~repeated") | {"transform": "repeat_tokens"}
    whole["records"] = [{"level": level, "draw": draw, **whole["records"][0]} for level, draw in cells]
    return whole


def write(path: Path, content: dict[str, Any]) -> Path:
    write_record(path, content)
    return path


def test_a_row_per_level_draw_and_layer(tmp_path: Path) -> None:
    frame = levels_table([write(tmp_path / "a.json", record([(0.5, 1), (0.5, 0), (0.1, 0)]))])
    assert list(frame.columns) == list(LEVEL_COLUMNS)
    assert frame[["level", "draw", "layer"]].to_numpy().tolist() == [
        [level, draw, layer] for level, draw in ((0.1, 0), (0.5, 0), (0.5, 1)) for layer in range(3)
    ]
    assert set(frame["transform"]) == {"repeat_tokens"}
    assert str(frame["draw"].dtype) == "Int64"


def test_one_level_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"two records for one cell .*level 0.5, draw 1"):
        levels_table([write(tmp_path / "a.json", record([(0.5, 1), (0.5, 1)]))])


def test_a_missing_layer_names_its_level(tmp_path: Path) -> None:
    whole = record([(0.25, 2)])
    del whole["records"][0]["layers"][1]
    with pytest.raises(FileError, match=r"level 0.25, draw 2 has layers 0, 2, 0-2 expected"):
        levels_table([write(tmp_path / "a.json", whole)])


def test_an_older_record_without_a_transform_is_refused(tmp_path: Path) -> None:
    whole = record([(0.5, 0)])
    del whole["transform"]
    with pytest.raises(FileError, match="transform"):
        levels_table([write(tmp_path / "a.json", whole)])


def test_the_table_of_plain_datasets_has_no_levels(tmp_path: Path) -> None:
    frame = metrics_table([write(tmp_path / "a.json", metric_record([1.0, 2.0]) | {"transform": ""})])
    assert not {"level", "draw", "transform"} & set(frame.columns)
    assert levels_table([]).empty
