"""The configuration: a closed schema with its defaults, checked before any job runs.

``load_study`` turns the mapping that Snakemake read into a ``Study``; every failure is one sentence that names the entry.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from layerwise.config_datasets import DatasetEntry, Derivation
from layerwise.config_export import ExportEntry, check_exports
from layerwise.config_models import ModelSource, Name, Revision, Seed, expand_revisions
from layerwise.config_probe import ATTENTION_PROBE
from layerwise.config_reading import Closed, sentence
from layerwise.config_tasks import Count, TaskEntry
from layerwise.errors import ConfigError

NAME_PATTERN = r"^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._@-]{0,99}\Z"
WINDOWS_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(1, 10))}
Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,29}$")]
Recipe = Literal["raw", "centre_unit", "centre_unit_skip_first", "unit", "unit_skip_first"]


class ModelEntry(Closed):
    """One model, or one for each of ``revisions``."""

    name: Name
    source: ModelSource
    loader: Literal["text", "vision", "timm", "open_clip", "aim"] = "text"
    revisions: Annotated[list[Revision], Field(min_length=1)] | None = None
    datasets: list[str] | None = None
    labels: dict[Label, str | int | float] = {}
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    attention: Literal["model", "bidirectional"] = "model"
    max_tokens: Annotated[int, Field(ge=2, strict=True)] = 256
    preprocessing: Literal["model", "study"] = "model"
    image_size: Annotated[int, Field(ge=8, le=4096, strict=True)] | None = None
    batch_tokens: Count = 4096
    threads: Count = 4
    device: Annotated[str, StringConstraints(pattern=r"^(auto|cpu|cuda|cuda:\d+|mps|split)$")] = "auto"

    @property
    def modality(self) -> str:
        """What it reads: "text" or "image"."""
        return "text" if self.loader == "text" else "image"


class ReadoutEntry(Closed):
    """How the tokens of one sample become one vector."""

    name: Name
    norm: Literal["none", "final", "rms"] = "none"
    tokens: Literal["all", "content", "skip_first"] = "all"
    pool: Literal["mean", "weighted_mean", "last", "first"] = "mean"


class MetricEntry(BaseModel):
    """One metric; further keys are its parameters, checked against the metric itself."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: Name

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as written."""
        return dict(self.model_extra or {})


DEFAULT_READOUTS = [
    ReadoutEntry(name="mean"),
    ReadoutEntry(name="mean_normed", norm="final"),
    ReadoutEntry(name="mean_skip_first", tokens="skip_first"),
    ReadoutEntry(name="weighted_mean", pool="weighted_mean"),
]


class Study(Closed):
    """The whole configuration."""

    title: str = "layerwise study"
    seed: Seed = 0
    models: Annotated[list[ModelEntry], Field(min_length=1)]
    datasets: list[DatasetEntry]
    tasks: list[TaskEntry] = []
    readouts: Annotated[list[ReadoutEntry], Field(min_length=1)] = DEFAULT_READOUTS
    headline_readout: str = "mean_normed"
    headline_dataset: str = ""
    recipes: Annotated[list[Recipe], Field(min_length=1)] = ["raw", "centre_unit", "centre_unit_skip_first"]
    metrics: list[MetricEntry] = []
    task_metrics: list[str] = []
    task_views: Derivation | None = None
    keep_task_activations: bool = True
    storage: Literal["float32", "float16"] = "float32"
    compression: Literal["gzip", "lzf"] | None = None
    export: list[ExportEntry] = []

    @model_validator(mode="after")
    def _names(self) -> Self:
        for kind in ("models", "datasets", "tasks", "readouts", "metrics", "export"):
            _check_names(kind, [entry.name for entry in getattr(self, kind)])
        both = {d.name.casefold() for d in self.datasets} & {t.name.casefold() for t in self.tasks}
        if both:
            raise ValueError(f"{min(both)!r} names a dataset and a task, which share one folder; rename one")
        return self

    @model_validator(mode="after")
    def _references(self) -> Self:
        datasets = [d.name for d in self.datasets]
        metrics = [m.name for m in self.metrics]
        for model in self.models:
            twin = model.source.random
            if twin is not None:
                _check_known(
                    f"model {model.name!r}: 'random: like'", twin.like, [m.name for m in self.models if not m.source.random]
                )
                loader = next(m.loader for m in self.models if m.name == twin.like)
                if loader != model.loader:
                    raise ValueError(
                        f"model {model.name!r}: 'loader' is {model.loader!r}, its twin's is {loader!r}; write that"
                    )
            for name in model.datasets or []:
                _check_known(f"model {model.name!r}: 'datasets'", name, datasets + [t.name for t in self.tasks])
                images = next((t.dataset for t in self.tasks if t.name == name and t.modality == "image"), None)
                if images is not None:
                    raise ValueError(
                        f"model {model.name!r}: 'datasets' names {name!r}, a task on images that has no vectors of its own; "
                        f"write its dataset {images!r}"
                    )
        for dataset in self.datasets:
            if dataset.source.parent is not None:
                kind = "dataset" if dataset.source.traces is None else "traces: dataset"
                _check_known(f"dataset {dataset.name!r}: 'source: {kind}'", dataset.source.parent, datasets)
                _check_origin(dataset.name, {d.name: d.source.parent for d in self.datasets})
            if dataset.source.traces is not None:
                writers = [m.name for m in self.models if m.modality == "text"]
                _check_known(f"dataset {dataset.name!r}: 'source: traces: model'", dataset.source.traces.model, writers)
            wanted = [dataset.metrics, *(derivation.metrics for derivation in dataset.derive)]
            for metric in (name for names in wanted for name in names or []):
                _check_known(f"dataset {dataset.name!r}: 'metrics'", metric, metrics)
        for task in self.tasks:
            if task.dataset is not None:
                _check_known(f"task {task.name!r}: 'dataset'", task.dataset, datasets)
            if task.type == ATTENTION_PROBE and "attention" in [r.name for r in self.readouts]:
                raise ValueError(f"readout 'attention' has the name that the scores of task {task.name!r} go by; rename it")
        if self.task_views is not None and self.task_views.conditions:
            raise ValueError(f"'task_views' need a transform that makes views, not {self.task_views.transform!r}")
        for metric in self.task_metrics:
            _check_known("'task_metrics'", metric, metrics)
        _check_known("'headline_readout'", self.headline_readout, [r.name for r in self.readouts])
        check_exports(self.export, self)
        return self


def _check_names(kind: str, names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not re.fullmatch(NAME_PATTERN, name) or name.split(".")[0].casefold() in WINDOWS_DEVICES:
            raise ValueError(
                f"{kind}: {name!r} is not a usable name; use letters, digits, '.', '_', '-' and '@', starting with a "
                "letter or digit, at most 100 characters"
            )
        if name.casefold() in seen:
            raise ValueError(f"{kind}: {name!r} and {seen[name.casefold()]!r} would share one file; rename one")
        seen[name.casefold()] = name


def _check_known(where: str, name: str, known: list[str]) -> None:
    if name not in known:
        raise ValueError(f"{where} names {name!r}, which is not in the config; known: {', '.join(known) or 'none'}")


def _check_origin(name: str, parents: dict[str, str | None]) -> None:
    chain = [name]
    while (parent := parents.get(chain[-1])) is not None:
        if parent in chain:
            raise ValueError(f"datasets: {' is drawn from '.join([*chain, parent])}; one of them needs a source of its own")
        chain.append(parent)


def load_study(config: dict[str, Any]) -> Study:
    """Check a configuration and fill in its defaults.

    Args:
        config: the mapping read from the config files.

    Raises:
        ConfigError: the first thing that is wrong, in one sentence.
    """
    config = expand_revisions(config)
    try:
        return Study.model_validate(config)
    except ValidationError as error:
        raise ConfigError(sentence(error, config, Study)) from None
