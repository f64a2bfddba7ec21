"""Taps in the long tables: their own rows, and none of them in a table that joins metrics with scores."""

from pathlib import Path

import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.records import write_record
from layerwise.tables.collect import metrics_table
from layerwise.tables.correlation import correlations
from layerwise.tables.curves import metric_curves
from layerwise.tables.selection import layer_selection
from table_inputs import metric_record, metric_rows, score_rows

CURVE = [0.1, 0.5, 0.3, 0.2, 0.6, 0.4]


def with_tap(**changes: object) -> dict[str, object]:
    """A record of the residual stream and of the MLP, whose layers begin at 1."""
    record = metric_record(CURVE, **changes)
    (entry,) = record["records"]
    other = entry | {"tap": "mlp", "null_value": 7.0, "split_half": 0.1, "layers": [dict(x) for x in entry["layers"][1:]]}
    for cell in other["layers"]:
        cell |= {"value": cell["value"] + 10, "standard_error": 0.5}
    record["records"] = [entry | {"tap": "residual"}, other]
    return record


def test_a_tap_has_rows_of_its_own_with_its_null_and_error(tmp_path: Path) -> None:
    write_record(tmp_path / "a.json", with_tap())
    table = metrics_table([tmp_path / "a.json"])
    own = {tap: rows.reset_index(drop=True) for tap, rows in table.groupby("tap")}
    assert own["residual"]["layer"].tolist() == [0, 1, 2, 3, 4, 5]
    assert own["mlp"]["layer"].tolist() == [1, 2, 3, 4, 5]
    assert own["mlp"]["depth"].tolist() == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert own["mlp"]["value"].tolist() == pytest.approx([x + 10 for x in CURVE[1:]])
    assert [own[tap]["null_value"].unique().tolist() for tap in ("residual", "mlp")] == [[1.0], [7.0]]
    assert [own[tap]["se"].unique().tolist() for tap in ("residual", "mlp")] == [[0.01], [0.5]]


@pytest.mark.parametrize(("lost", "found"), [(0, "2-5"), (2, "1-2, 4-5")])
def test_a_layer_that_a_tap_lacks_is_refused(tmp_path: Path, lost: int, found: str) -> None:
    record = with_tap()
    del record["records"][1]["layers"][lost]
    write_record(tmp_path / "a.json", record)
    with pytest.raises(FileError, match=rf"at tap mlp has layers {found}, 1-5 expected"):
        metrics_table([tmp_path / "a.json"])


def test_two_records_of_one_tap_are_refused(tmp_path: Path) -> None:
    record = with_tap()
    record["records"].append(record["records"][1])
    write_record(tmp_path / "a.json", record)
    with pytest.raises(FileError, match=r"two records for one cell .*tap mlp"):
        metrics_table([tmp_path / "a.json"])


def test_scores_are_compared_with_the_residual_stream_only() -> None:
    alone = pd.concat([metric_rows(CURVE, task) for task in ("a", "b")], ignore_index=True)
    taps = [metric_rows(CURVE[::-1], task, tap="mlp").query("layer > 0") for task in ("a", "b")]
    both = pd.concat([*taps, alone, metric_rows(CURVE[::-1], tap="attention").query("layer > 0")], ignore_index=True)
    scores = pd.concat([score_rows(CURVE, "a"), score_rows(CURVE[::-1], "b")], ignore_index=True)
    first, second = metric_curves(alone), metric_curves(both)
    assert first.keys() == second.keys()
    for key, curves in first.items():
        pd.testing.assert_frame_equal(curves.own, second[key].own)
    pd.testing.assert_frame_equal(correlations(alone, scores), correlations(both, scores))
    ends = {"dime": {"paper": {"theory": "max", "study": "min"}}}
    pd.testing.assert_frame_equal(layer_selection(alone, scores, None, ends), layer_selection(both, scores, None, ends))
