"""Models that the workflow trains: the ``train`` source, one run of which stands for a model at each checkpoint."""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, Field, StringConstraints, ValidationError, model_validator

from layerwise.checkpoints import checkpoint_name, run_of
from layerwise.config_reading import CLOSED
from layerwise.errors import ConfigError

TEXT, IMAGE = "text", "image"
# Objective: what it reads, and the loader of the folders it writes.
OBJECTIVES = {
    "causal_lm": (TEXT, "text"),
    "masked_lm": (TEXT, "text"),
    "state_space": (TEXT, "text"),
    "supervised": (IMAGE, "timm"),
    "mae": (IMAGE, "vision"),
    "clip": (IMAGE, "vision"),
    "aim": (IMAGE, "aim"),
}
# Keys that do not belong to every objective.
_OF_SOME = {
    "tokens": ("causal_lm", "masked_lm", "state_space"),
    "vocabulary": ("causal_lm", "masked_lm", "state_space", "clip"),
    "image_size": ("supervised", "mae", "clip", "aim"),
    "patch": ("supervised", "mae", "clip", "aim"),
    "heads": ("causal_lm", "masked_lm", "supervised", "mae", "clip", "aim"),
    "label": ("supervised",),
    "caption": ("clip",),
}
_NEEDED = {"supervised": ("label", "a column of classes"), "clip": ("caption", "a list of columns")}
_Word = Annotated[str, StringConstraints(strict=True, min_length=1)]


def _whole(low: int, high: int) -> Any:  # noqa: ANN401 - what Field returns
    return Field(ge=low, le=high, strict=True)


class TrainSource(BaseModel):
    """A small model trained from scratch on a dataset of the study.

    Attributes:
        objective: what it learns, which decides its architecture.
        dataset: whose samples it is trained on; a tenth is held out.
        steps, batch, learning_rate, seed: of the training.
        checkpoints: steps at which it is saved, from 0 to ``steps``; 0, 1, 2, 4, 8, ... where left out.
        blocks, width, heads: of the model.
        tokens, vocabulary: longest text, and size of the byte-level BPE that is trained on the texts.
        image_size, patch: pixels.
        label: column whose classes a supervised model learns.
        caption: columns that CLIP's captions are made of.
    """

    model_config = CLOSED

    objective: Literal["causal_lm", "masked_lm", "state_space", "supervised", "mae", "clip", "aim"]
    dataset: _Word
    steps: Annotated[int, _whole(1, 1_000_000)] = 300
    checkpoints: list[Annotated[int, _whole(0, 1_000_000)]] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32, strict=True)] = 0
    batch: Annotated[int, _whole(2, 65_536)] = 64
    learning_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.002
    blocks: Annotated[int, _whole(1, 256)] = 8
    width: Annotated[int, _whole(8, 8192)] = 64
    heads: Annotated[int, _whole(1, 256)] = 4
    tokens: Annotated[int, _whole(4, 8192)] = 48
    vocabulary: Annotated[int, _whole(264, 100_000)] = 512
    image_size: Annotated[int, _whole(8, 1024)] = 32
    patch: Annotated[int, _whole(2, 256)] = 8
    label: _Word | None = None
    caption: Annotated[list[_Word], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key, objectives in _OF_SOME.items():
            if key in self.model_fields_set and self.objective not in objectives:
                raise ValueError(f"{key!r} does not belong to {self.objective}, but to {', '.join(objectives)}")
        key, what = _NEEDED.get(self.objective, ("objective", ""))
        if getattr(self, key) is None:
            raise ValueError(f"objective {self.objective} needs {key!r}, {what} of the dataset")
        if self.width % (4 * self.heads):
            raise ValueError(f"'width: {self.width}' is no multiple of 4 x 'heads: {self.heads}'")
        if self.image_size % self.patch or self.image_size < 2 * self.patch:
            raise ValueError(f"'image_size: {self.image_size}' is no multiple, twice or more, of 'patch: {self.patch}'")
        points = self.checkpoints
        if points is not None and (points != sorted(set(points)) or points[:1] != [0] or points[-1:] != [self.steps]):
            raise ValueError(f"'checkpoints' must rise from 0 to 'steps' ({self.steps}), both included")
        return self

    @property
    def points(self) -> list[int]:
        """The steps at which the model is saved."""
        return log_spaced(self.steps) if self.checkpoints is None else self.checkpoints


def log_spaced(steps: int) -> list[int]:
    """Return 0, the powers of two up to ``steps``, and ``steps``."""
    return sorted({0, steps, *(2**power for power in range(int(math.log2(steps)) + 1))})


def expand_checkpoints(entries: list[Any]) -> list[Any]:
    """Return the model entries with every one that has a ``train`` source replaced by one for each of its checkpoints.

    The entry ``mini`` becomes ``mini@step0``, ``mini@step1`` and so on; the loader is that of the objective, and texts
    are cut to what the model has positions for. What is malformed stays as it is, for the schema to name.

    Raises:
        ConfigError: the entry names a loader or a step of its own.
    """
    expanded: list[Any] = []
    for i, entry in enumerate(entries):
        trained = _train_source(entry)
        if trained is None:
            expanded.append(entry)
            continue
        where = f"config: models: {i} ({entry['name']!r})"
        modality, loader = OBJECTIVES[trained.objective]
        if entry.get("loader", loader) != loader:
            raise ConfigError(
                f"{where}: loader: a model trained as {trained.objective} is read by {loader!r}; leave it out."
            )
        if "step" in entry["source"]:
            raise ConfigError(f"{where}: source: step is set for each checkpoint; write 'checkpoints' inside 'train'.")
        train = entry["source"]["train"] | {"checkpoints": trained.points}
        cut = {"max_tokens": trained.tokens} if modality == TEXT and "max_tokens" not in entry else {}
        for step in trained.points:
            source = entry["source"] | {"train": train, "step": step}
            expanded.append(
                entry | {"name": checkpoint_name(entry["name"], step), "source": source, "loader": loader, **cut}
            )
    return expanded


def _train_source(entry: Any) -> TrainSource | None:  # noqa: ANN401 - nothing is checked yet
    """The valid ``train`` source of a model entry, None for all others."""
    source = entry.get("source") if isinstance(entry, dict) else None
    if not isinstance(source, dict) or not isinstance(entry.get("name"), str):
        return None
    try:
        return TrainSource.model_validate(source.get("train"))
    except ValidationError:
        return None


class Modal(Protocol):
    """A planned dataset, as far as a training run asks."""

    @property
    def modality(self) -> str:
        """What it holds: "text" or "image"."""
        ...


class Trained(Protocol):
    """A model entry, as far as its training is concerned."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def source(self) -> Any:  # noqa: ANN401 - ModelSource, which imports this file
        """Its source."""
        ...


def training_runs(models: Iterable[Trained], datasets: Mapping[str, Modal]) -> dict[str, TrainSource]:
    """Return the training runs of a study by name, each once.

    Args:
        models: of the study, one for each checkpoint.
        datasets: every planned dataset by name.

    Raises:
        ConfigError: a run names no dataset, or one of the other modality.
    """
    runs: dict[str, TrainSource] = {}
    for model in models:
        if model.source.train is None:
            continue
        train, name = model.source.train, run_of(model.name)
        modality = OBJECTIVES[train.objective][0]
        where = f"config: model {name!r}: source: train: dataset names {train.dataset!r}"
        if train.dataset not in datasets:
            raise ConfigError(f"{where}, which is not in the config; known: {', '.join(datasets)}.")
        found = datasets[train.dataset].modality
        if found != modality:
            raise ConfigError(f"{where}, which holds {found}; objective {train.objective} learns from {modality}.")
        runs[name] = train
    return runs
