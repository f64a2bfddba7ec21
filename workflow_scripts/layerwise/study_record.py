"""What a study was made of, in a form that a paper's supplement can carry: no secret, no environment, no one's home."""

import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from layerwise.checkpoints import run_of
from layerwise.config import Study

Entry = TypeVar("Entry", bound=BaseModel)
Json = Any


def runnable(study: Study) -> dict[str, Any]:
    """Return a config that gives the same study again, with the defaults of this version written out where they may be.

    A default that its entry does not accept in writing (``folds`` of an mteb task) stays unwritten.
    """
    config = study.model_dump(mode="json", exclude_none=True)
    for kind in ("models", "datasets", "tasks", "export"):
        config[kind] = [_written(entry) for entry in getattr(study, kind)]
    config["models"] = list({entry["name"]: entry for entry in map(_whole_run, config["models"])}.values())
    if study.task_views is not None:
        config["task_views"] = _written(study.task_views)
    return config


def as_yaml(config: dict[str, Any]) -> str:
    """Return a config as the text of a file that says what it is."""
    head = "# The study that study.json describes, defaults written out: snakemake --configfile THIS_FILE --cores N\n"
    return head + yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120)


def _whole_run(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry of a run that is trained here, for that of one of its checkpoints."""
    source = entry["source"]
    if "step" not in source:
        return entry
    return entry | {"name": run_of(entry["name"]), "source": {key: source[key] for key in source if key != "step"}}


def _written(entry: Entry) -> dict[str, Any]:
    kept = entry.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    for key, value in entry.model_dump(mode="json", exclude_none=True).items():
        if key not in kept:
            try:
                same = type(entry).model_validate({**kept, key: value}) == entry
            except ValidationError:
                same = False
            kept |= {key: value} if same else {}
    return {key: kept[key] for key in type(entry).model_fields if key in kept}  # in the same order whatever was written


def without_home(content: Json, home: Path) -> Json:
    """Return ``content`` (of JSON) with ``~`` for the user's home folder in every text, so that it names nobody."""
    if isinstance(content, dict):
        return {key: without_home(value, home) for key, value in content.items()}
    if isinstance(content, list):
        return [without_home(value, home) for value in content]
    if isinstance(content, str) and len(home.parts) > 1:
        return content.replace(f"{home}/", "~/") if content != str(home) else "~"
    return content


def packages() -> dict[str, str]:
    """Return the version of every distribution in the environment, by name."""
    found = {dist.metadata["Name"]: dist.version for dist in metadata.distributions() if dist.metadata["Name"]}
    return dict(sorted(found.items(), key=_folded))


def _folded(pair: tuple[str, str]) -> str:
    return pair[0].casefold()


def machine() -> dict[str, Any]:
    """Return what numbers may depend on and what names no one: Python, system, kind of processor and of GPUs."""
    found = {"python": platform.python_version(), "system": platform.system(), "architecture": platform.machine()}
    return found | {"processor": _processor(), "gpus": _gpus()}


def _processor() -> str:
    return _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or "unknown"


def _gpus() -> list[str]:
    """The NVIDIA cards that the driver lists, used or not."""
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return [name for card in cards if (name := _field(card, "Model"))]


def _field(file: Path, name: str) -> str:
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name) and ":" in line), "")


def commit(root: Path) -> dict[str, Any] | None:
    """Return the commit of the checkout at ``root`` and whether its files differ from it; None where it is no checkout."""
    git = shutil.which("git")
    if git is None or _git(git, root, "rev-parse", "--show-toplevel") != str(root.resolve()):
        return None
    changed = _git(git, root, "status", "--porcelain", "--untracked-files=no")
    return {"commit": _git(git, root, "rev-parse", "HEAD"), "modified": changed != ""}


def _git(git: str, root: Path, *arguments: str) -> str | None:
    done = subprocess.run([git, "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
