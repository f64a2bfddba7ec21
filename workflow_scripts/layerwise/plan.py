"""What a study asks for: every dataset, every metric on it, and what cannot be had, with the reason."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

from layerwise.config import ModelEntry, Study
from layerwise.config_datasets import DatasetEntry, Derivation
from layerwise.config_tasks import TaskEntry
from layerwise.errors import ConfigError


class MetricNeeds(Protocol):
    """The part of a metric's SPEC that decides where it can be computed."""

    @property
    def needs(self) -> Sequence[str]:
        """Out of "pooled", "views" and "tokens"; any one of them suffices."""
        ...

    @property
    def token_order(self) -> bool:
        """Whether the order of tokens matters."""
        ...

    @property
    def minimum_views(self) -> int:
        """Views that every sample must have."""
        ...


@dataclasses.dataclass(frozen=True)
class DatasetPlan:
    """One dataset that the workflow prepares.

    Attributes:
        name: such as ``verses``, ``verses~views`` or ``genre~sample``.
        parent: the dataset it is derived from, if any.
        task: the task that owns it, if any.
        collect: what extraction keeps; empty for pools that no model reads.
        views: views of each sample.
        metrics: asked for in the config; None means every metric that fits.
        modality: "text" or "image".
        entry: the config's entry that made it.
        template: what a model reads around every text; "" for the text alone.
    """

    name: str
    parent: str | None
    task: str
    collect: tuple[str, ...]
    views: int
    metrics: tuple[str, ...] | None
    modality: str
    entry: DatasetEntry | Derivation | TaskEntry
    template: str = ""

    @property
    def conditions(self) -> list[dict[str, float]]:
        """Level and draw of every copy of a sample under a transform of tokens; empty without one."""
        return self.entry.conditions if isinstance(self.entry, Derivation) else []

    @property
    def taps(self) -> list[str]:
        """Where in a block layers are read; "residual" first, and alone on the texts of tasks."""
        return ["residual"] if isinstance(self.entry, TaskEntry) else [*self.entry.taps]

    @property
    def shards(self) -> int:
        """Jobs that an extraction is split into; one for the texts of tasks."""
        return 1 if isinstance(self.entry, TaskEntry) else self.entry.shards

    @property
    def family(self) -> str:
        """The dataset or task that an entry of the config names."""
        return self.name.split("~")[0]


@dataclasses.dataclass(frozen=True)
class Absent:
    """A cell that the tables will not have, with the reason."""

    dataset: str
    task: str
    metric: str
    reason: str


def dataset_plans(study: Study) -> dict[str, DatasetPlan]:
    """Return every dataset of the study by name: sources, what is derived from them, and what tasks own."""
    plans: list[DatasetPlan] = []
    for entry in study.datasets:
        wanted = None if entry.metrics is None else tuple(entry.metrics)
        modality = _modality(study, entry)
        if entry.source.traces is not None and modality == "image":
            raise ConfigError(f"config: dataset {entry.name!r} continues {entry.source.parent!r}, which holds no text.")
        plan = DatasetPlan(
            entry.name, entry.source.parent, "", tuple(entry.collect), 1, wanted, modality, entry, _template(entry, modality)
        )
        plans += [plan, *(_derived(plan, derivation) for derivation in entry.derive)]
    for task in study.tasks:
        modality = next((_modality(study, entry) for entry in study.datasets if entry.name == task.dataset), "text")
        if modality != task.modality:
            raise ConfigError(
                f"config: task {task.name!r} of type {task.type} cannot use {modality} dataset {task.dataset!r}."
            )
        if modality == "image":
            continue  # its images are rows of its dataset
        plans.append(DatasetPlan(task.name, None, task.name, ("readouts",), 1, (), modality, task, _template(task)))
        if task.sample and study.task_metrics:
            metrics = tuple(study.task_metrics)
            collected = ("readouts", "tokens")
            drawn = f"{task.name}~sample", task.name, task.name, collected, 1, metrics, modality, task
            sample = DatasetPlan(*drawn, _template(task))
            plans.append(sample)
            if study.task_views is not None:
                plans.append(_derived(sample, study.task_views))
    result = {plan.name.casefold(): plan for plan in reversed(plans)}  # casefold: some file systems do not tell case
    for plan in plans:
        if result[plan.name.casefold()] is not plan:
            raise ConfigError(f"config: two entries make the dataset {plan.name!r}; rename one 'derive' entry.")
    if study.headline_dataset and study.headline_dataset not in {plan.name for plan in plans}:
        known = ", ".join(plan.name for plan in plans)
        raise ConfigError(f"config: 'headline_dataset' names {study.headline_dataset!r}, no dataset; known: {known}.")
    for model in study.models:
        for plan in plans:
            if plan.name in (model.datasets or []) and plan.modality != model.modality:
                raise ConfigError(
                    f"config: model {model.name!r} reads {model.modality}, its 'datasets' name {plan.name!r}, which holds "
                    f"{plan.modality}; take it out, or write another 'loader'."
                )
    return {plan.name: plan for plan in plans}


def looked_up(task: TaskEntry) -> str:
    """Return the dataset that holds what a model reads for a task: its own texts, or the images of its dataset."""
    return task.dataset if task.dataset is not None and task.modality == "image" else task.name


def runs(model: ModelEntry, plan: DatasetPlan) -> bool:
    """Return whether ``model`` reads the dataset: of its modality, and among its ``datasets`` where it names any."""
    return model.modality == plan.modality and (model.datasets is None or plan.family in model.datasets)


def _derived(parent: DatasetPlan, derivation: Derivation) -> DatasetPlan:
    if (parent.modality == "image") != (derivation.transform == "simclr"):
        raise ConfigError(
            f"config: transform {derivation.transform!r} does not fit {parent.modality} dataset {parent.name!r}."
        )
    wanted = (parent.metrics if parent.task else None) if derivation.metrics is None else tuple(derivation.metrics)
    name, collect = f"{parent.name}~{derivation.name}", tuple(derivation.collect)
    if derivation.conditions and parent.template:
        raise ConfigError(
            f"config: transform {derivation.transform!r} of dataset {parent.name!r} would change the tokens of its "
            "'template' too; leave one out."
        )
    views = 1 if derivation.conditions else derivation.views
    return DatasetPlan(name, parent.name, parent.task, collect, views, wanted, parent.modality, derivation, parent.template)


def _template(entry: DatasetEntry | TaskEntry, modality: str = "text") -> str:
    if entry.template and modality == "image":
        raise ConfigError(f"config: dataset {entry.name!r} holds images, which have no 'template'; leave it out.")
    return entry.template or ""


def _modality(study: Study, entry: DatasetEntry) -> str:
    while entry.source.parent is not None:
        entry = next(other for other in study.datasets if other.name == entry.source.parent)
    return "image" if entry.source.kind in ("digits", "glyphs", "image_folder") else "text"


def metric_cells(
    study: Study, plans: Mapping[str, DatasetPlan], specs: Mapping[str, MetricNeeds]
) -> tuple[list[tuple[str, str]], list[Absent]]:
    """Return the (dataset, metric) pairs to compute, and those that cannot be, with the reason.

    A metric of views belongs to datasets with views, any other metric to datasets without. A metric that neither a
    dataset nor anything derived from it can serve is absent, and so is one that an entry asks for in vain.
    """
    cells: list[tuple[str, str]] = []
    reasons: dict[tuple[str, str], str] = {}
    for plan in plans.values():
        for name, spec in specs.items():
            reason = _obstacle(plan, name, spec)
            if plan.metrics is not None and name not in plan.metrics:
                continue
            if reason is None:
                cells.append((plan.name, name))
            elif plan.collect or plan.metrics:
                reasons[plan.name, name] = reason
    served = {(plans[dataset].family, metric) for dataset, metric in cells}
    absent = [
        Absent(dataset, plans[dataset].task, metric, reason)
        for (dataset, metric), reason in reasons.items()
        if (plans[dataset].family, metric) not in served
        and (plans[dataset].views == 1 or plans[dataset].metrics is not None)
    ]
    return cells, absent


def _obstacle(plan: DatasetPlan, metric: str, spec: MetricNeeds) -> str | None:
    if not plan.collect:
        return f"nothing is collected on dataset {plan.name!r}"
    if spec.token_order and plan.modality == "image":
        return f"{metric} needs tokens in an order, the patches of images have none"
    if "views" in spec.needs:
        fits = plan.views >= max(spec.minimum_views, 2)
        return None if fits else f"dataset {plan.name!r} has {plan.views} view, {metric} needs {max(spec.minimum_views, 2)}"
    if plan.views > 1:
        return f"{metric} is not computed on views"
    collected = {"pooled": "readouts", "tokens": "tokens"}
    if any(collected[need] in plan.collect for need in spec.needs):
        return None
    return f"dataset {plan.name!r} collects {', '.join(plan.collect)}, {metric} needs {' or '.join(spec.needs)}"
