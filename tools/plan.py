"""Print what a study will cost before it runs, and refuse where the disk cannot hold it.

Usage: python tools/plan.py [CONFIG ...]. Used by `make plan`. Files are read as Snakemake reads --configfile after
config.yaml. Nothing is downloaded and no model runs: sizes come from headers of weights; texts are prepared in a temporary
folder, because only they say how many tokens there are. What a hub has to send first is "unknown until downloaded".
"""

import dataclasses
import functools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is imported

import pandas as pd
import yaml
from layerwise.config import ModelEntry, Study, load_study
from layerwise.config_datasets import DatasetSource, Derivation
from layerwise.config_reading import check_files
from layerwise.costs import estimates, sizes
from layerwise.costs.lengths import image_tokens, text_tokens
from layerwise.data.prepare import derived, from_dataset, from_source
from layerwise.errors import LayerwiseError
from layerwise.packages import package_path
from layerwise.plan import DatasetPlan, dataset_plans, looked_up, runs
from layerwise.samples import balanced_sample, new_samples, read_samples
from layerwise.tasks.registry import load_task_source
from layerwise.template import filled

RESULTS = Path("results")
UNKNOWN = "unknown until downloaded"
_TEXTS = ("text", "sentences", "sentence1", "sentence2")


@dataclasses.dataclass(frozen=True)
class Content:
    """The rows of a dataset: their number, the texts where they are texts, and the level of each where tokens change."""

    rows: int
    texts: list[str] | None = None
    levels: list[float] | None = None


@dataclasses.dataclass(frozen=True)
class Cell:
    """One extraction, with what it costs where that is known."""

    model: str
    dataset: str
    gpu: str
    tokens: estimates.Tokens | None = None
    flops: int = 0
    disk: int = 0
    mib: int = 0
    shards: int = 1


@dataclasses.dataclass(frozen=True)
class Weights:
    """What is known of a model: its size, and the folder or file that holds its weights now."""

    size: sizes.ModelSize | None
    place: Path


Known = dict[str, Weights]


class Drafts:
    """The datasets of a study: those that are there, and drafts of the others in ``folder``."""

    def __init__(self, study: Study, plans: dict[str, DatasetPlan], folder: Path) -> None:
        self.study, self.plans, self.folder = study, plans, folder
        self.written = {entry.name for entry in study.datasets if entry.source.traces}  # by a model, when it runs
        self.content = functools.cache(self._content)

    def _content(self, name: str) -> Content | None:
        """Return the rows of a dataset, or None where they cannot be known yet."""
        plan, there = self.plans[name], RESULTS / "data" / name
        try:
            if (there / "manifest.json").is_file():
                return self._read(there, plan.template)
            if plan.modality == "image":
                return self._images(plan)
            folder = self._draft(plan)
            return self._read(folder, plan.template) if folder else None
        except LayerwiseError:
            return None  # the rule that prepares it will say why

    @staticmethod
    def _read(folder: Path, template: str) -> Content:
        frame = filled(read_samples(folder / "samples.parquet"), template)
        levels = frame["level"].tolist() if "level" in frame else None
        return Content(len(frame), frame["text"].tolist() if "text" in frame else None, levels)

    def _images(self, plan: DatasetPlan) -> Content | None:
        entry: Any = plan.entry
        if plan.parent is None:
            rows = self._image_rows(entry.source)
        else:
            parent = self.content(plan.parent)
            rows = parent.rows if parent else None
        sample = getattr(entry.sample, "n", entry.sample)
        return None if rows is None else Content(plan.views * min(rows, sample or rows))

    @staticmethod
    def _image_rows(source: DatasetSource) -> int:
        if source.image_folder is not None:
            return sum(1 for file in Path(source.image_folder.path).expanduser().glob("[!.]*/[!.]*") if file.is_file())
        return int(getattr(source, source.kind).n)

    def _draft(self, plan: DatasetPlan) -> Path | None:
        """Prepare a dataset of texts as its rule would; None where that needs a network."""
        folder, entry = self.folder / plan.name, plan.entry
        parent = self._folder(plan.parent) if plan.parent else None
        if plan.parent and (parent is None or self.content(plan.parent) is None):
            return None
        if plan.task == plan.name.split("~")[0] and plan.views == 1:
            return self._draft_task(plan)
        if isinstance(entry, Derivation) and parent:
            conditions = {"conditions": plan.conditions} if plan.conditions else {}
            derived(folder, plan.name, parent, entry.model_dump() | conditions)
        elif plan.name in self.written:
            return None
        elif parent:
            from_dataset(folder, plan.name, parent, entry.model_dump()["sample"])
        else:
            source: Any = getattr(entry, "source", None)
            if source.kind == "hub_table":
                return None
            dumped = entry.model_dump()
            from_source(folder, plan.name, source.kind, dumped["source"][source.kind], dumped["sample"])
        return folder

    def _folder(self, name: str) -> Path | None:
        there = RESULTS / "data" / name
        if (there / "manifest.json").is_file():
            return there
        return self.folder / name if self.content(name) else None

    def _draft_task(self, plan: DatasetPlan) -> Path | None:
        """Write the texts of a task, and of its sample, as if they were a dataset."""
        task: Any = next(task for task in self.study.tasks if task.name == plan.task)
        parent = self._folder(task.dataset) if task.dataset else None
        if task.source not in ("dataset", "table") or (task.dataset and parent is None):
            return None
        folder, rows = self.folder / plan.name, self.folder / plan.task / "task"
        folder.mkdir(parents=True, exist_ok=True)
        if not rows.exists():
            load_task_source(task.source).prepare(rows, task.name, task.model_dump(), parent)
        split = "test" if plan.name.endswith("~sample") else "*"
        texts = list(dict.fromkeys(text for file in sorted(rows.glob(f"{split}.jsonl")) for text in _texts(file)))
        frame = new_samples(pd.DataFrame({"id": range(len(texts)), "text": texts}))
        frame = balanced_sample(frame, task.sample, task.seed) if split == "test" else frame
        frame.to_parquet(folder / "samples.parquet")
        (folder / "manifest.json").write_text('{"schema_version": 1, "origin": "", "licence": "", "name": ""}')
        return folder


def _texts(file: Path) -> Iterator[str]:
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        yield from (row[key] for key in _TEXTS if key in row)


def weights_of(study: Study, entry: ModelEntry) -> tuple[Path | None, bool]:
    """Return the folder or file that holds a model's weights now, if any, and whether it is the workflow's own copy."""
    own = RESULTS / "models" / entry.name
    if (own / "manifest.json").is_file():
        return own / "weights", True
    source = entry.source
    if source.random is not None:
        like = next(model for model in study.models if model.name == source.random.like)
        return weights_of(study, like)[0], False
    if source.path is not None:
        return Path(source.path).expanduser(), False
    if source.package is not None:
        try:
            return package_path(source.package, source.file or source.folder or ""), False
        except LayerwiseError:
            return None, False
    if source.hub is None:
        return None, False  # to be trained
    from huggingface_hub import try_to_load_from_cache

    name = "open_clip_config.json" if entry.loader == "open_clip" else "config.json"
    found = try_to_load_from_cache(source.hub, name, revision=source.revision or "main")
    return (Path(found).parent if isinstance(found, str) else None), False


def known_models(study: Study) -> Known:
    """Return what is known of every model."""
    known: Known = {}
    for entry in study.models:
        place, own = weights_of(study, entry)
        size = size_of(place, entry.loader) or size_of_trained(entry)
        if size and entry.source.random is not None and not own:
            size = dataclasses.replace(size, store_bytes=size.weight_bytes("float32"))
        known[entry.name] = Weights(size, place or Path())
    return known


def size_of_trained(entry: ModelEntry) -> sizes.ModelSize | None:
    """Return the size of a model that the workflow trains, roughly, from the config."""
    train = entry.source.train
    if train is None:
        return None
    said = {"num_hidden_layers": train.blocks, "hidden_size": train.width, "num_attention_heads": train.heads}
    read = {"vocab_size": train.vocabulary} if entry.modality == "text" else {"patch_size": train.patch}
    return sizes.from_config({**said, **read, "image_size": train.image_size})


@functools.cache
def size_of(place: Path | None, loader: str) -> sizes.ModelSize | None:
    """Return the size of the model at ``place``, or None."""
    if place is None or not place.exists():
        return None
    return sizes.from_folder(place, loader) if place.is_dir() else sizes.from_converted(place, loader)


def tokens_of(
    entry: ModelEntry, size: sizes.ModelSize, tokenizer: Path | None, content: Content, transform: str
) -> estimates.Tokens | None:
    """Return how long the samples are to a model."""
    if content.texts is None:
        default = 224 if entry.preprocessing == "study" else None
        each = size.image_tokens(entry.image_size or default)
        return image_tokens(content.rows, each, size.width) if each else None
    levels = (transform, content.levels) if content.levels else None
    return text_tokens(content.texts, entry.max_tokens, size.width, tokenizer, levels)


def tokenizer_of(name: str, known: Known) -> Path | None:
    """Return a model's tokenizer, or that of another model of the study while its own is not there."""
    places = [known[name].place, *(each.place for each in known.values())]
    return next((file for place in places if (file := place / "tokenizer.json").is_file()), None)


def cells(study: Study, drafts: Drafts, known: Known) -> Iterator[Cell]:
    """Yield every extraction of the study."""
    for entry in study.models:
        size, tokenizer = known[entry.name].size, tokenizer_of(entry.name, known)
        gpu = {"cpu": "no", "mps": "no", "auto": "if any"}.get(entry.device, "needed")
        for plan in drafts.plans.values():
            if not plan.collect or not runs(entry, plan):
                continue
            content = drafts.content(plan.name)
            transform = getattr(plan.entry, "transform", "")
            tokens = tokens_of(entry, size, tokenizer, content, transform) if size and content else None
            if size is None or tokens is None:
                yield Cell(entry.name, plan.name, gpu)
                continue
            readouts = [readout.model_dump() for readout in study.readouts] if "readouts" in plan.collect else []
            recipes = list(study.recipes) if "tokens" in plan.collect else []
            kept = estimates.Collected(size.n_layers, size.width, plan.taps, readouts, recipes, study.storage)
            yield Cell(
                entry.name,
                plan.name,
                gpu,
                tokens,
                estimates.forward_flops(size, tokens),
                estimates.activation_bytes(kept, tokens),
                estimates.extraction_mib(size, entry.dtype, entry.batch_tokens, kept, tokens),
                plan.shards,
            )


def missing_bytes(study: Study, found: list[Cell], known: Known) -> int:
    """Return the bytes of what is not there yet: copies of weights and activation files."""
    absent = [c for c in found if not (RESULTS / "activations" / c.model / f"{c.dataset}.h5").is_file()]
    total = sum(c.disk for c in absent)
    total += sum(c.disk for c in absent if c.shards > 1)  # the shards lie beside the file until it is whole
    for entry in study.models:
        size = known[entry.name].size
        linked = entry.source.random is None and entry.source.file is None  # to the user's folder or the hub's cache
        if size and not linked and not (RESULTS / "models" / entry.name / "manifest.json").is_file():
            total += size.store_bytes or size.weight_bytes("float32")
    return total


def report(study: Study, found: list[Cell], known: Known) -> str:
    """Return the tables that are printed."""
    lines = [f"{'model':<26}{'layers':>7}{'width':>7}{'parameters':>13}{'on disk':>10}"]
    for entry in study.models:
        size = known[entry.name].size
        if size is None:
            lines.append(f"{entry.name:<26}{UNKNOWN:>37}")
            continue
        stored = size.store_bytes or size.weight_bytes("float32")
        numbers = f"{size.n_layers:>7}{size.width:>7}{size.parameters / 1e6:>11.1f} M{bytes_text(stored):>10}"
        lines.append(f"{entry.name:<26}{numbers}")
    head = f"{'model':<26}{'dataset':<24}{'samples':>8}{'tokens':>11}{'TFLOP':>10}{'disk':>10}{'memory':>10}{'GPU':>8}"
    lines += ["", head]
    for cell in found:
        start = f"{cell.model:<26}{cell.dataset:<24}"
        if cell.tokens is None:
            lines.append(f"{start}{UNKNOWN:>49}{cell.gpu:>8}")
            continue
        numbers = f"{cell.tokens.rows:>8,}{cell.tokens.total:>11,}{cell.flops / 1e12:>10.2f}"
        lines.append(f"{start}{numbers}{bytes_text(cell.disk):>10}{cell.mib / 1024:>6.1f} GiB{cell.gpu:>8}")
    disk, flops = sum(cell.disk for cell in found), sum(cell.flops for cell in found)
    tokens = sum(cell.tokens.total for cell in found if cell.tokens)
    lines.append(f"{'together':<50}{'':>8}{tokens:>11,}{flops / 1e12:>10.2f}{bytes_text(disk):>10}")
    return "\n".join(lines)


def bytes_text(number: int) -> str:
    """Return bytes as MB or GB."""
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"


def rules_with_models(study: Study, plans: dict[str, DatasetPlan]) -> str:
    """Return in one line which rules run a model, and so use a GPU where there is one."""
    probes = [
        (model.name, task.name)
        for model in study.models
        for task in study.tasks
        if task.type == "attention_probe" and runs(model, plans[looked_up(task)])
    ]
    traces = sum(entry.source.traces is not None for entry in study.datasets)
    others = {"probe_attention": len(probes), "write_traces": traces}
    more = " and ".join(["extract_activations", *(f"{rule} ({count} jobs)" for rule, count in others.items() if count)])
    return f"Rules that run a model, and so use a GPU where there is one: {more}; every other rule runs on a CPU."


def read_config(files: list[str]) -> dict[str, Any]:
    """Return config.yaml with ``files`` over it, as Snakemake merges them: mappings key by key, lists replaced."""
    paths = ["config.yaml", *files]
    check_files(paths)
    merged: dict[str, Any] = {}
    for path in paths:
        merged |= yaml.safe_load(Path(path).read_text("utf-8")) or {}
    return merged


def main(files: list[str]) -> int:
    """Print the plan; return 1 where the disk cannot hold it or the config is wrong."""
    try:
        study = load_study(read_config(files))
        plans = dataset_plans(study)
    except (LayerwiseError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    known = known_models(study)
    with tempfile.TemporaryDirectory() as folder:
        found = list(cells(study, Drafts(study, plans, Path(folder)), known))
    print(report(study, found, known))
    needed, free = missing_bytes(study, found, known), shutil.disk_usage(RESULTS if RESULTS.exists() else ".").free
    least = "at least " if any(cell.tokens is None for cell in found) else ""
    print(f"\n{rules_with_models(study, plans)}")
    print(f"Disk: {least}{bytes_text(needed)} more are needed, {bytes_text(free)} are free.")
    if needed > free:
        print(
            f"plan: the study needs {least}{bytes_text(needed)} more and {bytes_text(free)} are free; free some space, "
            "write 'storage: float16', or name fewer datasets, taps or readouts.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
