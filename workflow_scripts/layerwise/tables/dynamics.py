"""training_dynamics.csv: metrics, layer change, stability, score and loss of every layer at every checkpoint of a run."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from layerwise.checkpoints import runs
from layerwise.errors import FileError
from layerwise.records import read_record
from layerwise.tables.curves import primary_protocols
from layerwise.tables.frames import residual_stream, typed
from layerwise.tables.reading import PathLike, checked_layers, in_order, need, objects

CURVE = ["model", "dataset", "task", "metric", "variant", "readout", "recipe", "parameters"]
COLUMNS = (
    "model", "step", "dataset", "task", "metric", "variant", "readout", "recipe", "parameters", "layer", "depth", "value",
    "change_to_final", "stability", "stability_debiased", "joined_readout", "score", "n_tasks", "train_loss",
    "heldout_loss", "n", "unit",
)  # fmt: skip
CHANGE = "layer_change"
_VARIANTS = {"paper": "", "debiased": "_debiased"}
_STABILITY = ["stability", "stability_debiased"]
_PLACE = ["name", "dataset", "readout", "layer"]


def training_dynamics(
    metrics: pd.DataFrame,
    scores: pd.DataFrame,
    similarities: Iterable[PathLike],
    trainings: Iterable[PathLike] = (),
    headline_readout: str = "mean",
) -> pd.DataFrame:
    """Join by key what is known of every checkpoint of every run that has two or more.

    Args:
        metrics: from ``collect.metrics_table``.
        scores: from ``collect.scores_table``.
        similarities: ``results/metrics/{model}/{dataset}/layer_similarity.json`` of every checkpoint.
        trainings: ``results/models/{run}/training.json`` of the runs that were trained here.
        headline_readout: whose stability and score stand beside a token metric, which has no readout.

    Returns:
        ``COLUMNS``, sorted: ``model`` is the run, ``step`` the checkpoint. ``metric`` also has ``layer_change`` (1 - linear
        CKA to the layer before, variants paper and debiased; empty at layer 0). ``change_to_final`` is ``value`` minus that
        of the last checkpoint. ``stability`` is the linear CKA of the layer to its state in the last checkpoint, at
        ``joined_readout``; so is ``score``: the task's own for a metric on its texts, else the mean over the ``n_tasks``
        tasks that every checkpoint has, each in its primary protocol. Losses are those of the run's objective.

    Raises:
        FileError: a record that is not whole, or two of them for one model and dataset.
    """
    metrics, scores = residual_stream(typed(metrics)), residual_stream(typed(scores))
    similar = _similarities(similarities)
    names = [*metrics["model"], *similar["name"]]
    points = pd.DataFrame(
        [(name, run, step) for run, steps in runs(names).items() for step, name in steps.items()],
        columns=["name", "model", "step"],
    ).astype({"step": "int64"})
    rows = pd.concat([metrics.rename(columns={"model": "name"}), _changes(similar)], ignore_index=True)
    rows = rows.merge(points, on="name", how="inner", validate="many_to_one")
    rows["joined_readout"] = rows["readout"].where(rows["readout"] != "", headline_readout)
    rows = _with_change_to_final(rows)
    rows = rows.merge(
        similar[[*_PLACE, *_STABILITY]].rename(columns={"readout": "joined_readout"}),
        on=["name", "dataset", "joined_readout", "layer"],
        how="left",
        validate="many_to_one",
    )
    rows = _with_scores(rows, scores, points)
    rows = rows.merge(_losses(trainings), on=["model", "step"], how="left", validate="many_to_one")
    return rows[[*COLUMNS]].sort_values([*CURVE, "step", "layer"]).reset_index(drop=True)


def _similarities(paths: Iterable[PathLike]) -> pd.DataFrame:
    """One row per model, dataset, readout and layer."""
    values = [f"{name}{suffix}" for name in ("stability", CHANGE) for suffix in _VARIANTS.values()]
    rows: list[dict[str, Any]] = []
    for path in in_order(paths):
        record = read_record(path, "model", "dataset", "n_layers", "records")
        for entry in objects(record["records"], path, "records"):
            need(entry, path, "readout", "n_samples", "layers")
            place = {"name": record["model"], "dataset": record["dataset"], "readout": entry["readout"]}
            for layer in checked_layers(entry["layers"], f"{path}, {entry['readout']}", record["n_layers"]):
                need(layer, path, *values)
                rows.append(place | {"n": entry["n_samples"]} | {key: layer[key] for key in ("layer", "depth", *values)})
    frame = pd.DataFrame(rows, columns=[*_PLACE, "n", "depth", *values])
    if frame.duplicated(_PLACE).any():
        twice = frame[frame.duplicated(_PLACE)].iloc[0]
        raise FileError(f"two layer similarities of {twice['name']} on {twice['dataset']}; delete one and run again.")
    return frame.astype({"layer": "Int64", "n": "Int64"} | dict.fromkeys(["depth", *values], "float64"))


def _changes(similar: pd.DataFrame) -> pd.DataFrame:
    """The layer change as rows of a metric; layer 0 has none before it, and its row an empty value."""
    constant = {"metric": CHANGE, "recipe": "", "parameters": "{}", "task": "", "unit": ""}
    keys = [*_PLACE, "depth", "n"]
    parts = [
        similar[keys].assign(value=similar[f"{CHANGE}{suffix}"], variant=variant, **constant)
        for variant, suffix in _VARIANTS.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _with_change_to_final(rows: pd.DataFrame) -> pd.DataFrame:
    last = rows.groupby("model")["step"].transform("max") if len(rows) else rows["step"]
    final = rows[rows["step"] == last][[*CURVE, "layer", "value"]].rename(columns={"value": "final"})
    joined = rows.merge(final, on=[*CURVE, "layer"], how="left", validate="many_to_one")
    return joined.assign(change_to_final=joined["value"] - joined["final"]).drop(columns="final")


def _with_scores(rows: pd.DataFrame, scores: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """``score`` and ``n_tasks``; a mean is over the tasks that all checkpoints of a run have, so that steps compare."""
    found = scores[scores["protocol"] == scores["task"].map(primary_protocols(scores))].dropna(subset=["score"])
    found = found.rename(columns={"model": "name", "readout": "joined_readout"}).merge(points, on="name")
    place = ["name", "joined_readout", "layer"]
    own = found[[*place, "task", "score"]].assign(n_tasks=1)
    present = found.groupby(["model", "task", "joined_readout"])["step"].transform("nunique")
    shared = found[present == found["model"].map(points.groupby("model")["step"].nunique())]
    mean = shared.groupby(place, as_index=False).agg(score=("score", "mean"), n_tasks=("task", "nunique")).assign(task="")
    known = pd.concat([own, mean], ignore_index=True).astype({"layer": "Int64", "n_tasks": "Int64"})
    return rows.merge(known, on=[*place, "task"], how="left", validate="many_to_one")


def _losses(paths: Iterable[PathLike]) -> pd.DataFrame:
    losses: list[Mapping[str, Any]] = []
    for path in in_order(paths):
        record = read_record(path, "name", "checkpoints")
        for point in objects(record["checkpoints"], path, "checkpoints"):
            need(point, path, "step", "train_loss", "heldout_loss")
            kept = {key: point[key] for key in ("step", "train_loss", "heldout_loss")}
            losses.append({"model": record["name"], **kept})
    frame = pd.DataFrame(losses, columns=["model", "step", "train_loss", "heldout_loss"])
    return frame.astype({"step": "int64", "train_loss": "float64", "heldout_loss": "float64"})
