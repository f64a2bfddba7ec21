"""What the report says of a figure before it is opened: its subject and n, read from the finished tables.

n is known only after the run, so it cannot stand in a caption, which is a parameter of the rule.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from layerwise.figures import model_metrics, reading, registry

SUBJECTS = {
    "scores": "scores of every layer",
    "depth_profile": "mean score over depth",
    "best_layers": "depth of the best layers",
    "gains": "gain over the last layer",
    "score_vs_cost": "scores against the cost of the cut model",
    "metric_vs_score": "metrics against scores",
    "correlations": "correlation of metrics and scores",
    "correlation_matrix": "correlation of metrics and scores by readout",
    "selection": "layers picked without labels",
    "valley": "compression valley",
    "sink": "first token and compression valley",
    "released": "definition and authors' code",
    "model_scores": "scores on every task",
    "model_metrics": "metrics",
    "dynamics": "training dynamics",
    "levels": "metrics by level",
    "compared": "layers by",
    "taps": "metrics inside the blocks",
}


def subject(name: str, tables: Mapping[str, pd.DataFrame], options: Mapping[str, Any]) -> str:
    """Return such as "scores of every layer, n = 160 to 1225 test items".

    Args:
        name: the file name of the figure, as ``registry.resolve`` takes it.
        tables: the result tables by name.
        options: what the figure takes from the config.

    Raises:
        ConfigError: no figure has this name.
    """
    figure, own = registry.resolve(name)
    title = reading.measure(own["metric"]).title if "metric" in own else SUBJECTS[figure]
    title += f" {own['label']}" if "label" in own else ""
    return ", ".join(part for part in (title, *_counted(figure, tables, {**options, **own})) if part)


def _counted(figure: str, tables: Mapping[str, pd.DataFrame], options: Mapping[str, Any]) -> list[str]:
    if figure in ("scores", "gains", "score_vs_cost", "model_scores"):
        rows = reading.table(tables, "scores").dropna(subset=["layer", "score"])
        rows = rows[rows["model"] == options["model"]] if "model" in options else rows
        return [_span(rows["n_items"], "test items")]
    if figure in ("depth_profile", "best_layers"):
        rows = _of_trained(reading.table(tables, "layer_summary"))
        rows = rows[(rows["task"] != "all") & rows["best_layer"].notna()]
        return [_span(rows.groupby("model")["task"].nunique(), "tasks")]
    if figure in ("correlations", "correlation_matrix", "metric_vs_score"):
        rows = _of_trained(reading.table(tables, "correlations"))
        rows = rows[rows["layers"] == "all"]
        return [_span(rows["n_layers"], "layers"), _span(rows["n_tasks"], "tasks")]
    if figure == "selection":
        return [_span(_of_trained(reading.table(tables, "layer_selection"))["n_tasks"], "tasks")]
    return [_span(_samples(figure, tables, options), "samples")]


def _of_trained(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["model"].isin(reading.trained(rows["model"]))]


def _samples(figure: str, tables: Mapping[str, pd.DataFrame], options: Mapping[str, Any]) -> pd.Series:
    """Return n of the metric values that a figure draws from."""
    if figure == "dynamics":
        rows = reading.table(tables, "training_dynamics")
        return rows[rows["model"] == options["model"]]["n"]
    if figure == "levels":
        rows = reading.table(tables, "levels")
        return rows[(rows["dataset"] == options["dataset"]) & rows["value"].notna()]["n"]
    if figure == "compared":
        rows = reading.table(tables, "metrics")
        return rows[rows["model"].isin(list(options["values"])) & (rows["task"] == "") & rows["value"].notna()]["n"]
    if figure == "model_metrics":
        headlines = {"readout": "", "recipe": ""}
        found = model_metrics.parts(tables, options["model"], options["twin"], options["dataset"], headlines)
        return pd.concat([pd.Series(dtype=float), *(part.rows["n"] for part in found)])
    rows = reading.table(tables, "metrics").dropna(subset=["value"])
    if figure == "taps":
        return rows[~rows["tap"].isin(["", "residual"])]["n"]
    if figure == "released":
        return rows[rows["variant"] == "released"]["n"]
    metric = options.get("metric", "sink_norm_ratio" if figure == "sink" else "prompt_entropy")
    rows = reading.metric_rows(rows, metric)
    named = rows[rows["dataset"] == options["dataset"]] if figure in ("valley", "sink") else rows
    return (named if len(named) else rows)["n"]


def _span(values: pd.Series, what: str) -> str:
    known = values.dropna()
    if known.empty:
        return ""
    low, high = known.min(), known.max()
    return f"n = {low:.0f} {what}" if low == high else f"n = {low:.0f} to {high:.0f} {what}"
