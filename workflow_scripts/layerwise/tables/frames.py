"""The columns of the long tables, and frames that look the same whether they were just made or read from CSV."""

import os

import pandas as pd

from layerwise.errors import FileError

METRIC_COLUMNS = (
    "model", "dataset", "task", "metric", "variant", "readout", "recipe", "parameters", "layer", "tap", "depth",
    "value", "normalized", "null_value", "null_normalized", "null_broken_pairs", "se", "n", "n_excluded", "split_half",
    "saturated", "unit", "undefined",
)  # fmt: skip
SCORE_COLUMNS = (
    "model", "task", "type", "protocol", "readout", "layer", "tap", "depth", "score", "n_items", "n_not_converged",
    "baseline",
)  # fmt: skip
LEVEL_COLUMNS = ("transform", "level", "draw", *METRIC_COLUMNS)
METRIC_KEY = ("model", "dataset", "metric", "variant", "readout", "recipe", "parameters", "tap", "layer")
SCORE_KEY = ("model", "task", "protocol", "readout", "tap", "layer", "baseline")

LEVEL_KEY = ("model", "dataset", "metric", "variant", "readout", "recipe", "parameters", "level", "draw", "tap", "layer")

RESIDUAL = "residual"

_WHOLE = frozenset(("draw", "layer", "n", "n_excluded", "n_items", "n_not_converged"))
_FLOATS = frozenset(
    (
        "level",
        "depth",
        "value",
        "normalized",
        "null_value",
        "null_normalized",
        "null_broken_pairs",
        "se",
        "split_half",
        "score",
    )
)


def residual_stream(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows read at the residual stream, where scores are taken; an empty tap (baselines) counts as it."""
    return frame[frame["tap"].isin(["", RESIDUAL])]


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy with nullable whole numbers, floats, and text columns that are empty instead of missing.

    An empty cell of a CSV file and an empty string of a fresh table then are the same key.
    """
    frame = frame.copy()
    for column in frame.columns:
        if column in _WHOLE:
            frame[column] = frame[column].astype("Int64")
        elif column in _FLOATS:
            frame[column] = frame[column].astype("float64")
        elif column == "saturated":
            # through text, because bool("False"), read from CSV, is True
            frame[column] = frame[column].astype(str).str.lower().eq("true")
        else:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "").astype(str)
    return frame


def read_long(metrics: str | os.PathLike[str], scores: str | os.PathLike[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read metrics.csv and scores.csv exactly as they were written.

    Raises:
        FileError: a file that is absent, not a table, or lacks a column.
    """
    return _read(metrics, METRIC_COLUMNS), _read(scores, SCORE_COLUMNS)


def _read(path: str | os.PathLike[str], columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        # as text first: pandas would read a model named "1e3" as a number and one named "NA" as missing
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is not a readable table ({error}); delete it and run again.") from error
    missing = [column for column in columns if column not in frame]
    if missing:
        raise FileError(f"{path} lacks the columns {', '.join(missing)}; delete it and run again.")
    for column in frame.columns.intersection(pd.Index([*_FLOATS, *_WHOLE])):
        frame[column] = frame[column].replace("", "nan").astype("float64")
    return typed(frame)
