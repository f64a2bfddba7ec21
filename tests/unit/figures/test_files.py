"""Reading tables and writing figures: typed columns, whole files, equal bytes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.figures import metric, reading, style, valley
from PIL import Image

Tables = dict[str, pd.DataFrame]


def test_tables_survive_csv(tmp_path: Path, small: Tables) -> None:
    for name, frame in small.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    read = reading.read_tables({name: tmp_path / f"{name}.csv" for name in small})
    for name, frame in small.items():
        pd.testing.assert_frame_equal(read[name], reading.table({name: frame}, name), check_dtype=False)
    assert read["metrics"]["saturated"].dtype == bool
    assert set(read["scores"]["baseline"]) == {"", "majority", "text_length", "tfidf"}


def test_a_task_called_na_is_a_task(tmp_path: Path, small: Tables) -> None:
    frame = small["scores"].assign(task="NA")
    frame.to_csv(tmp_path / "scores.csv", index=False)
    assert set(reading.read_tables({"scores": tmp_path / "scores.csv"})["scores"]["task"]) == {"NA"}


def test_what_is_no_table_is_refused(tmp_path: Path, small: Tables) -> None:
    (tmp_path / "scores.csv").write_text("")
    with pytest.raises(FileError, match="is not a table"):
        reading.read_tables({"scores": tmp_path / "scores.csv"})
    frame = small["scores"].assign(score="high")
    with pytest.raises(FileError, match="'score' that is no number"):
        reading.table({"scores": frame}, "scores")


def test_an_absent_table_is_empty_with_columns() -> None:
    frame = reading.table({}, "metrics")
    assert frame.empty
    assert frame["saturated"].dtype == bool
    assert frame["value"].dtype == np.float64


def test_saved_files_are_equal_and_whole(tmp_path: Path, small: Tables) -> None:
    for run in ("one", "two"):
        style.save(metric.draw(small, metric="dime"), tmp_path / run / "f.pdf", tmp_path / run / "f.png")
    for name in ("f.pdf", "f.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["f.pdf", "f.png"]
    pdf = (tmp_path / "one" / "f.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"CreationDate" not in pdf
    with Image.open(tmp_path / "one" / "f.png") as image:
        assert image.size[0] == 1400
        assert not image.text


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, small: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = valley.draw(small)
    (tmp_path / "f.pdf").write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="no"):
        style.save(figure, tmp_path / "f.pdf", tmp_path / "f.png")
    assert [path.name for path in tmp_path.iterdir()] == ["f.pdf"]
    assert (tmp_path / "f.pdf").read_text() == "old"


def test_twins_and_choices() -> None:
    assert reading.trained(["b", "b-untrained", "c-untrained"]) == ["b", "c-untrained"]
    assert reading.first(["x", "y"], "z", "y") == "y"
    assert reading.first([], "z") == ""
    assert reading.parameters_text('{"alpha":1.0,"k":3}') == "alpha = 1, k = 3"
    assert reading.parameters_text("odd") == "odd"
    assert reading.parameters_text("") == ""
