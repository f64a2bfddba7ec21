"""Result files into long tables, joined by key. A file that contradicts another stops the table: nothing is guessed."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from layerwise.errors import FileError
from layerwise.records import read_record
from layerwise.tables.frames import (
    LEVEL_COLUMNS,
    LEVEL_KEY,
    METRIC_COLUMNS,
    METRIC_KEY,
    RESIDUAL,
    SCORE_COLUMNS,
    SCORE_KEY,
    typed,
)
from layerwise.tables.items import item_store
from layerwise.tables.missing import missing_table
from layerwise.tables.reading import PathLike, checked_layers, in_order, need, objects

__all__ = ["item_store", "levels_table", "metrics_table", "missing_table", "scores_table", "without_outcomes"]

_METRIC_FIELDS = ("model", "dataset", "task", "metric", "unit", "n_layers", "records")
_TASK_FIELDS = ("model", "task", "type", "main_score", "readouts")


Rows = list[dict[str, Any]]


def metrics_table(paths: Iterable[PathLike]) -> pd.DataFrame:
    """Read metric records into one row per model, dataset, metric, variant, readout or recipe, parameters, tap and layer.

    Args:
        paths: ``results/metrics/{model}/{dataset}/{metric}.json``, in any order.

    Returns:
        Columns ``frames.METRIC_COLUMNS``, sorted by key. ``readout`` or ``recipe`` is empty; ``parameters`` is compact
        JSON with sorted keys; ``depth`` lies in [0, 1]; ``value``, ``null_value`` and ``se`` are in ``unit``; an
        undefined layer has no ``value`` and its reason in ``undefined``.

    Raises:
        FileError: an unreadable record, two records for one cell, a layer missing or too many, or two layer counts of
            one model.
    """
    records = [(path, read_record(path, *_METRIC_FIELDS)) for path in in_order(paths)]
    rows = [row for path, record in records for row in _rows(_metric_rows, path, record)]
    return _table(rows, METRIC_COLUMNS, METRIC_KEY)


def levels_table(paths: Iterable[PathLike]) -> pd.DataFrame:
    """Read the metric records of datasets whose tokens a transform changed; as ``metrics_table``, a row per level and draw.

    Returns:
        Columns ``frames.LEVEL_COLUMNS``: ``transform``, ``level`` (a probability, a share, or a number of tokens) and
        ``draw`` before those of ``metrics_table``.

    Raises:
        FileError: as for ``metrics_table``.
    """
    records = [(path, read_record(path, *_METRIC_FIELDS, "transform")) for path in in_order(paths)]
    rows = [row for path, record in records for row in _rows(_metric_rows, path, record)]
    return _table(rows, LEVEL_COLUMNS, LEVEL_KEY)


def scores_table(task_paths: Iterable[PathLike], baseline_paths: Iterable[PathLike] = ()) -> pd.DataFrame:
    """Read task scores and baselines into one row per model, task, protocol, readout and layer.

    Args:
        task_paths: ``results/tasks/{model}/{task}.json``, in any order.
        baseline_paths: ``results/data/{task}/baselines.json``, in any order.

    Returns:
        Columns ``frames.SCORE_COLUMNS``, sorted by key; ``score`` in the task's own unit (a fraction for MTEB), NaN
        where the task recorded none; ``n_items`` where the task keeps per-item outcomes; ``n_not_converged`` for the
        protocol "mteb" only. Baseline rows have a ``baseline`` and neither model, readout nor layer.

    Raises:
        FileError: an unreadable record, two records for one cell, a layer missing or too many, two layer counts of one
            model, two types of one task, or one task scored on two data revisions, dataset digests or mteb versions; one
            task of mteb at two revisions under two names.
    """
    tasks = [(path, read_record(path, *_TASK_FIELDS)) for path in in_order(task_paths)]
    baselines = [(path, read_record(path, "task", "type", "baselines")) for path in in_order(baseline_paths)]
    for field in ("data_revision", "dataset_digest", "mteb"):
        _refuse_two(tasks, field)
    _refuse_two([*tasks, *baselines], "type")
    _refuse_two_revisions(tasks)
    rows = [row for path, record in tasks for row in _rows(_task_rows, path, record)]
    rows += [row for path, record in baselines for row in _rows(_baseline_rows, path, record)]
    return _table(rows, SCORE_COLUMNS, SCORE_KEY)


def _rows(parse: Callable[[Path, dict[str, Any]], Rows], path: Path, record: dict[str, Any]) -> Rows:
    """Parse one record; whatever in it has the wrong type is an error of the file, not of the program."""
    try:
        return parse(path, record)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is not built like a record of its stage ({error!r}); delete it and run again.") from error


def _metric_rows(path: Path, record: dict[str, Any]) -> Rows:
    shared = {key: record[key] for key in ("model", "dataset", "metric", "unit")} | {"task": record["task"] or ""}
    shared |= {"transform": record.get("transform", "")}
    rows = []
    for entry in objects(record["records"], path, "records"):
        need(entry, path, "variant", "parameters", "n_samples", "layers")
        if ("readout" in entry) == ("recipe" in entry):
            raise FileError(f"{path}: a record needs either a readout or a recipe; delete the file and run again.")
        curve = shared | {
            "variant": entry["variant"] or "",
            "readout": entry.get("readout", ""),
            "recipe": entry.get("recipe", ""),
            "parameters": json.dumps(entry["parameters"] or {}, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
            "tap": entry.get("tap", RESIDUAL),
            **{key: entry.get(key) for key in ("level", "draw")},
            "n": entry["n_samples"],
            "saturated": bool(entry.get("saturated", False)),
            **{key: entry.get(key) for key in ("null_value", "null_normalized", "null_broken_pairs")},
            **{key: entry.get(key) for key in ("n_excluded", "split_half")},
            "path": str(path),
        }
        name = f"{path}, {curve['readout'] or curve['recipe']} of variant {curve['variant']!r}"
        name += "" if curve["level"] is None else f", level {curve['level']:g}, draw {curve['draw']}"
        name += "" if curve["tap"] == RESIDUAL else f" at tap {curve['tap']}"
        first = int(curve["tap"] != RESIDUAL)  # before the first block there is no tap
        layers = checked_layers(entry["layers"], name, record["n_layers"], first)
        rows += [curve | _metric_cell(layer) for layer in layers]
    return rows


def _metric_cell(layer: Mapping[str, Any]) -> dict[str, Any]:
    value = layer.get("value")
    reason = layer.get("undefined", "" if value is not None else "no value recorded")
    cell = {key: layer.get(key) for key in ("layer", "depth", "normalized")}
    return cell | {"value": value, "se": layer.get("standard_error"), "undefined": reason}


def _task_rows(path: Path, record: dict[str, Any]) -> Rows:
    items = record.get("items")
    shared = {key: record[key] for key in ("model", "task", "type")}
    shared |= {"tap": RESIDUAL, "n_items": len(items["gold"]) if items else None, "baseline": "", "path": str(path)}
    rows = []
    for readout, layers in record["readouts"].items():
        for layer in checked_layers(layers, f"{path}, readout {readout!r}"):
            need(layer, path, "main_score")
            scores = layer.get("scores") or {"mteb": layer["main_score"]}
            if "mteb" in scores and scores["mteb"] != layer["main_score"]:
                raise FileError(
                    f"{path}: readout {readout!r}, layer {layer['layer']} has main score {layer['main_score']} but "
                    f"mteb score {scores['mteb']}; delete the file and run again."
                )
            cell = shared | {"readout": readout, "layer": layer["layer"], "depth": layer["depth"]}
            rows += [
                cell
                | {"protocol": protocol, "score": score}
                | {"n_not_converged": layer.get("n_not_converged") if protocol == "mteb" else None}
                for protocol, score in scores.items()
            ]
    return rows


def _baseline_rows(path: Path, record: dict[str, Any]) -> Rows:
    rows = []
    for entry in objects(record["baselines"], path, "baselines"):
        need(entry, path, "baseline", "protocol", "score")
        rows.append({"model": "", "task": record["task"], "type": record["type"], "readout": "", "path": str(path)} | entry)
    return rows


def _table(rows: Rows, columns: Sequence[str], key: Sequence[str]) -> pd.DataFrame:
    frame = typed(pd.DataFrame(rows, columns=[*columns]))
    paths = pd.Series([row["path"] for row in rows], dtype=object)
    _refuse_duplicates(frame, key, paths)
    _refuse_layer_counts(frame, paths)
    return frame.sort_values([*key]).reset_index(drop=True)


def _refuse_duplicates(frame: pd.DataFrame, key: Sequence[str], paths: pd.Series) -> None:
    repeated = frame.duplicated([*key], keep=False)
    if repeated.any():
        group = frame.loc[repeated, [*key]].groupby([*key], dropna=False)
        values, rows = next(iter(group))
        named = zip(key, values, strict=True)
        cell = ", ".join(f"{name} {value}" for name, value in named if str(value) not in ("", "<NA>"))
        places = " and ".join(sorted(set(paths[rows.index])))
        raise FileError(f"two records for one cell ({cell}) in {places}; delete the one that is out of date.")


def _refuse_layer_counts(frame: pd.DataFrame, paths: pd.Series) -> None:
    layered = frame[frame["layer"].notna()].assign(path=paths)
    counts = layered.groupby(["model", "path"])["layer"].max().reset_index()
    for model, group in counts.groupby("model"):
        if group["layer"].nunique() > 1:
            low, *_, high = group.sort_values(["layer", "path"]).to_dict("records")
            raise FileError(
                f"model {model!r} has {low['layer']} layers in {low['path']} and {high['layer']} in {high['path']}; "
                "delete the files of the other model version and run again."
            )


def _refuse_two(records: Iterable[tuple[Path, Mapping[str, Any]]], field: str) -> None:
    seen: dict[str, tuple[Any, Path]] = {}
    for path, record in records:
        versions = (record.get("provenance") or {}).get("versions") or {}
        value = versions.get("mteb") if field == "mteb" else record.get(field)
        if value is None:
            continue
        other, where = seen.setdefault(record["task"], (value, path))
        if other != value:
            raise FileError(
                f"task {record['task']!r} has two values of {field.replace('_', ' ')}: {other} in {where} and {value} "
                f"in {path}; their scores cannot be compared, delete the older files and run again."
            )


def _refuse_two_revisions(records: Iterable[tuple[Path, Mapping[str, Any]]]) -> None:
    """Refuse one task of mteb that two entries of the config name, at two revisions of its data."""
    seen: dict[str, tuple[str, str, Path]] = {}
    for path, record in records:
        facts = record.get("benchmark") or {}
        if not facts or facts.get("local"):
            continue
        other, name, where = seen.setdefault(facts["task"], (facts["revision"], record["task"], path))
        if other != facts["revision"]:
            raise FileError(
                f"mteb's {facts['task']} is scored at two revisions: {other} as task {name!r} in {where} and "
                f"{facts['revision']} as task {record['task']!r} in {path}; keep one of the two entries."
            )


def without_outcomes(task_paths: Iterable[PathLike]) -> Rows:
    """Return model, task and reason of every task record without per-item outcomes, which has no cross-fitted gain."""
    records = [read_record(path, *_TASK_FIELDS) for path in in_order(task_paths)]
    return [
        {"model": record["model"], "task": record["task"], "reason": f"no cross-fitted gain: {record['items_absent']}"}
        for record in records
        if not record.get("items") and record.get("items_absent")
    ]
