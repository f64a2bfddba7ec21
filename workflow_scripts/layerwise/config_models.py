"""Where models come from: the ``source`` of a model entry, and one entry that stands for many checkpoints."""

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from layerwise.config_reading import CLOSED
from layerwise.config_training import TrainSource, expand_checkpoints
from layerwise.errors import ConfigError
from layerwise.template import checked

Name = Annotated[str, StringConstraints(strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**32, strict=True)]
Text = Annotated[str, StringConstraints(min_length=1)]
Template = Annotated[str, StringConstraints(strict=True), AfterValidator(checked)]

PLACEHOLDER = "{revision}"
_REPOSITORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9_][A-Za-z0-9._-]*")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@=-]*(/[A-Za-z0-9_][A-Za-z0-9._+@=-]*)*")


def _repository(value: str) -> str:
    wrong = ".." in value or "--" in value or value.endswith((".", "-", ".git")) or len(value) > 96
    if wrong or not _REPOSITORY.fullmatch(value):
        raise ValueError(f"{value!r} is no repository of the hub; write ORG/NAME as in https://huggingface.co/ORG/NAME")
    return value


def _revision(value: str) -> str:
    if not _REVISION.fullmatch(value) or len(value) > 200 or ".." in value or value.endswith((".", ".lock")):
        raise ValueError(f"{value!r} is no revision; write a commit of 40 hexadecimal digits, a tag or a branch")
    return value


Repository = Annotated[str, StringConstraints(strict=True), AfterValidator(_repository)]
Revision = Annotated[str, StringConstraints(strict=True), AfterValidator(_revision)]


class _Closed(BaseModel):
    model_config = CLOSED


class RandomSource(_Closed):
    """The untrained twin of another model of the study."""

    like: Name
    seed: Seed = 0


class AdapterSource(_Closed):
    """A PEFT adapter to merge: ``hub`` (with a ``revision``) or ``path`` (a folder)."""

    hub: Repository | None = None
    revision: Revision | None = None
    path: Text | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.hub is None) == (self.path is None):
            raise ValueError("an adapter needs one of 'hub: ORG/NAME' and 'path: FOLDER'")
        if self.revision and not self.hub:
            raise ValueError("'revision' belongs to 'hub'; a 'path' has none")
        return self


class ModelSource(_Closed):
    """Where a model comes from: exactly one of ``path``, ``hub``, ``package``, ``random`` and ``train``.

    Attributes:
        path: a folder.
        hub: a model of the Hugging Face hub, at ``revision`` ("main" where it is left out).
        adapters: merged into the weights of a ``path`` or ``hub`` in this order.
        package: an installed package, with ``file`` or ``folder`` inside it.
        random: untrained.
        train: trained here; ``step`` is the checkpoint, set by ``expand_checkpoints``.
    """

    path: Text | None = None
    hub: Repository | None = None
    revision: Revision | None = None
    adapters: list[AdapterSource] | None = None
    package: Text | None = None
    file: Text | None = None
    folder: Text | None = None
    random: RandomSource | None = None
    train: TrainSource | None = None
    step: Annotated[int, Field(ge=0, strict=True)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(value is not None for value in (self.path, self.hub, self.package, self.random, self.train)) != 1:
            raise ValueError(
                "write exactly one of 'path: FOLDER', 'hub: ORG/NAME', 'package: NAME' and 'random: {like: MODEL, seed: 0}'"
                ", or 'train: {objective: NAME, dataset: NAME}'"
            )
        if (self.train is None) != (self.step is None):
            raise ValueError("'step' is set for each checkpoint of a 'train' source; write 'checkpoints' inside 'train'")
        if self.package and (self.file is None) == (self.folder is None):
            raise ValueError("a package source needs one of 'file: PATH' and 'folder: PATH', inside the package")
        if not self.package and (self.file or self.folder):
            raise ValueError("'file' and 'folder' belong to a package source; 'path', 'hub' and 'random' stand alone")
        if self.revision and not self.hub:
            raise ValueError("'revision' belongs to a hub source; of a 'path', name the folder of the revision")
        if self.adapters and not (self.hub or self.path):
            raise ValueError("'adapters' belong to a 'hub' or 'path' source; save the model as a folder first")
        return self


def expand_revisions(config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` with every model entry that lists ``revisions`` replaced by one entry for each of them.

    The entry ``pythia`` with ``revisions: [step0, step1000]`` becomes ``pythia@step0`` and ``pythia@step1000``: the
    revision of its hub source is set, or ``{revision}`` in its path replaced. What is malformed stays as it is, for the
    schema to name.

    Likewise every entry with a ``train`` source by one for each of its checkpoints, see ``expand_checkpoints``.

    Raises:
        ConfigError: the source has no place for a revision, or one occurs twice.
    """
    models = config.get("models") if isinstance(config, dict) else None
    if not isinstance(models, list):
        return config
    expanded: list[Any] = []
    for i, entry in enumerate(models):
        revisions = entry.get("revisions") if isinstance(entry, dict) else None
        listed = revisions if isinstance(revisions, list) and all(isinstance(each, str) for each in revisions) else []
        if not listed or not isinstance(entry.get("name"), str):
            expanded.append(entry)
            continue
        where = f"config: models: {i} ({entry['name']!r}): revisions"
        repeated = next((each for n, each in enumerate(listed) if each in listed[:n]), None)
        if repeated is not None:
            raise ConfigError(f"{where}: {repeated!r} occurs twice; write each once.")
        rest = {key: value for key, value in entry.items() if key != "revisions"}
        for revision in listed:
            name = f"{entry['name']}@{revision}"
            expanded.append(rest | {"name": name, "source": _at_revision(entry.get("source"), revision, where)})
    return config | {"models": expand_checkpoints(expanded)}


def _at_revision(source: Any, revision: str, where: str) -> dict[str, Any]:  # noqa: ANN401 - nothing is checked yet
    if isinstance(source, dict) and "hub" in source:
        if "revision" in source:
            raise ConfigError(f"{where}: the source has a 'revision' too; write one of 'revision' and 'revisions'.")
        return source | {"revision": revision}
    path = source.get("path") if isinstance(source, dict) else None
    if not isinstance(path, str):
        raise ConfigError(f"{where}: only a 'hub' or 'path' source has revisions; write entries of their own.")
    if PLACEHOLDER not in path:
        raise ConfigError(f"{where}: the path {path!r} holds no {PLACEHOLDER!r}; write it where the revision belongs.")
    _checked(revision, where)
    return source | {"path": path.replace(PLACEHOLDER, revision)}


def _checked(revision: str, where: str) -> None:
    try:
        _revision(revision)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}.") from None
