"""The published results of the study, as released or as CSV, checked and in one form."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from layerwise.errors import FileError
from layerwise.tables.published_tree import read_tree

MODEL = ["family", "size", "revision"]
SCORE_COLUMNS = (*MODEL, "layer", "task", "subset_order", "subset", "main_score", "mteb_version", "dataset_revision")
METRIC_COLUMNS = (*MODEL, "dataset", "task", "split", "metric", "normalization", "layer", "value")
SCORE_KEY = [*MODEL, "layer", "task", "subset_order"]
METRIC_KEY = [*MODEL, "dataset", "task", "split", "metric", "normalization", "layer"]
MOST = 9999  # layers; a larger number is a damaged cell
SCORES_FILE, METRICS_FILE = "mteb_scores.csv", "metrics.csv"

_WHOLE, _FLOATS = ("layer", "subset_order"), ("main_score", "value")
_METRIC_NAMES = {"entropy_prompt": "prompt_entropy", "entropy_dataset": "dataset_entropy"}


@dataclass(frozen=True)
class Published:
    """What a folder of published results holds.

    Attributes:
        scores: columns ``SCORE_COLUMNS``; ``main_score`` a fraction, NaN where the file has none.
        metrics: columns ``METRIC_COLUMNS``, metrics under this project's names; may be empty.
        notes: what a reader of the numbers must know, a sentence each.
    """

    scores: pd.DataFrame
    metrics: pd.DataFrame
    notes: list[str] = field(default_factory=list)


def read_published(folder: str | os.PathLike[str]) -> Published:
    """Read a folder with ``mteb_scores.csv`` (and ``metrics.csv``), or else a released results tree at any depth.

    Raises:
        FileError: the folder holds neither form; a file is damaged or lacks a column; two rows say the same cell; or
            one task was scored on two revisions of its dataset.
    """
    folder = Path(folder)
    notes = []
    if (folder / SCORES_FILE).is_file():
        scores = _read_csv(folder / SCORES_FILE, SCORE_COLUMNS)
        there = (folder / METRICS_FILE).is_file()
        metrics = _read_csv(folder / METRICS_FILE, METRIC_COLUMNS) if there else _frame([], METRIC_COLUMNS)
    else:
        score_rows, metric_rows, passed_over = read_tree(folder) if folder.is_dir() else ([], [], 0)
        scores, metrics = _frame(score_rows, SCORE_COLUMNS), _frame(metric_rows, METRIC_COLUMNS)
        notes += [f"{passed_over} JSON files and pickles lie elsewhere than results do; passed over."] if passed_over else []
    if scores.empty:
        raise FileError(
            f"{folder} holds no published scores: give a folder with {SCORES_FILE}, or one with files like "
            "FAMILY/SIZE/REVISION/mteb/layer_0/TASK.json."
        )
    names = metrics["metric"].str.replace("-", "_").replace(_METRIC_NAMES)
    metrics = metrics.assign(metric=names)
    _refuse_duplicates(scores, SCORE_KEY, folder)
    _refuse_duplicates(metrics, METRIC_KEY, folder)
    _refuse_two_revisions(scores, folder)
    if metrics.empty:
        notes.append("There are no metric values, so nothing is selected by a metric.")
    return Published(scores[[*SCORE_COLUMNS]], metrics[[*METRIC_COLUMNS]], notes)


def _read_csv(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is not a readable table ({error}); fetch it again.") from error
    missing = [column for column in columns if column not in frame]
    if missing:
        raise FileError(f"{path} lacks the columns {', '.join(missing)}; fetch it again.")
    for column in frame.columns.intersection([*_WHOLE, *_FLOATS]):
        frame[column] = _numbers(frame[column], column, path)
    return frame.assign(path=str(path))


def _numbers(cells: "pd.Series[str]", column: str, path: Path) -> pd.Series:
    numbers = pd.to_numeric(cells.replace("", "nan"), errors="coerce").astype("float64")
    wrong = numbers.isna() & ~cells.str.lower().isin(["", "nan"])
    if column in _WHOLE:
        wrong |= ~numbers.between(0, MOST) | (numbers % 1 != 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        wanted = f"a whole number from 0 to {MOST}" if column in _WHOLE else "a number"
        raise FileError(f"{path}, line {row + 2}: {column} is {cells.iloc[row]!r}, {wanted} expected; fetch it again.")
    return numbers.astype("int64") if column in _WHOLE else numbers.replace([np.inf, -np.inf], np.nan)


def _frame(rows: list[dict[str, object]], columns: Sequence[str]) -> pd.DataFrame:
    types = {column: "int64" if column in _WHOLE else "float64" if column in _FLOATS else "str" for column in columns}
    return pd.DataFrame(rows, columns=[*columns, "path"]).astype(types)


def _refuse_duplicates(frame: pd.DataFrame, key: list[str], folder: Path) -> None:
    repeated = frame[frame.duplicated(key, keep=False)].sort_values(key, kind="stable")
    if len(repeated):
        first = repeated.iloc[0]
        same = (repeated[key] == first[key]).all(axis=1)
        places = " and ".join(sorted(set(repeated.loc[same, "path"]), key=str))
        cell = ", ".join(f"{name} {first[name]}" for name in key if first[name] != "")
        raise FileError(f"{folder} has {int(same.sum())} rows for one cell ({cell}) in {places}; remove all but one.")


def _refuse_two_revisions(scores: pd.DataFrame, folder: Path) -> None:
    for task, rows in scores.groupby("task"):
        found = rows.drop_duplicates("dataset_revision").sort_values("dataset_revision")
        if len(found) > 1:
            named = " and ".join(f"{row['dataset_revision'] or 'none'} ({row['path']})" for _, row in found.iterrows())
            raise FileError(
                f"{folder} has scores of {task} on {len(found)} dataset revisions, {named}, which cannot stand in one "
                "table; keep one."
            )
