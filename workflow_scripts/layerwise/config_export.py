"""Entries of ``export``: which model leaves the study cut at which layer, read out how."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, model_validator

from layerwise.config_models import Name
from layerwise.config_reading import CLOSED

BEST, LABEL_FREE = "best", "label-free"
_CHOICE = re.compile(rf"({BEST}|{LABEL_FREE}):(.+)")


def _choice(value: Any) -> int | str:  # noqa: ANN401 - what the config holds
    if isinstance(value, str) and _CHOICE.fullmatch(value):
        return value
    if type(value) is int and value >= 1:
        return value
    raise ValueError(f"{value!r} is no layer; write a number from 1, '{BEST}:TASK' or '{LABEL_FREE}:METRIC'")


class Readout(Protocol):
    """A readout of the config."""

    name: str
    norm: str
    tokens: str
    pool: str


class ExportEntry(BaseModel):
    """One exported model: cut after ``layer``, vectors as ``readout`` makes them, in results/export/{name or model}."""

    model_config = CLOSED
    model: Name
    layer: Annotated[int | str, BeforeValidator(_choice)]
    readout: str = "mean_normed"
    name: Name = ""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:  # noqa: ANN401 - what the config holds
        if isinstance(value, dict) and not value.get("name") and isinstance(value.get("model"), str):
            return {**value, "name": value["model"]}
        return value

    @property
    def chosen_by(self) -> tuple[str, str]:
        """How the layer is chosen: ("best", task), ("label-free", metric) or ("", "")."""
        found = _CHOICE.fullmatch(self.layer) if isinstance(self.layer, str) else None
        return (found[1], found[2]) if found else ("", "")


def check_exports(exports: Iterable[ExportEntry], study: Any) -> None:  # noqa: ANN401 - a Study, which is made of this
    """Refuse exports that name what is not in the study, or that no standard folder can hold.

    Raises:
        ValueError: which entry, and what to write instead.
    """
    models = {entry.name: entry for entry in study.models}
    readouts = {entry.name: entry for entry in study.readouts}
    for entry in exports:
        where = f"export {entry.name!r}:"
        if entry.model not in models:
            raise ValueError(
                f"{where} 'model' names {entry.model!r}, which is not in the config; known: {', '.join(models)} "
                "(a preset that replaces the models wants 'export: []')"
            )
        _check_known(f"{where} 'readout'", entry.readout, readouts)
        by, name = entry.chosen_by
        if by == BEST:
            _check_known(f"{where} 'layer: {entry.layer}'", name, [task.name for task in study.tasks])
        elif by == LABEL_FREE:
            _check_known(f"{where} 'layer: {entry.layer}'", name, [metric.name for metric in study.metrics])
            if not study.tasks:
                raise ValueError(f"{where} 'layer: {entry.layer}' is read from layer_selection.csv, which needs tasks")
        model = models[entry.model]
        if model.loader in ("open_clip", "aim"):
            raise ValueError(
                f"{where} a model of loader {model.loader!r} has no standard folder of its own; only text, vision "
                "and timm are exported"
            )
        obstacle = readout_obstacle(readouts[entry.readout], model.modality, readouts)
        if obstacle:
            raise ValueError(f"{where} {obstacle}")


def readout_obstacle(readout: Readout, modality: str, readouts: Mapping[str, Readout]) -> str:
    """Return why no standard pooling gives this readout, and which comes near; or ""."""
    if readout.norm == "rms":
        return (
            f"readout {readout.name!r} divides by the root mean square, which no folder does; write a norm of none or final"
        )
    if modality == "text" and readout.tokens != "all":
        near = next((r.name for r in readouts.values() if r.pool == "weighted_mean" and r.tokens == "all"), "weighted_mean")
        return (
            f"readout {readout.name!r} leaves tokens out, which no standard pooling does; {near!r}, a standard pooling, "
            "recovers most of what dropping the first token gives: write that"
        )
    return ""


def _check_known(where: str, name: str, known: Iterable[str]) -> None:
    names: Sequence[str] = list(known)
    if name not in names:
        raise ValueError(f"{where} names {name!r}, which is not in the config; known: {', '.join(names) or 'none'}")
