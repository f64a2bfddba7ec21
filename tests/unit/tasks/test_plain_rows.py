"""PlainRows against datasets.Dataset, whose part in mteb's evaluators it plays, and the columns it refuses."""

from typing import Any

import pytest
from datasets import Dataset
from layerwise.tasks.plain_rows import PlainRows

ROWS: list[dict[str, Any]] = [{"text": f"text {i}", "label": i % 3, "name": str(i)} for i in range(7)]
PICKS = [5, 0, 5, 2]


def columns(rows: Any) -> dict[str, list[Any]]:
    """All columns as lists, whichever class holds them."""
    return {name: list(rows[name]) for name in rows.column_names}


def both() -> tuple[PlainRows, Dataset]:
    """The same rows in both classes."""
    return PlainRows.from_rows(ROWS), Dataset.from_list(ROWS)


def test_columns_rows_and_length_are_those_of_a_dataset() -> None:
    plain, reference = both()
    assert columns(plain) == columns(reference)
    assert len(plain) == len(reference)
    assert [plain[i] for i in range(len(ROWS))] == [reference[i] for i in range(len(ROWS))] == ROWS


def test_a_selection_keeps_the_order_and_repeats_of_its_indices() -> None:
    plain, reference = both()
    assert columns(plain.select(PICKS)) == columns(reference.select(PICKS))


@pytest.mark.parametrize("names", ["text", ["label", "text"]])
def test_columns_are_selected_and_renamed_as_in_a_dataset(names: str | list[str]) -> None:
    plain, reference = (rows.select_columns(names).rename_columns({"text": "sentence"}) for rows in both())
    assert columns(plain) == columns(reference)


def test_no_rows_have_no_columns() -> None:
    empty = PlainRows.from_rows([])
    assert len(empty) == 0
    assert empty.column_names == []


def test_a_row_with_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="other columns than"):
        PlainRows.from_rows([{"text": "a"}, {"sentence": "b"}])
