"""Long tables into curves over layers, by key: one frame of tasks x layers for each metric record and each readout."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerwise.errors import FileError
from layerwise.tables.frames import typed

PRIMARY = "primary"
OWN = "own"

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

    def on(self, text: str, tasks: Iterable[str]) -> pd.DataFrame:
        """Curves of ``tasks`` on their own texts, or the curve of corpus ``text`` repeated for every task."""
        if text == OWN:
            return self.own.reindex(list(tasks))
        names = list(tasks)
        return pd.DataFrame(
            np.tile(self.corpora.loc[text].to_numpy(), (len(names), 1)), index=names, columns=self.corpora.columns
        )


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
    rows = scores[scores["model"] != ""]
    groups = rows.groupby(list(ScoreKey._fields))
    return {ScoreKey(*map(str, key)): _pivot(group, "task", "score") for key, group in groups}


def task_types(scores: pd.DataFrame) -> dict[str, str]:
    """The type of every task."""
    return dict(zip(scores["task"], scores["type"], strict=True))


def metric_curves(metrics: pd.DataFrame) -> dict[MetricKey, MetricCurves]:
    """Metric curves by model, metric, variant, readout or recipe, and parameters, in order of the keys.

    Where a metric was taken on several datasets of one task, ``{task}~sample`` comes before its views and all texts.
    """
    metrics = typed(metrics)
    result = {}
    for key, group in metrics.groupby(list(MetricKey._fields)):
        name = MetricKey(*map(str, key))
        column = "value"
        if name.metric in AVERAGED_NORMALISED and group["normalized"].notna().eq(group["value"].notna()).all():
            column = "normalized"
        owned, corpus = group[group["task"] != ""], group[group["task"] == ""]
        owned = _preferred_dataset(owned)
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
    frame = rows.astype({"layer": "int64"}).pivot(index=index, columns="layer", values=column).sort_index()
    return frame.sort_index(axis=1).astype("float64")


def _preferred_dataset(owned: pd.DataFrame) -> pd.DataFrame:
    suffix = pd.Series([d.removeprefix(t) for d, t in zip(owned["dataset"], owned["task"], strict=True)], owned.index)
    order = {"~sample": 0, "~sample~views": 1, "": 2}
    owned = owned.assign(order=suffix.map(order).fillna(3)).sort_values(["order", "dataset", "layer"])
    return owned[owned["dataset"] == owned.groupby("task")["dataset"].transform("first")].drop(columns="order")
