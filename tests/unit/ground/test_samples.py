"""samples.parquet: its contract, its digest, and balanced draws."""

from pathlib import Path

import pandas as pd
import pytest
from layerwise.errors import DataError, FileError
from layerwise.samples import balanced_sample, digest, new_samples, read_samples, validate, write_samples


def frame(**columns: list) -> pd.DataFrame:
    return new_samples(pd.DataFrame({"id": ["a", "b", "c"], "text": ["one", "two", "three"]} | columns))


def test_keys_are_completed_and_come_first() -> None:
    made = new_samples(pd.DataFrame({"label": [1, 2], "text": ["x", "y"], "id": [7, 8]}, index=[5, 9]))
    assert list(made) == ["id", "source_id", "view", "split", "text", "label"]
    assert made.iloc[1].to_dict() == {"id": "8", "source_id": "8", "view": 0, "split": "test", "text": "y", "label": 2}
    kept = frame(source_id=["s", "s", "t"], view=[0, 1, 0], split=["train", "test", "test"])
    assert kept[["source_id", "view", "split"]].values.tolist() == [["s", 0, "train"], ["s", 1, "test"], ["t", 0, "test"]]


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    odd = ["a\u2028\n\r\t", "👩‍👩‍👧‍👦 \x00", "مرحبا"]
    made = frame(text=odd, label=["p", None, "q"])
    write_samples(tmp_path / "s.parquet", made, "d")
    pd.testing.assert_frame_equal(read_samples(tmp_path / "s.parquet"), made)
    assert read_samples(tmp_path / "s.parquet", ["text"])["text"].tolist() == odd


BAD = {
    "duplicate id": ({"id": ["a", "b", "a"]}, "id 'a' occurs more than once"),
    "ids equal as text": ({"id": ["1", 2, 1]}, "id '1' occurs more than once"),
    "one view twice": ({"source_id": ["s", "s", "t"]}, "source_id and view 's, 0' occurs more than once"),
    "empty text": ({"text": ["one", "", "three"]}, "the text of sample 'b' is empty"),
    "blank text": ({"text": ["one", "two", " \n\u2003"]}, "the text of sample 'c' is empty"),
    "no text": ({"text": ["one", None, "three"]}, r"sample 'b' has no text \(found "),
    "a number": ({"text": ["one", 5, "three"]}, r"sample 'b' has no text \(found 5\)"),
    "lone surrogate": (
        {"text": pd.Series(["one", "two", "\ud800x"], dtype=object)},
        "the text of sample 'c' holds a lone surrogate",
    ),
    "no id": ({"id": ["a", None, "c"]}, "row 1 has no id"),
    "view in words": ({"view": ["front", "back", "top"]}, "column 'view' must hold the number of the view"),
    "view missing": ({"view": [0, 0, None]}, "column 'view' must hold the number of the view"),
    "text and image": ({"image": ["a.png"] * 3}, "text | image"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_samples_are_refused_by_name(tmp_path: Path, case: str) -> None:
    columns, sentence = BAD[case]
    with pytest.raises(DataError, match=sentence.replace("|", r"\|")) as caught:
        write_samples(tmp_path / "s.parquet", frame(**columns), "mine")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_missing_columns_and_no_rows_are_refused() -> None:
    with pytest.raises(DataError, match=r"dataset 'mine': columns \['view'\] are missing; found \['id', 'source_id', "):
        validate(frame().drop(columns="view"), "mine")
    with pytest.raises(DataError, match=r"columns text \| image are missing"):
        validate(frame().drop(columns="text"), "mine")
    with pytest.raises(DataError, match="dataset 'mine' has no samples"):
        validate(frame().head(0), "mine")


def test_empty_texts_pass_where_a_benchmark_has_them() -> None:
    validate(frame(text=["", " ", "x"]), "mine", empty_allowed=True)


def test_an_unreadable_or_foreign_table_is_refused(tmp_path: Path) -> None:
    write_samples(tmp_path / "whole.parquet", frame(), "d")
    content = (tmp_path / "whole.parquet").read_bytes()
    for name, bad in (("empty", b""), ("half", content[: len(content) // 2]), ("text", b"id,text\na,b\n")):
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(FileError, match="is not a readable samples table"):
            read_samples(tmp_path / name)
    with pytest.raises(FileError, match="is not a readable samples table"):
        read_samples(tmp_path / "absent")
    with pytest.raises(FileError):
        read_samples(tmp_path / "whole.parquet", ["nothing"])
    pd.DataFrame({"id": ["a"], "text": ["b"]}).to_parquet(tmp_path / "foreign")
    with pytest.raises(FileError, match="lacks source_id, view, split"):
        read_samples(tmp_path / "foreign")


def test_the_digest_is_of_what_a_model_sees_in_order() -> None:
    same = {digest(frame()), digest(frame(label=[1, 2, 3])), digest(frame(split=["train"] * 3))}
    changed = [
        digest(frame(text=["one", "two", "Three"])),
        digest(frame(id=["a", "b", "d"])),
        digest(frame(view=[0, 0, 1])),
        digest(frame().iloc[::-1]),
    ]
    assert len(same) == 1
    assert len({*same, *changed}) == 5


POOL = pd.DataFrame({"id": range(100), "label": ["common"] * 80 + ["rare"] * 15 + ["single"] * 5})


def test_a_balanced_draw_gives_each_value_its_share_and_the_rest_to_the_others() -> None:
    drawn = balanced_sample(POOL, 40, 0, "label")
    assert drawn["label"].value_counts().to_dict() == {"common": 20, "rare": 15, "single": 5}
    assert balanced_sample(POOL, 9, 0, "label")["label"].value_counts().tolist() == [3, 3, 3]


def test_a_draw_is_seeded_without_repeats_and_keeps_the_order() -> None:
    drawn = balanced_sample(POOL, 30, 5, "label")
    assert drawn["id"].is_monotonic_increasing
    assert drawn["id"].is_unique
    assert list(drawn.index) == list(range(30))
    assert drawn.equals(balanced_sample(POOL, 30, 5, "label"))
    assert not drawn.equals(balanced_sample(POOL, 30, 6, "label"))
    assert list(drawn) == list(POOL)


def test_a_draw_of_more_than_there_is_gives_all() -> None:
    gaps = POOL.assign(label=POOL["label"].where(POOL["id"] % 7 > 0))  # values may be missing
    for column in (None, "label"):
        assert balanced_sample(POOL, 1000, 0, column).equals(POOL)
        assert sorted(balanced_sample(gaps, 1000, 0, column)["id"]) == list(range(100))


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match="no column 'genre' to balance over; columns: id, label"):
        balanced_sample(POOL, 3, 0, "genre")
