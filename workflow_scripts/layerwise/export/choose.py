"""Which layer an entry means: a number, the best of a task, or a metric's pick without labels."""

import os
from typing import Any

import pandas as pd

from layerwise.api import LayerScores, best_of, layer_scores
from layerwise.config_export import BEST
from layerwise.errors import FileError, ModelError

# Of several records of one metric, the control without the first token, whose norm alone makes the valley of the others.
_RECIPES = ("", "centre_unit_skip_first", "centre_unit", "raw")


def best_layer(scores: LayerScores, model: str, task: str, readout: str) -> tuple[int, str]:
    """Return the layer of the best score after layer 0, which is no model, and a sentence that says so.

    Raises:
        FileError: no scores of them.
        ModelError: no layer has a score.
    """
    curve = scores.curve(model, task, readout)
    blocks = curve[curve.index > 0]
    if blocks.notna().sum() == 0:
        raise ModelError(f"no layer of model {model!r} has a score of task {task!r}; write a number as 'layer'.")
    how = f"the best layer of task {task!r} by readout {readout!r}, chosen on the items it is scored on"
    better = " (layer 0, the embeddings alone, scores higher)" if best_of(curve) == 0 else ""
    return best_of(blocks), how + better


def label_free_layer(selection: str | os.PathLike[str], model: str, metric: str, readout: str) -> tuple[int, str]:
    """Return the layer that a metric picks most often over the tasks, and a sentence that says how.

    The direction is the one the study selected by, or the theory's where the study named none.

    Args:
        selection: layer_selection.csv.
        model, metric, readout: names.

    Raises:
        FileError: not that table.
        ModelError: the metric picks nothing for this model and readout, with the reason.
    """
    try:
        table = pd.read_csv(selection, dtype=str, keep_default_na=False)
        rows = table[(table["model"] == model) & (table["metric"] == metric) & (table["readout"] == readout)]
        rows = rows[(rows["protocol"] == "primary") & (rows["variant"] == "paper")]
        usable = rows[(rows["undefined"] == "") & (rows["picked_layer"] != "")]
        order = {name: place for place, name in enumerate(_RECIPES)}
        keys = usable["recipe"].map(order).fillna(len(order)), usable["direction"].map({"study": 0}).fillna(1)
        usable = usable.assign(recipe_order=keys[0], direction_order=keys[1]).sort_values(
            ["recipe_order", "direction_order"], kind="stable"
        )
    except (OSError, ValueError, KeyError) as error:
        raise FileError(f"{selection} is not a readable layer_selection.csv ({error}); delete it and run again.") from error
    if usable.empty:
        reasons = sorted({reason for reason in rows["undefined"] if reason})
        raise ModelError(
            f"metric {metric!r} picks no layer of model {model!r} by readout {readout!r} "
            f"({reasons[0] if reasons else 'it is not in layer_selection.csv'}); write a number as 'layer'."
        )
    pick = usable.iloc[0]
    recipe = f", recipe {pick['recipe']}" if pick["recipe"] else ""
    how = f"the label-free pick of {pick['selector']} (direction of the {pick['direction']}{recipe}, read on "
    how += f"{pick['metric_text']}), the most frequent one over {pick['n_tasks']} tasks"
    return int(float(pick["picked_layer"])), how


def chosen_layer(entry: dict[str, Any], by: tuple[str, str], tables: dict[str, str]) -> tuple[int, str]:
    """Return the layer that an entry of ``export`` means, and a sentence on how it was chosen.

    Args:
        entry: the config's: model, layer, readout.
        by: from ``ExportEntry.chosen_by``.
        tables: paths of scores.csv and layer_selection.csv, by name; those that are needed.
    """
    if not by[0]:
        return int(entry["layer"]), "given in the configuration"
    if by[0] == BEST:
        return best_layer(layer_scores(tables["scores"]), entry["model"], by[1], entry["readout"])
    return label_free_layer(tables["layer_selection"], entry["model"], by[1], entry["readout"])


def scores_at(scores: LayerScores, model: str, readout: str, layer: int) -> dict[str, dict[str, Any]]:
    """Return each task's score at ``layer`` and at the last one, by its primary protocol; {} where there are none."""
    rows = scores.rows
    tasks = sorted(set(rows.loc[(rows["model"] == model) & (rows["readout"] == readout), "task"]))
    found = {}
    for task in tasks:
        curve = scores.curve(model, task, readout).dropna()
        if layer in curve.index and len(curve):
            found[task] = {"layer": float(curve[layer]), "last": float(curve.iloc[-1])}
    return found
