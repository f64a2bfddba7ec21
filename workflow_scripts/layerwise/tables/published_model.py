"""One published model as long tables of this project: which layers and tasks are there, and what is missing."""

import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from layerwise.tables.curves import complete
from layerwise.tables.frames import METRIC_COLUMNS, SCORE_COLUMNS, typed
from layerwise.tables.published_files import MODEL, Published
from layerwise.tables.reading import ranges

MIN_SHARE = 0.75  # a layer scored on fewer of the model's tasks would take the other tasks away; it is left out
PROTOCOL = "mteb"

_TOKEN_LEVEL = ("prompt_entropy", "curvature")


@dataclass
class PublishedModel:
    """One published model: its curves as long tables in which the layers that are there are numbered from 0.

    Attributes:
        keys: family, size, revision.
        layers: the numbers of these layers.
        last: the number of the model's last layer, there or not.
        scores: ``frames.SCORE_COLUMNS``, the tasks with a score at every one of ``layers``.
        metrics: ``frames.METRIC_COLUMNS``, the curves on tasks that are whole.
        notes: what is missing.
    """

    keys: dict[str, str]
    layers: list[int]
    last: int
    scores: pd.DataFrame
    metrics: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every layer is there."""
        return len(self.layers) == self.last + 1


def published_models(published: Published) -> list[PublishedModel]:
    """Return every model of the published results, in order of family, size and revision (step4000 before step32000).

    A layer counts as there if at least 75 % of the model's tasks have a score at it.
    """
    keys = [dict(zip(MODEL, map(str, key), strict=True)) for key, _ in published.scores.groupby(MODEL)]
    return [_model(published, each) for each in sorted(keys, key=_order)]


def _order(keys: dict[str, str]) -> list[list[tuple[str, int]]]:
    """Sort key that reads the numbers in names, and puts the finished model after the steps of its training."""
    names = [keys["family"], keys["size"], keys["revision"].replace("main", "\U0010ffff")]
    return [[(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)] for name in names]


def _model(published: Published, keys: dict[str, str]) -> PublishedModel:
    scores, metrics = (
        frame[(frame[MODEL] == pd.Series(keys)).all(axis=1)] for frame in (published.scores, published.metrics)
    )
    scores = scores[scores["subset_order"] == 0]
    metrics = metrics[(metrics["split"] == "test") & (metrics["task"] != "")]
    last = int(max([*scores["layer"], *metrics["layer"]]))
    curves = scores.pivot(index="task", columns="layer", values="main_score").reindex(columns=range(last + 1))
    there = curves.notna().mean() >= MIN_SHARE
    layers = [int(layer) for layer in there.index[there]]
    tasks = complete(curves[layers])
    name = "/".join(keys.values())
    notes = _missing(name, curves, layers, tasks)
    whole, more = _whole_curves(name, metrics, layers)
    model = PublishedModel(keys, layers, last, *_long(curves.loc[tasks, layers], whole, name), notes + more)
    if len(layers) < 2:
        model.scores = model.scores.iloc[:0]
        model.notes.append(f"{name}: fewer than 2 layers have scores, so it is left out.")
    return model


def _missing(name: str, curves: pd.DataFrame, layers: list[int], tasks: list[str]) -> list[str]:
    gaps = curves.isna().to_numpy()
    if not gaps.any():
        return []
    absent = set(range(gaps.shape[1])) - {*layers}
    left = len(curves) - len(tasks)
    there = ranges(np.flatnonzero(gaps.any(axis=0)).tolist())
    note = f"{name}: {gaps.sum()} of {gaps.size} scores are missing, at layers {there}"
    note += f"; layers {ranges(absent)} are left out" if absent else ""
    return [note + (f"; {left} of {len(curves)} tasks are left out." if left else ".")]


def _whole_curves(name: str, metrics: pd.DataFrame, layers: list[int]) -> tuple[pd.DataFrame, list[str]]:
    """Raw and normalised values of the curves that have a value at every layer, and how many have not."""
    index = ["metric", "dataset", "task", "layer"]
    columns = {"raw": "value", "maxEntropy": "normalized"}
    kept = metrics[metrics["normalization"].isin([*columns]) & metrics["layer"].isin(layers)]
    if kept.empty:
        return pd.DataFrame(columns=[*index, "value", "normalized"]), []
    wide = kept.pivot(index=index, columns="normalization", values="value").reindex(columns=[*columns])
    wide = wide.rename(columns=columns).reset_index()
    counts = wide.dropna(subset="value").groupby(index[:3])["layer"].nunique()
    short = counts[counts < len(layers)]
    cells = int((len(layers) - short).sum())
    note = f"{name}: {cells} metric values are missing, so {len(short)} of {len(counts)} metric curves are left out."
    whole = counts.index[counts == len(layers)]
    return wide[pd.MultiIndex.from_frame(wide[index[:3]]).isin(whole)], [note] if len(short) else []


def _long(curves: pd.DataFrame, metrics: pd.DataFrame, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and metrics in the columns of this project.

    Scores and pooled metrics both stand under the readout "mean", because a metric selects for its own readout, although
    the study normed the one and not the other.
    """
    number = {layer: position for position, layer in enumerate(curves.columns)}
    fixed = {"model": name, "tap": "residual"}
    scores = curves.rename_axis(index="task").reset_index().melt("task", var_name="layer", value_name="score")
    scores = scores.assign(
        **fixed, layer=scores["layer"].map(number), protocol=PROTOCOL, readout="mean", baseline="", type=""
    )
    metrics = metrics.assign(
        **fixed,
        layer=metrics["layer"].map(number),
        variant="released",
        parameters="{}",
        readout=np.where(metrics["metric"].isin(_TOKEN_LEVEL), "", "mean"),
        recipe=np.where(metrics["metric"].isin(_TOKEN_LEVEL), "centre_unit", ""),
    )
    return typed(scores.reindex(columns=[*SCORE_COLUMNS])), typed(metrics.reindex(columns=[*METRIC_COLUMNS]))
