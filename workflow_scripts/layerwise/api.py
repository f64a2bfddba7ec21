"""What a notebook asks: the vectors of an activation file and the scores of a finished study, without Snakemake or torch."""

import copy
import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerwise.errors import FileError
from layerwise.store import RESIDUAL, Activations

SCORES = Path("tables") / "scores.csv"
_TEXT = ("model", "task", "type", "protocol", "readout", "baseline")
_NUMBERS = ("layer", "depth", "score")


class LayerActivations:
    """The pooled vectors of one model on one dataset, read from its file as they are asked for; close it, or use ``with``.

    Attributes:
        path: of the file.
        model, dataset: names.
        layers: 0..L; 0 enters the first block, L leaves the last one, before the model's final norm.
        readouts: names of the readouts that are stored.
        ids: of the samples (of a dataset of views: of their sources), in the order of the rows of ``pooled``.
        width: D.
        taps: where in a block layers were read, ``residual`` among them; see ``at``.
        conditions: level and draw of every copy of a sample under a transform of tokens, else none; see ``under``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open and verify the file; see ``load_activations``."""
        self._see(Activations(path))

    def _see(self, store: Activations) -> None:
        self._store, header = store, store.header
        self.path = self._store.path
        self.model, self.dataset, self.width = header.model, header.dataset, header.width
        self.layers: list[int] = list(self._store.layers)
        self.readouts: list[str] = [entry["name"] for entry in header.readouts]
        self.taps: list[str] = list(store.taps)
        self.conditions: list[dict[str, float]] = store.conditions
        one = self._store.n_views == 1 and not self.conditions
        self.ids: list[str] = self._store.ids if one else list(dict.fromkeys(self._store.source_ids))

    def at(self, tap: str) -> Self:
        """Return the same open file at another place inside the blocks, whose layers are 1..L.

        Raises:
            FileError: the file was not read there.
        """
        other = copy.copy(self)
        other._see(self._store.at(tap))
        return other

    def under(self, condition: int) -> Self:
        """Return the same open file with the rows of one of ``conditions`` only, one per sample.

        Raises:
            FileError: there is no such condition.
        """
        other = copy.copy(self)
        other._see(self._store.under(condition))
        return other

    def pooled(self, readout: str, layer: int) -> NDArray[np.float64]:
        """Return (N, D): one vector per sample, in the order of ``ids``; of a dataset of views the first view.

        Raises:
            FileError: no such readout or layer in the file, or a damaged file.
        """
        self._check("readout", readout, self.readouts)
        self._check("layer", layer, self.layers)
        return self._store.pooled(readout, layer)

    def views(self, readout: str, layer: int) -> NDArray[np.float64]:
        """Return (N, V, D): every view of every sample, as metrics of views (InfoNCE, LiDAR, DiME) take them.

        Raises:
            FileError: no such readout or layer in the file, or a damaged file.
        """
        self._check("readout", readout, self.readouts)
        self._check("layer", layer, self.layers)
        return self._store.views(readout, layer)

    def to_frame(self, readout: str, layers: Iterable[int] | None = None) -> pd.DataFrame:
        """Return one row per layer and sample (index ``layer``, ``id``) and D columns 0..D-1.

        Args:
            readout: which one.
            layers: some of ``layers``; all where it is left out.
        """
        wanted = self.layers if layers is None else list(layers)
        rows = [self.pooled(readout, layer) for layer in wanted]
        index = pd.MultiIndex.from_product([wanted, self.ids], names=["layer", "id"])
        return pd.DataFrame(np.concatenate(rows) if rows else np.empty((0, self.width)), index)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file."""
        self.close()

    def __repr__(self) -> str:
        """Say what it holds."""
        layers = f"layers {self.layers[0]}..{self.layers[-1]}"
        return (
            f"LayerActivations({self.model} x {self.dataset}: {len(self.ids)} samples, {layers}, "
            f"{self.width} numbers, readouts {', '.join(self.readouts)})"
        )

    def _check(self, what: str, value: str | int, known: list[str] | list[int]) -> None:
        if value not in known:
            there = ", ".join(map(str, known)) if what == "readout" else f"{known[0]} to {known[-1]}"
            raise FileError(f"{self.path} holds no {what} {value!r}; it has {there}.")


def load_activations(path: str | os.PathLike[str]) -> LayerActivations:
    """Open results/activations/{model}/{dataset}.h5.

    Raises:
        FileError: absent, incomplete, damaged, or of another schema version.
    """
    return LayerActivations(path)


class BestLayer(NamedTuple):
    """The layer of the highest score of one curve; ``score`` and ``last`` are of the same protocol, the task's own unit."""

    model: str
    task: str
    protocol: str
    readout: str
    layer: int
    n_layers: int
    depth: float
    score: float
    last: float


@dataclasses.dataclass(frozen=True)
class LayerScores:
    """The scores of every layer.

    Attributes:
        rows: columns model, task, type, protocol, readout, layer, depth, score; no baselines.
    """

    rows: pd.DataFrame

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return sorted(set(self.rows["model"]))

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks."""
        return sorted(set(self.rows["task"]))

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the rows."""
        return self.rows.copy()

    def curve(self, model: str, task: str, readout: str, protocol: str | None = None) -> pd.Series:
        """Return the scores by layer 0..L, of the task's primary protocol where none is named.

        Raises:
            FileError: there is no such curve; the message names what there is.
        """
        rows = self.rows
        for column, value in {"model": model, "task": task, "readout": readout}.items():
            there = sorted(set(rows[column]))
            if value not in there:
                raise FileError(f"there are no scores of {column} {value!r}; there are: {', '.join(there) or 'none'}.")
            rows = rows[rows[column] == value]
        rows = rows[rows["protocol"] == (protocol or primary_protocol(rows["protocol"]))]
        if rows.empty:
            raise FileError(f"there are no scores of task {task!r} under protocol {protocol!r}.")
        return rows.set_index("layer")["score"].sort_index()

    def best(self, readout: str | None = None) -> list[BestLayer]:
        """Return the best layer of every model, task and readout (or of one), by the task's primary protocol.

        Optimistic by construction: it is the best of all layers on the items it was chosen on. What choosing it is worth
        is ``gain_cross_fitted`` in results/tables/layer_summary.csv.
        """
        rows = self.rows if readout is None else self.rows[self.rows["readout"] == readout]
        found = []
        for key, group in rows.groupby(["model", "task", "readout"]):
            model, task, name = map(str, key)
            protocol = primary_protocol(group["protocol"])
            curve = self.curve(model, task, name, protocol)
            if curve.notna().any():
                layer, last = best_of(curve), int(curve.index.max())
                place = (layer, last, layer / last if last else 0.0)
                found.append(BestLayer(model, task, protocol, name, *place, float(curve[layer]), float(curve[last])))
        return found


def best_of(curve: pd.Series) -> int:
    """Return the first layer of the highest score; ValueError where no layer has one."""
    return int(curve.index.to_numpy()[np.nanargmax(curve.to_numpy())])


def primary_protocol(protocols: Iterable[str]) -> str:
    """Return the protocol that stands for a task, as in the tables: standardised, else mteb, else the first by name."""
    names = sorted(set(protocols))
    return next((name for name in ("standardised", "mteb") if name in names), names[0])


def layer_scores(path: str | os.PathLike[str], model: str | None = None, task: str | None = None) -> LayerScores:
    """Read the scores of every layer of a finished study.

    Args:
        path: the results folder, or a scores.csv.
        model, task: keep one only.

    Raises:
        FileError: no such table, or it is not one; no such model or task in it.
    """
    file = Path(path)
    file = file / SCORES if file.is_dir() else file
    try:
        # as text first: pandas would read a model named "1e3" as a number and one named "NA" as missing
        frame = pd.read_csv(file, dtype=str, keep_default_na=False)
        rows = frame[(frame["baseline"] == "") & frame["tap"].isin(["", RESIDUAL])]
        numbers = {name: rows[name].replace("", "nan").astype("float64") for name in _NUMBERS}
        rows = rows[[name for name in _TEXT if name != "baseline"]].assign(**numbers).astype({"layer": "int64"})
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise FileError(f"{file} is not a readable table of scores ({reason}); run 'make run' first.") from error
    for column, value in (("model", model), ("task", task)):
        if value is not None:
            there = sorted(set(rows[column]))
            if value not in there:
                raise FileError(f"{file} has no {column} {value!r}; it has: {', '.join(there) or 'none'}.")
            rows = rows[rows[column] == value]
    return LayerScores(rows.reset_index(drop=True))
