"""published_*.csv: the study's own results in the terms of this project, and against ours.

The study's Table 2 comes out exactly from its files: the first subset of each task, metrics on the test split without
normalization, the smallest value picked per task. Its scores are taken after the model's final norm at every layer, so
our readout ``mean_normed`` is the one to compare them with. In its Mamba files a metric lies one block above the score
of the same number.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from layerwise.errors import ConfigError, FileError
from layerwise.tables.correlation import correlations
from layerwise.tables.published_files import MODEL, Published
from layerwise.tables.published_model import PROTOCOL, PublishedModel, published_models
from layerwise.tables.selection import layer_selection
from layerwise.tables.summary import ALL, layer_summary

SUMMARY = (*MODEL, "n_tasks", "best_layer", "best", "last")
LAYERS = (*MODEL, "layer", "depth", "n_tasks", "score")
SELECTION = (*MODEL, "selector", "n_tasks", "score")
CORRELATIONS = (
    *MODEL, "metric", "n_tasks", "spearman", "kendall", "dcor", "partial_spearman", "within_task", "other_task", "p_task",
)  # fmt: skip
COMPARISON = ("model", "task", "layer", "published", "ours", "difference", "readout", "protocol")
TABLES = {
    "published_summary": SUMMARY,
    "published_layers": LAYERS,
    "published_selection": SELECTION,
    "published_correlations": CORRELATIONS,
}

SELECTING = ("dime", "infonce", "dataset_entropy")  # the study's Table 2; it takes the smallest value of each
BASELINES = ("last", "middle", "random", "oracle", "other_tasks")

_POINTS = 100.0


def published_tables(published: Published, seed: int = 0) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Build the tables of the published numbers; scores in points (100 times the main score).

    Args:
        published: from ``published_files.read_published``.
        seed: of the permutations.

    Returns:
        Tables by name, and notes on what is missing, a sentence each. Every table has a row per model and

        - published_summary: nothing else. ``best_layer`` is the best single layer of the mean over ``n_tasks`` tasks.
        - published_layers: layer, with the mean score of these tasks.
        - published_selection: selector, on the tasks that have all metrics of ``SELECTING``: "min-{metric}" (one layer
          per task), last, middle (L // 2), random (mean over layers), oracle (best layer of each task) and
          other_tasks (best on the mean of the other tasks).
        - published_correlations: metric, on its own tasks: see ``correlation.correlations``. Only for models with every
          layer.

        Tasks are those with a score at every layer; layers with fewer than 75 % of a model's tasks are left out. A
        number that needs a missing layer is missing.
    """
    models = published_models(published)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for model in models:
        if model.scores.empty:
            continue
        rows["published_summary"].append(_summary(model))
        rows["published_layers"] += _layers(model)
        rows["published_selection"] += _selection(model)
        rows["published_correlations"] += _correlations(model, seed)
    tables = {name: pd.DataFrame(rows[name], columns=[*columns]) for name, columns in TABLES.items()}
    tables["published_summary"] = tables["published_summary"].astype({"best_layer": "Int64"})
    return tables, [*published.notes, *(note for model in models for note in model.notes)]


def compare(published: Published, ours: pd.DataFrame, models: Mapping[str, str]) -> tuple[pd.DataFrame, list[str]]:
    """Put published scores and ours of the same task and layer side by side.

    Args:
        published: from ``published_files.read_published``.
        ours: columns ``frames.SCORE_COLUMNS``.
        models: our model -> "family/size/revision" of the published one.

    Returns:
        ``COMPARISON``: ``published`` and ``ours`` in points, ``difference`` ours - published; a row per readout and
        protocol of ours. The published score is of the task's first subset. And a note per model without common tasks.

    Raises:
        ConfigError: ``models`` names a model that is not there.
        FileError: the two models differ in their number of layers.
    """
    parts, notes = [], []
    first = published.scores[published.scores["subset_order"] == 0]
    for model, name in models.items():
        theirs = first[first[MODEL].agg("/".join, axis=1) == name]
        mine = ours[(ours["model"] == model) & (ours["baseline"] == "") & ours["tap"].isin(["", "residual"])]
        mine = mine.dropna(subset=["layer"])
        for rows, what, known in ((theirs, name, first[MODEL].agg("/".join, axis=1)), (mine, model, ours["model"])):
            if rows.empty:
                there = ", ".join(sorted(set(known) - {""})) or "none"
                raise ConfigError(f"MODEL={model}={name}: there are no scores of {what!r}; write one of {there}.")
        if theirs["layer"].max() != mine["layer"].max():
            raise FileError(
                f"{model} has {mine['layer'].max()} layers and {name} has {theirs['layer'].max()}, so their layers are "
                "not the same; name another model in MODEL."
            )
        both = theirs[["task", "layer", "main_score"]].merge(mine.astype({"layer": "int64"}), on=["task", "layer"])
        if both.empty:
            notes.append(f"{model} and {name} have no task in common.")
        parts.append(both.assign(published=both["main_score"] * _POINTS, ours=both["score"] * _POINTS))
    table = pd.concat(parts) if parts else pd.DataFrame(columns=["published", "ours"])
    table = table.assign(difference=table["ours"] - table["published"]).reindex(columns=[*COMPARISON])
    numbers = ["published", "ours", "difference"]
    table = table.astype(dict.fromkeys(numbers, "float64")).round(dict.fromkeys(numbers, 4))
    order = ["model", "task", "protocol", "readout", "layer"]
    return table.sort_values(order).reset_index(drop=True), notes


def _points(score: float) -> float:
    return round(_POINTS * float(score), 4)


def _summary(model: PublishedModel) -> dict[str, Any]:
    table = layer_summary(model.scores)
    row = table[(table["task"] == ALL) & (table["protocol"] == PROTOCOL)].iloc[0]
    last = row["last"] if model.layers[-1] == model.last else float("nan")
    best = {"best_layer": model.layers[row["best_layer"]], "best": _points(row["best"]), "last": _points(last)}
    return model.keys | {"n_tasks": int(row["n_tasks"])} | best


def _layers(model: PublishedModel) -> list[dict[str, Any]]:
    means = model.scores.groupby("layer")["score"].agg(["mean", "size"])
    return [
        model.keys
        | {"layer": layer, "depth": layer / model.last, "n_tasks": int(row["size"]), "score": _points(row["mean"])}
        for layer, (_, row) in zip(model.layers, means.iterrows(), strict=True)
    ]


def _selection(model: PublishedModel) -> list[dict[str, Any]]:
    ends = {metric: {"released": {"theory": None, "study": "min"}} for metric in SELECTING}
    table = layer_selection(model.metrics, model.scores, None, ends)
    table = table[(table["protocol"] == PROTOCOL) & (table["undefined"] == "")]
    found = {str(row["selector"]): row for row in table.to_dict("records")}
    rows = []
    for selector in (*(f"min_{metric}" for metric in SELECTING), *BASELINES):
        row = found.get(selector)
        fixed = {"last": model.last, "middle": model.last // 2}.get(selector)
        if row is None or (fixed is not None and model.layers[int(row["picked_layer"])] != fixed):
            continue
        name = selector.replace("_", "-", 1) if selector.startswith("min_") else selector
        rows.append(model.keys | {"selector": name, "n_tasks": int(row["n_tasks"]), "score": _points(row["score"])})
    return rows


def _correlations(model: PublishedModel, seed: int) -> list[dict[str, Any]]:
    if not model.whole or model.metrics.empty:
        return []
    table = correlations(model.metrics, model.scores, seed)
    kept = (table["protocol"] == PROTOCOL) & (table["layers"] == "all") & (table["metric_text"] == "own")
    rows = table[kept & (table["undefined"] == "")].reindex(columns=[*CORRELATIONS[len(MODEL) :]]).round(4)
    return [model.keys | {str(name): value for name, value in row.items()} for row in rows.to_dict("records")]
