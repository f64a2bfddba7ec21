"""What the lines of summary.md have in common: the tables as they are read, the models they name, and how numbers look."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from layerwise.errors import FileError, LayerwiseError

MOST = 4  # models (or tasks) that one line names

# The columns that findings read, text first.
COLUMNS = {
    "metrics": (
        "model dataset task metric variant readout recipe parameters tap",
        "layer depth value normalized n",
    ),
    "layer_summary": (
        "model task protocol readout best_baseline gain_unit",
        "n_tasks n_items n_layers last best best_layer best_depth gain_cross_fitted gain_low gain_high baseline_score",
    ),
    "correlations": (
        "model metric variant recipe metric_readout score_readout protocol pairing layers flag",
        "n_layers n_tasks residual_spearman residual_low residual_high q_task",
    ),
    "layer_selection": (
        "model readout protocol selector metric variant recipe direction",
        "n_tasks score picked_layer gain_low gain_high q_gain",
    ),
    "training_dynamics": (
        "model dataset task metric variant readout recipe joined_readout",
        "step layer value stability score heldout_loss n",
    ),
    "levels": (
        "transform model dataset metric variant readout recipe tap",
        "level layer value normalized n",
    ),
}


class Unwritten(LayerwiseError):
    """A line that cannot be written; ``str(error)`` is the reason, which stands in its place."""


@dataclass(frozen=True)
class Options:
    """What the config says that tables do not.

    Attributes:
        models: the trained models in the order of the config, of a training run its last checkpoint.
        twins: trained model to its untrained twin.
        readout: the headline readout.
        dataset: the headline dataset, or "".
    """

    models: Sequence[str]
    twins: Mapping[str, str]
    readout: str
    dataset: str


def read_results(paths: Mapping[str, str | os.PathLike[str]]) -> dict[str, pd.DataFrame]:
    """Read the tables in ``COLUMNS`` that ``paths`` names; cells are text or float64, empty is "" or NaN.

    Raises:
        FileError: a file that is no table, lacks a column, or has something else than a number in a column of numbers.
    """
    return {name: _read(path, *map(str.split, COLUMNS[name])) for name, path in paths.items() if name in COLUMNS}


def _read(path: str | os.PathLike[str], text: list[str], numbers: list[str]) -> pd.DataFrame:
    try:
        # as text first: pandas would read a model named "1e3" as a number and one named "NA" as missing
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, usecols=[*text, *numbers])
        return frame.assign(**{name: frame[name].replace("", "nan").astype("float64") for name in numbers})
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is not the table it should be ({error}); delete it and run again.") from error


def rows_of_model(tables: Mapping[str, pd.DataFrame], name: str, options: Options) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of every trained model that the table ``name`` has, in the order of the config.

    Raises:
        Unwritten: there is no such table, as in a study without tasks, or it is empty.
    """
    if name not in tables:
        raise Unwritten("the study has no tasks.")
    if tables[name].empty:
        raise Unwritten(f"`{name}.csv` has no rows.")
    for model in options.models:
        rows = tables[name][tables[name]["model"] == model]
        if len(rows):
            yield model, rows


def listed(parts: Sequence[str], file: str, most: int = MOST) -> str:
    """Join the first ``most`` parts; how many more there are is said with the table that holds them."""
    more = len(parts) - most
    return "; ".join([*parts[:most], *([f"{more} more in `{file}`"] if more > 0 else [])])


def points(score: float) -> str:
    """Write a score as points, 100 times the score."""
    return f"{100 * score:.1f}"


def signed(score: float) -> str:
    """Write a difference of scores as points with its sign."""
    return f"{100 * score:+.1f}"
