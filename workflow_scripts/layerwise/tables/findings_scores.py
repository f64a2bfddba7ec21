"""Findings about scores: the best layer, what it is worth, who finds it without labels, and what costs nothing."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from layerwise.tables.closing import shown_readouts
from layerwise.tables.curves import PRIMARY, primary_protocols
from layerwise.tables.finding import Options, Unwritten, listed, points, rows_of_model, signed
from layerwise.tables.summary import ALL
from layerwise.tables.task_bootstrap import MIN_TASKS_INTERVAL

Tables = Mapping[str, pd.DataFrame]
FOUND = 0.05  # q-values up to here are called found


def best_layer(tables: Tables, options: Options) -> str:
    """Say which layer is best on the mean over tasks, and how far it is from the last one.

    Args:
        tables: ``layer_summary`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: there is no such row.
    """
    parts = [
        f"`{row['model']}` layer {row['best_layer']:.0f} of {row['n_layers']:.0f} (depth {row['best_depth']:.2f}): "
        f"{points(row['best'])} points, the last layer {points(row['last'])} ({_tasks(row['n_tasks'])})"
        for row in _whole(tables, options)
    ]
    return f"{listed(parts, 'layer_summary.csv')}. Mean over tasks, readout `{options.readout}`."


def gain(tables: Tables, options: Options) -> str:
    """Say what choosing a layer gains over the last where luck cannot help, with its interval.

    Args:
        tables: ``layer_summary`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no row has a cross-fitted gain.
    """
    rows = [row for row in _whole(tables, options) if pd.notna(row["gain_cross_fitted"])]
    single = _single(tables, options).dropna(subset=["gain_low"])
    if not rows and single.empty:
        raise Unwritten("no task keeps outcomes per item, and there are too few tasks to choose on one half of them.")
    parts = []
    for row in rows:
        n = f"{row['n_items']:,.0f} test items" if row["gain_unit"] == "items" else _tasks(row["n_tasks"])
        interval = "no interval" if pd.isna(row["gain_low"]) else f"[{signed(row['gain_low'])}, {signed(row['gain_high'])}]"
        parts.append(f"`{row['model']}` {signed(row['gain_cross_fitted'])} {interval}, n = {n}")
    above, below = int((single["gain_low"] > 0).sum()), int((single["gain_high"] < 0).sum())
    text = "A layer chosen on one half of the items and scored on the other gains over the last, in points (95 %): "
    text += f"{listed(parts, 'layer_summary.csv')}. " if parts else ""
    return f"{text}Of {len(single)} pairs of model and task the interval lies above zero in {above}, below in {below}."


def selection(tables: Tables, options: Options) -> str:
    """Say which label-free pick comes nearest to the oracle, beside the last, the middle and a random layer.

    Args:
        tables: ``layer_selection`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no metric picks a layer.
    """
    parts = []
    for model, own in rows_of_model(tables, "layer_selection", options):
        rows = _headline(own[own["score"].notna()], "readout", options)
        picks, known = rows[rows["metric"] != ""], rows[rows["metric"] == ""].set_index("selector")["score"]
        if picks.empty:
            continue
        best = picks.iloc[int(picks["score"].to_numpy().argmax())]
        reached = f"{points(best['score'])} of the oracle's {points(known['oracle'])} points"
        parts.append(
            f"`{model}`: {_pick(best)} takes layer {best['picked_layer']:.0f} and {reached}; it "
            f"{_against(best['score'] - known)} ({_tasks(best['n_tasks'])}, {_luck(best)})"
        )
    if not parts:
        raise Unwritten("no metric picks a layer; `layer_selection.csv` says why for each.")
    text = "Nearest to the oracle of all label-free picks (which one is, is known only afterwards): "
    return f"{text}{listed(parts, 'layer_selection.csv')}."


def correlation(tables: Tables, options: Options) -> str:
    """Say which metric follows the score most closely beyond depth, and whether that survives the number of tests.

    Args:
        tables: ``correlations`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no relation beyond depth is defined.
    """
    parts, found, tests = [], 0, 0
    for model, own in rows_of_model(tables, "correlations", options):
        kept = (own["layers"] == "all") & (own["pairing"] != "study") & ~own["flag"].str.contains("fewer than")
        rows = _headline(own[kept & own["residual_spearman"].notna()], "score_readout", options)
        if rows.empty:
            continue
        found, tests = found + int((rows["q_task"] <= FOUND).sum()), tests + int(rows["q_task"].notna().sum())
        best = rows.iloc[int(rows["residual_spearman"].abs().to_numpy().argmax())]
        interval = "" if pd.isna(best["residual_low"]) else f" [{best['residual_low']:+.2f}, {best['residual_high']:+.2f}]"
        q = "no permutation test" if pd.isna(best["q_task"]) else f"q = {best['q_task']:.2f}"
        where = best["recipe"] or best["metric_readout"]
        parts.append(
            f"`{model}`: `{best['metric']}` ({best['variant']}, {where}) {best['residual_spearman']:+.2f}{interval} over "
            f"{best['n_layers']:.0f} layers, {_tasks(best['n_tasks'])}, {q}"
        )
    if not parts:
        raise Unwritten("no model has the eight layers below which a quadratic in depth leaves almost nothing.")
    text = "Largest Spearman correlation of metric and score beyond a quadratic in depth: "
    text += f"{listed(parts, 'correlations.csv')}. "
    if not tests:
        return f"{text}None was tested: that takes five tasks with a metric curve on texts of their own."
    return f"{text}After correction for all tests of a model, {found} of {tests} relations are found (q up to {FOUND})."


def baselines(tables: Tables, options: Options) -> str:
    """Say where the best layer is no better than a baseline without a model.

    Args:
        tables: ``layer_summary`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no task has a baseline.
    """
    rows = _single(tables, options).dropna(subset=["best", "baseline_score"])
    if rows.empty:
        raise Unwritten("no task has a baseline without a model.")
    lost = rows[rows["best"] <= rows["baseline_score"]]
    parts = [
        f"`{row['task']}` of `{row['model']}` ({row['best_baseline']} {points(row['baseline_score'])}, best layer "
        f"{points(row['best'])})"
        for row in lost.to_dict("records")
    ]
    text = f"The best layer beats the best of majority, text length, TF-IDF or raw pixels in {len(rows) - len(lost)} of "
    text += f"{len(rows)} pairs of model and task"
    return f"{text}; not in {listed(parts, 'layer_summary.csv')}." if parts else f"{text}."


def _whole(tables: Tables, options: Options) -> list[dict[Hashable, Any]]:
    """The rows of the mean over all tasks, one for each model."""
    rows = _shown(tables, options)
    rows = rows[(rows["task"] == ALL) & (rows["protocol"] == PRIMARY)].dropna(subset=["best_layer"])
    if rows.empty:
        raise Unwritten("no task is scored at every layer.")
    return rows.to_dict("records")


def _single(tables: Tables, options: Options) -> pd.DataFrame:
    """One row for each model and task, at the task's primary protocol."""
    rows = _shown(tables, options)
    rows = rows[rows["task"] != ALL]
    return rows[rows["protocol"] == rows["task"].map(primary_protocols(rows))]


def _shown(tables: Tables, options: Options) -> pd.DataFrame:
    found = [rows for _, rows in rows_of_model(tables, "layer_summary", options)]
    if not found:
        raise Unwritten("no model of the study has scores.")
    rows = pd.concat(found)
    return rows[rows["readout"] == shown_readouts(rows, options.readout)]


def _headline(rows: pd.DataFrame, column: str, options: Options) -> pd.DataFrame:
    """The rows of each task's primary protocol at the headline readout, or at the first of those that are there."""
    rows = rows[rows["protocol"] == PRIMARY]
    names = sorted(set(rows[column]))
    return rows[rows[column] == (options.readout if options.readout in names or not names else names[0])]


def _pick(row: pd.Series) -> str:
    where = row["recipe"] or row["readout"]
    return f"{row['selector'].split('_')[0]} `{row['metric']}` ({row['variant']}, {where}; {row['direction']}'s end)"


def _against(over: pd.Series) -> str:
    """What the pick beats and what not, from its score minus that of the rules that need nothing, in points."""
    names = {"last": "the last layer", "middle": "the middle one", "random": "a random one"}
    parts = {name: f"{text} ({signed(over[name])})" for name, text in names.items()}
    beaten = [text for name, text in parts.items() if round(100 * over[name], 1) > 0]
    others = [text for text in parts.values() if text not in beaten]
    if not beaten:
        return f"beats neither {' nor '.join(others)}"
    return f"beats {' and '.join(beaten)}" + (f", not {' or '.join(others)}" if others else "")


def _luck(row: pd.Series) -> str:
    if pd.isna(row["q_gain"]):
        return f"no interval below {MIN_TASKS_INTERVAL} tasks" if row["n_tasks"] < MIN_TASKS_INTERVAL else "no test"
    return f"over the last: [{signed(row['gain_low'])}, {signed(row['gain_high'])}], q = {row['q_gain']:.2f}"


def _tasks(count: float) -> str:
    return f"{count:.0f} {'task' if count == 1 else 'tasks'}"
