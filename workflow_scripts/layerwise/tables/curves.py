"""Long tables into curves over layers, by key: one frame of tasks x layers for each metric record and each readout."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerwise.errors import FileError
from layerwise.tables.frames import residual_stream, typed

PRIMARY = "primary"
OWN = "own"
FEW_LAYERS = 8  # a curve of fewer points follows almost anything

# Their value grows with the log of the number of rows, so the mean over tasks is of the normalised value, as in the
# study's figures. Within a task the two have the same ranks.
AVERAGED_NORMALISED = frozenset({"prompt_entropy", "dataset_entropy"})


class ScoreKey(NamedTuple):
    """What one group of score curves has in common."""

    model: str
    readout: str
    protocol: str


class MetricKey(NamedTuple):
    """What one group of metric curves has in common."""

    model: str
    metric: str
    variant: str
    readout: str
    recipe: str
    parameters: str


def rows_of(frame: pd.DataFrame, names: Sequence[str]) -> list[int]:
    """Positions of ``names`` in the index of a frame; a KeyError where one is absent. Faster than ``loc`` for few rows."""
    places = {str(name): place for place, name in enumerate(frame.index)}
    return [places[name] for name in names]


@dataclass
class MetricCurves:
    """The curves of one metric record.

    Attributes:
        own: (tasks x layers) the metric on each task's own texts.
        corpora: (datasets x layers) the metric on datasets that belong to no task.
        saturated: tasks and datasets whose curve the record calls saturated.
    """

    own: pd.DataFrame
    corpora: pd.DataFrame
    saturated: set[str] = field(default_factory=set)

    def on(self, text: str, tasks: Sequence[str]) -> NDArray[np.float64]:
        """Curves (T, L + 1) of ``tasks`` on their own texts, or the curve of corpus ``text`` once for every task.

        Raises:
            KeyError: a task without own curve, or no corpus ``text``.
        """
        if text != OWN:
            return np.tile(self.corpora.to_numpy()[rows_of(self.corpora, [text])], (len(tasks), 1))
        return self.own.to_numpy()[rows_of(self.own, tasks)]


def primary_protocol(protocols: Iterable[str]) -> str:
    """The protocol that stands for a task: standardised where it has one (its outcomes are kept per item), else mteb.

    A task that has neither is represented by its alphabetically first protocol.
    """
    names = sorted(set(protocols))
    return next((name for name in ("standardised", "mteb") if name in names), names[0])


def primary_protocols(scores: pd.DataFrame) -> dict[str, str]:
    """The primary protocol of every task in a table with columns model, task and protocol, baselines apart."""
    rows = scores[scores["model"] != ""]
    return {str(task): primary_protocol(group["protocol"]) for task, group in rows.groupby("task")}


def with_primary(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores, typed, with every row of a task's primary protocol repeated under protocol "primary"."""
    scores = typed(scores)
    chosen = scores["task"].map(primary_protocols(scores)) == scores["protocol"]
    return pd.concat([scores, scores[chosen].assign(protocol=PRIMARY)], ignore_index=True)


def score_curves(scores: pd.DataFrame) -> dict[ScoreKey, pd.DataFrame]:
    """Score curves (tasks x layers, NaN where there is no score) by model, readout and protocol, in key order."""
    rows = residual_stream(scores[scores["model"] != ""])
    groups = rows.groupby(list(ScoreKey._fields))
    return {ScoreKey(*map(str, key)): _pivot(group, "task", "score") for key, group in groups}


def task_types(scores: pd.DataFrame) -> dict[str, str]:
    """The type of every task."""
    return dict(zip(scores["task"], scores["type"], strict=True))


def metric_curves(metrics: pd.DataFrame) -> dict[MetricKey, MetricCurves]:
    """Metric curves by model, metric, variant, readout or recipe, and parameters, in key order; residual stream only.

    Where a metric was taken on several datasets of one task, ``{task}~sample`` comes before its views and all texts.
    """
    metrics = _preferred_datasets(residual_stream(typed(metrics)))
    result = {}
    for key, group in metrics.groupby(list(MetricKey._fields)):
        name = MetricKey(*map(str, key))
        column = "value"
        if name.metric in AVERAGED_NORMALISED and group["normalized"].notna().eq(group["value"].notna()).all():
            column = "normalized"
        own = (group["task"] != "").to_numpy()
        owned, corpus = group[own], group[~own]
        marked = {*owned.loc[owned["saturated"], "task"], *corpus.loc[corpus["saturated"], "dataset"]}
        result[name] = MetricCurves(_pivot(owned, "task", column), _pivot(corpus, "dataset", column), marked)
    return result


def check_same_layers(metrics: pd.DataFrame, scores: pd.DataFrame) -> None:
    """Refuse metrics and scores of one model that disagree about its number of layers.

    Raises:
        FileError: names the model and both layer counts.
    """
    counts = [frame[frame["model"] != ""].groupby("model")["layer"].max() for frame in (typed(metrics), typed(scores))]
    for model in counts[0].index.intersection(counts[1].index):
        if counts[0][model] != counts[1][model]:
            raise FileError(
                f"model {model!r} has {counts[0][model]} layers in its metrics and {counts[1][model]} in its task "
                "scores; delete the files of the other model version and run again."
            )


def few_layers(count: int) -> list[str]:
    """Return the note that a model has few layers (``count``, layer 0 among them), or nothing."""
    return [f"fewer than {FEW_LAYERS} layers"] if count < FEW_LAYERS else []


def complete(curves: pd.DataFrame) -> list[str]:
    """Names of the rows without a gap."""
    return [str(name) for name in curves.index[np.isfinite(curves.to_numpy()).all(axis=1)]]


def best_share(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The maximum of each row (..., L) as weights that sum to 1, shared by tied layers; uniform where all are NaN.

    Binary outcomes of few items tie often, and taking the first of them would always favour the early layers.
    """
    filled = np.where(np.isnan(values), -np.inf, values)
    best = (filled == filled.max(axis=-1, keepdims=True, initial=-np.inf)).astype(np.float64)
    return best / best.sum(axis=-1, keepdims=True)


def _pivot(rows: pd.DataFrame, index: str, column: str) -> pd.DataFrame:
    """Rows as a frame of ``index`` x layer, both in order; NaN where there is no row."""
    names, row = np.unique(rows[index].to_numpy(object), return_inverse=True)
    layers, place = np.unique(rows["layer"].to_numpy("int64"), return_inverse=True)
    cells = np.full((len(names), len(layers)), np.nan)
    cells[row, place] = rows[column].to_numpy("float64")
    if len(rows) > cells.size or len(np.unique(row * len(layers) + place)) < len(rows):
        raise ValueError(f"two rows give one layer of {index}s {', '.join(map(str, names))}")
    return pd.DataFrame(cells, pd.Index(names, dtype="str", name=index), pd.Index(layers, name="layer"), copy=False)


def _preferred_datasets(metrics: pd.DataFrame) -> pd.DataFrame:
    """Keep, of the datasets of one task in one metric record, the preferred one; corpora stay."""
    own = (metrics["task"] != "").to_numpy()
    owned = metrics[own]
    suffix = pd.Series([d.removeprefix(t) for d, t in zip(owned["dataset"], owned["task"], strict=True)], owned.index)
    order = {"~sample": 0, "~sample~views": 1, "": 2}
    owned = owned.assign(order=suffix.map(order).fillna(3)).sort_values(["order", "dataset", "layer"])
    first = owned.groupby([*MetricKey._fields, "task"])["dataset"].transform("first")
    return pd.concat([owned[owned["dataset"] == first].drop(columns="order"), metrics[~own]])
