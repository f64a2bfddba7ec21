"""samples.parquet: the samples of one dataset in their fixed order, the same columns for text and images."""

import hashlib
import os
from pathlib import Path

import pandas as pd

from layerwise.atomic import atomic_path
from layerwise.errors import DataError, FileError

KEYS = ("id", "source_id", "view", "split")
CONTENT = ("text", "image")


def new_samples(frame: pd.DataFrame) -> pd.DataFrame:
    """Complete ``frame`` (an ``id`` and a ``text`` or ``image`` column, any labels) with default keys, keys first.

    ``source_id`` defaults to ``id``, ``view`` to 0 and ``split`` to "test".

    Raises:
        DataError: a sample has no id, or a column ``view`` holds something else than whole numbers.
    """
    frame = frame.reset_index(drop=True)
    if frame["id"].isna().any():
        raise DataError(f"row {int(frame['id'].isna().argmax())} has no id (column 'id'); every sample needs its own.")
    frame["id"] = frame["id"].astype(str)
    defaults = pd.DataFrame({"source_id": frame["id"], "view": 0, "split": "test"})
    frame = frame.join(defaults[[column for column in defaults if column not in frame]])
    try:
        frame = frame.astype({"source_id": str, "view": "int64", "split": str})
    except ValueError as error:
        raise DataError(f"column 'view' must hold the number of the view ({error}); rename it if it is a label.") from error
    first = [*KEYS, *(c for c in CONTENT if c in frame)]
    return frame[[*first, *(c for c in frame.columns if c not in first)]]


def validate(frame: pd.DataFrame, where: str, empty_allowed: bool = False) -> None:
    """Check the contract of samples.parquet.

    Args:
        frame: the samples.
        where: name of the dataset, for messages.
        empty_allowed: accept empty texts, as benchmark tasks have them.

    Raises:
        DataError: no rows, missing columns, duplicate ids, two rows of one view of a sample, an empty text, or a text
            that is not valid Unicode.
    """
    missing = [c for c in KEYS if c not in frame]
    content = [c for c in CONTENT if c in frame]
    if missing or len(content) != 1:
        raise DataError(f"dataset {where!r}: columns {missing or 'text | image'} are missing; found {list(frame.columns)}.")
    if frame.empty:
        raise DataError(f"dataset {where!r} has no samples; check its source and its 'sample' entry.")
    for columns, what in ((["id"], "id"), (["source_id", "view"], "source_id and view")):
        repeated = frame[frame.duplicated(columns)]
        if len(repeated):
            value = ", ".join(str(v) for v in repeated.iloc[0][columns])
            raise DataError(f"dataset {where!r}: {what} {value!r} occurs more than once; every sample needs its own.")
    if "text" in frame:
        _validate_texts(frame, where, empty_allowed)
    elif "sha256" not in frame:
        raise DataError(f"dataset {where!r}: column 'sha256' is missing; images need the digest of their content.")


def _validate_texts(frame: pd.DataFrame, where: str, empty_allowed: bool) -> None:
    for identifier, text in zip(frame["id"], frame["text"], strict=True):
        if not isinstance(text, str):
            raise DataError(f"dataset {where!r}: sample {identifier!r} has no text (found {text!r}).")
        if not text.strip() and not empty_allowed:
            raise DataError(f"dataset {where!r}: the text of sample {identifier!r} is empty; remove it from the source.")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise DataError(
                f"dataset {where!r}: the text of sample {identifier!r} holds a lone surrogate; save the source as UTF-8."
            ) from None


def digest(frame: pd.DataFrame) -> str:
    """Return the sha256 of ids, views and contents (texts, or digests of images) in order: what a model sees."""
    state = hashlib.sha256()
    content = "sha256" if "image" in frame else "text"
    for row in zip(frame["id"], frame["view"], frame[content], strict=True):
        state.update("\x1f".join(map(str, row)).encode() + b"\x1e")
    return state.hexdigest()


def write_samples(path: str | os.PathLike[str], frame: pd.DataFrame, where: str, empty_allowed: bool = False) -> None:
    """Validate ``frame`` and write it to ``path`` atomically."""
    validate(frame, where, empty_allowed)
    with atomic_path(path) as temporary:
        frame.to_parquet(temporary, index=False)


def read_samples(path: str | os.PathLike[str], columns: list[str] | None = None) -> pd.DataFrame:
    """Read a samples.parquet.

    Raises:
        FileError: the file is not a readable Parquet table with the key columns.
    """
    try:
        frame = pd.read_parquet(Path(path), columns=columns)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is not a readable samples table ({error}); delete it and run again.") from error
    missing = [key for key in columns or KEYS if key not in frame]
    if missing:
        raise FileError(f"{path} lacks {', '.join(missing)}; delete it and run again.")
    return frame


def balanced_sample(frame: pd.DataFrame, n: int, seed: int, column: str | None = None) -> pd.DataFrame:
    """Draw at most ``n`` rows, as evenly over the values of ``column`` as they allow, in their original order.

    Values with fewer rows than their share give all they have; the rest is shared among the others. The draw depends on
    ``seed`` and the rows only.

    Raises:
        DataError: ``column`` is not there.
    """
    if column is not None and column not in frame:
        raise DataError(f"there is no column {column!r} to balance over; columns: {', '.join(map(str, frame.columns))}.")
    shuffled = frame.sample(frac=1.0, random_state=seed)
    if column is not None:
        rank = shuffled.groupby(column, sort=True).cumcount()
        shuffled = shuffled.assign(_rank=rank).sort_values("_rank", kind="stable").drop(columns="_rank")
    return shuffled.head(n).sort_index().reset_index(drop=True)
