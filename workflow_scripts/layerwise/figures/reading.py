"""The result tables as figures read them: typed columns, and the choice of the cells to draw."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from layerwise.checkpoints import earlier
from layerwise.errors import FileError

TWIN = "-untrained"
FLAGS = ("saturated",)
PROTOCOLS = ("primary", "standardised", "mteb")
OPTIONAL = ("gain_unit", "flag")
USUAL = ('{"alpha":1.0}', '{"alpha": 1.0}')
TEXT = {
    "metrics": "model dataset task metric variant readout recipe parameters tap unit undefined",
    "levels": "transform model dataset task metric variant readout recipe parameters tap unit undefined",
    "scores": "model task type protocol readout tap baseline",
    "layer_summary": "model task type protocol readout best_baseline gain_unit flag",
    "layer_costs": "model task undefined",
    "correlations": "model metric variant recipe metric_readout score_readout parameters protocol pairing metric_text "
    "layers undefined flag",
    "training_dynamics": "model dataset task metric variant readout recipe parameters joined_readout unit",
    "layer_selection": "model readout protocol selector metric variant recipe parameters direction metric_text undefined "
    "flag",
}
NUMBERS = {
    "metrics": "layer depth value normalized null_value null_normalized null_broken_pairs se n n_excluded split_half",
    "levels": "level draw layer depth value normalized null_value null_normalized null_broken_pairs se n n_excluded",
    "scores": "layer depth score n_items n_not_converged",
    "layer_summary": "n_tasks n_items n_layers last best best_layer best_depth oracle tasks_won_by_last gain "
    "gain_cross_fitted gain_low gain_high baseline_score",
    "layer_costs": "layer depth parameters parameters_share flops flops_share tokens",
    "correlations": "n_layers n_tasks spearman kendall dcor dcor2_corrected low high residual_spearman residual_low "
    "residual_high partial_spearman within_task other_task p_task q_task",
    "training_dynamics": "step layer depth value change_to_final stability stability_debiased score n_tasks train_loss "
    "heldout_loss n",
    "layer_selection": "n_tasks n_others score regret picked_layer picked_depth gain_over_last gain_low gain_high q_gain",
}


@dataclass(frozen=True)
class Measure:
    """How a metric is drawn: its name in words, the column, the unit of that column, the scale, and what to explain."""

    title: str
    column: str = "value"
    unit: str = ""
    scale: str = "linear"
    note: str = ""


MEASURES = {
    "prompt_entropy": Measure(
        "prompt entropy",
        "normalized",
        "share of maximum",
        note="Maximum of prompt entropy: log min(T, D) (T \u2212 1 if centred).",
    ),
    "dataset_entropy": Measure(
        "dataset entropy", "normalized", "share of maximum", note="Maximum of dataset entropy: log min(N \u2212 1, D)."
    ),
    "effective_rank": Measure("effective rank", unit="directions", scale="log"),
    "curvature": Measure("curvature", unit="radians"),
    "infonce": Measure("InfoNCE loss", unit="nats"),
    "lidar": Measure("LiDAR", unit="directions", scale="log"),
    "dime": Measure("DiME", unit="nats"),
    "sink_norm_ratio": Measure("first token's norm over the median", unit="times the median", scale="log"),
    "sink_variance_share": Measure("first token's share of the second moment", unit="share"),
    "top_eigenvalue_share": Measure("largest eigenvalue's share", unit="share"),
    "anisotropy": Measure("anisotropy", unit="cosine", note="Mean cosine between different vectors, not centred."),
    "intrinsic_dimension": Measure("intrinsic dimension (TwoNN)", unit="dimensions", scale="log"),
}


def read_tables(paths: Mapping[str, str | os.PathLike[str]]) -> dict[str, pd.DataFrame]:
    """Read the CSV file of each table name; empty cells become "" in text columns and NaN in number columns.

    Raises:
        FileError: a file is not a table.
    """
    frames = {}
    for name, path in paths.items():
        try:
            frames[name] = pd.read_csv(path, dtype=str, keep_default_na=False)
        except (OSError, ValueError) as error:
            raise FileError(f"{path} is not a table ({error}); delete it and run again.") from error
    return {name: table(frames, name) for name in frames}


def table(tables: Mapping[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """Return one table with every column a figure may ask for, typed; an absent table is an empty one.

    Raises:
        FileError: the table has rows but lacks columns, or a number column holds something else.
    """
    text, numbers = TEXT.get(name, "").split(), NUMBERS.get(name, "").split()
    flags = list(FLAGS) if name == "metrics" else []
    frame = tables.get(name)
    if frame is None or frame.empty:
        return _typed(pd.DataFrame({column: pd.Series(dtype=object) for column in text + numbers + flags}), name)
    frame = frame.assign(**{column: "" for column in OPTIONAL if column in text and column not in frame.columns})
    missing = [column for column in text + numbers + flags if column not in frame.columns]
    if missing:
        raise FileError(f"{name}.csv lacks the columns {', '.join(missing)}; delete it and run again.")
    return _typed(frame, name)


def _typed(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    frame = frame.reset_index(drop=True).copy()
    for column in frame.columns:
        cells = frame[column]
        if column in NUMBERS.get(name, "").split():
            try:
                frame[column] = pd.to_numeric(cells.replace("", np.nan)).astype(float)
            except ValueError as error:
                raise FileError(f"{name}.csv has a cell in {column!r} that is no number: {error}.") from error
        else:
            words = cells.astype(object).where(cells.notna(), "").astype(str)
            frame[column] = words.str.lower().isin(["true", "1", "1.0"]) if column in FLAGS else words
    return frame


def first(values: Iterable[str], *preferred: str) -> str:
    """Return the first of ``preferred`` that occurs in ``values``, else the first value, else ""."""
    present = list(dict.fromkeys(values))
    return next((name for name in preferred if name in present), present[0] if present else "")


def unique(values: Iterable[str]) -> list[str]:
    """Return the distinct values that are not empty, in order of appearance."""
    return [value for value in dict.fromkeys(values) if value]


def trained(models: Iterable[str]) -> list[str]:
    """Return the models that get a row of their own.

    Untrained twins whose trained model is there do not, nor do the checkpoints of a run but its last: ``dynamics`` shows
    them.
    """
    names = unique(models)
    hidden = earlier(names)
    return [name for name in names if name not in hidden and not (name.endswith(TWIN) and name.removesuffix(TWIN) in names)]


def ordered(metrics: Iterable[str]) -> list[str]:
    """Return the distinct metrics in the order of ``MEASURES``, those that it does not know after them."""
    present = unique(metrics)
    return [*(name for name in MEASURES if name in present), *(name for name in present if name not in MEASURES)]


def measure(metric: str) -> Measure:
    """Return how ``metric`` is drawn; a metric this file does not know is drawn as its raw value."""
    return MEASURES.get(metric, Measure(metric.replace("_", " ")))


def drawn(frame: pd.DataFrame, how: Measure) -> pd.DataFrame:
    """Add columns ``y``, ``null``, ``broken``, ``band`` and ``y_unit`` to the rows of one metric.

    ``y`` is the column that ``how`` names, or the raw value where that column is empty. The standard error is one of
    the raw value; for a normalised curve it is divided by the same normaliser.
    """
    scaled = how.column == "normalized" and bool(frame["normalized"].notna().any())
    ratio = frame["normalized"] / frame["value"].where(frame["value"] != 0) if scaled else 1.0
    raw_unit = frame["unit"].where(frame["unit"] != "", how.unit if how.column == "value" else "")
    return frame.assign(
        y=frame["normalized"] if scaled else frame["value"],
        null=frame["null_normalized"] if scaled else frame["null_value"],
        broken=frame["null_broken_pairs"] * ratio,
        band=frame["se"] * ratio,
        y_unit=how.unit if scaled else raw_unit,
    )


def metric_rows(metrics: pd.DataFrame, metric: str, variant: str = "paper", how: Measure | None = None) -> pd.DataFrame:
    """Return the rows of one metric and variant on the residual stream, at the ``usual`` parameters."""
    rows = metrics[(metrics["metric"] == metric) & (metrics["variant"] == variant)]
    rows = rows[rows["tap"].isin(["", "residual"])]
    return drawn(rows[rows["parameters"] == usual(rows["parameters"])], how or measure(metric))


def usual(parameters: Iterable[str]) -> str:
    """Return the parameters to draw where there are several: alpha 1, else the first."""
    return first(parameters, *USUAL)


def curve(frame: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return depths and values of one curve, one entry per layer, NaN where a layer is absent or undefined.

    Raises:
        FileError: two rows claim the same layer.
    """
    layer, depth, values = (frame[name].to_numpy(float) for name in ("layer", "depth", column))
    order = np.argsort(layer)[: np.isfinite(layer).sum()]
    layer, depth, values = layer[order], depth[order], values[order]
    if np.any(np.diff(layer) == 0):
        twice = layer[:-1][np.diff(layer) == 0][0]
        raise FileError(f"two rows of the table give layer {twice:.0f} of one curve of {frame['model'].iloc[0]}.")
    if len(layer) == 0:
        return np.empty(0), np.empty(0)
    every = np.arange(layer[0], layer[-1] + 1)
    filled = np.full(len(every), np.nan)
    filled[(layer - layer[0]).astype(int)] = values
    return np.interp(every, layer, depth), filled


def over_tasks(frame: pd.DataFrame, column: str) -> tuple[pd.DataFrame, list[str]]:
    """Average a column over tasks at every layer, over those tasks that have all the layers; return also their names.

    A layer that no task has stays absent, so that every point of the curve averages the same tasks.
    """
    wide = frame.pivot_table(index="layer", columns="task", values=column, aggfunc="mean").dropna(how="all")
    whole = wide.dropna(axis="columns")
    depths = frame.groupby("layer")["depth"].first()
    mean = pd.DataFrame({"layer": whole.index, column: whole.mean(axis="columns").to_numpy()})
    if whole.columns.empty:
        mean = mean.iloc[:0]
    mean["depth"] = depths.reindex(mean["layer"]).to_numpy()
    mean["model"] = first(frame["model"])
    return mean, [str(task) for task in whole.columns]


def at_headline(rows: pd.DataFrame, headline: str) -> pd.DataFrame:
    """Keep one readout per task: ``headline`` where it has it, else its first (an attention probe has only its own)."""
    if rows.empty:
        return rows
    has = (rows["readout"] == headline).groupby(rows["task"]).transform("any")
    first = rows.groupby("task")["readout"].transform("first")
    return rows[rows["readout"] == first.where(~has, headline)]


def one_protocol(rows: pd.DataFrame, keys: Iterable[str] = ("model", "task")) -> pd.DataFrame:
    """Keep one protocol per task (or per ``keys``), the first of ``PROTOCOLS`` that it has."""
    if rows.empty:
        return rows
    chosen = rows.groupby(list(keys), sort=False)["protocol"].transform(_chosen_protocol)
    return rows[rows["protocol"] == chosen]


def _chosen_protocol(protocols: pd.Series) -> str:
    return first(protocols, *PROTOCOLS)


def layers_of(frame: pd.DataFrame) -> str:
    """Return "layers 0 to 30" for the layers that occur in ``frame``."""
    layers = frame["layer"].dropna()
    return f"layers {layers.min():.0f} to {layers.max():.0f}" if len(layers) else "no layers"


def merge_equal(curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Join the names of curves that are the same numbers, so that each line is drawn once: "mean = mean_normed"."""
    groups: list[tuple[list[str], tuple[np.ndarray, np.ndarray]]] = []
    for name, (depth, values) in curves.items():
        for names, (_, other) in groups:
            if values.shape == other.shape and np.allclose(values, other, rtol=1e-9, atol=0, equal_nan=True):
                names.append(name)
                break
        else:
            groups.append(([name], (depth, values)))
    return {" = ".join(names): pair for names, pair in groups}


def limit(names: list[str], most: int, what: str) -> tuple[list[str], str]:
    """Return the first ``most`` names and, where some are left out, the note that says so."""
    if len(names) <= most:
        return names, ""
    return names[:most], f"Drawn: {most} of {len(names)} {what}; the tables hold the rest."


def parameters_text(parameters: str) -> str:
    """Return ``{"alpha": 1.0}`` as "alpha = 1"; what is not a JSON object is returned as it is."""
    try:
        found = json.loads(parameters or "{}")
    except ValueError:
        return parameters
    if not isinstance(found, dict):
        return parameters
    return ", ".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}" for name, value in found.items()
    )
