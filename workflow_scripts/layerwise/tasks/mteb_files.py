"""The rows of mteb's tasks on disk, without pickle, and back into a fresh task object without a network."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mteb._create_dataloaders import _retrieval_texts
from mteb.abstasks import AbsTask, AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.types import PromptType

from layerwise.atomic import write_text
from layerwise.errors import DataError, FileError
from layerwise.records import read_record, write_record
from layerwise.tasks import mteb_source
from layerwise.tasks.files import read_rows
from layerwise.tasks.mteb_plain import Rows

PARTS = ("corpus", "queries", "relevant_docs", "top_ranked")


class BenchmarkFiles:
    """One task in results/data/{task}/task, read once; ``fresh`` makes a new task object over the same rows.

    Attributes:
        spec: of spec.json. name, options: of the config.
        facts: ``spec["benchmark"]``: mteb's name and type of the task, dataset, revision, split, subsets, prompt.
        type, main_score: words of the tables, and mteb's name of the score.
        dataset: by subset: rows by split, or the parts of a retrieval task by split.
    """

    def __init__(self, folder: Path) -> None:
        """Read spec.json and the rows.

        Raises:
            FileError: a file is missing or damaged.
        """
        self.spec = read_record(folder / "spec.json", "name", "options", "benchmark", "digest")
        self.name: str = self.spec["name"]
        self.options: dict[str, Any] = self.spec["options"]
        self.facts: dict[str, Any] = self.spec["benchmark"]
        self.type: str = mteb_source.TYPES[self.facts["type"]]
        self.main_score: str = self.facts["main_score"]
        self.split, self.subset = str(self.facts["split"]), str(self.facts["subset"])
        try:
            self.dataset = {
                subset: _read_subset(folder, number, self.facts) for number, subset in enumerate(self.facts["subsets"])
            }
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"{folder} cannot be read as a task ({error}); delete it and run again.") from error

    @property
    def main(self) -> Any:  # noqa: ANN401 - rows, or the parts of a retrieval task
        """The evaluated split of the main subset."""
        return self.dataset[self.subset][self.split]

    def pairs(self) -> tuple[list[str], list[str], list[Any]]:
        """Return the texts of the pairs of an sts or pair_classification task, and their scores or labels."""
        first, second, value = (self.main[column] for column in self.spec["columns"])
        return first, second, value

    def fresh(self) -> AbsTask:
        """Return a new mteb task object over the loaded rows, with mteb's own seed and settings."""
        task = _own_task(self) if self.facts["local"] else mteb_source.registered(self.facts["task"])
        own = {"path": self.facts["dataset"], "revision": self.facts["revision"]}
        mteb_source.restrict(task, list(self.facts["subsets"]), self.split, own)
        task.dataset = {
            subset: {split: dict(rows) if isinstance(rows, dict) else rows for split, rows in splits.items()}
            for subset, splits in self.dataset.items()
        }
        task.data_loaded = True
        return task


def _own_task(files: BenchmarkFiles) -> AbsTask:
    letters = files.name.replace("-", "").replace("_", "").replace(".", "").replace("@", "")
    metadata = TaskMetadata(
        name=letters or "Task",
        description=f"Local task {files.name}.",
        dataset={"path": "local", "revision": files.spec["digest"][:40]},
        type=files.facts["type"],
        category="t2t",
        eval_splits=[files.split],
        eval_langs=["eng-Latn"],
        main_score=files.main_score,
    )
    task: AbsTask = type("LocalTask", (AbsTaskRetrieval,), {"metadata": metadata})()
    return task


def mteb_facts(task: AbsTask) -> dict[str, Any]:
    """Return what is recorded of a loaded task of mteb beside its rows."""
    metadata, subsets = task.metadata, list(task.hf_subsets)
    languages = metadata.hf_subsets_to_langscripts
    return {
        "local": False,
        "task": metadata.name,
        "type": metadata.type,
        "dataset": metadata.dataset["path"],
        "revision": metadata.dataset["revision"],
        "split": mteb_source.evaluated_split(task),
        "train_split": mteb_source.train_split(task),
        "subset": subsets[0],
        "subsets": subsets,
        "languages": {subset: list(languages[subset]) for subset in subsets},
        "main_score": metadata.main_score,
        "task_prompt": metadata.prompt,
        "licence": metadata.license,
        "superseded_by": task.superseded_by,
        "retrieval": isinstance(task, AbsTaskRetrieval),
    }


def task_data(task: AbsTask, facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rows of a loaded task of mteb: by subset and split, plain, each text as mteb hands it to a model.

    Raises:
        DataError: a subset or split is not in the data.
    """
    found: dict[str, dict[str, Any]] = {}
    wanted = dict.fromkeys(filter(None, (facts["split"], facts["train_split"])))
    for subset in facts["subsets"]:
        held = task.dataset if subset not in task.dataset and subset == "default" else task.dataset.get(subset, {})
        absent = next((split for split in wanted if split not in held), None)
        if absent is not None:
            raise DataError(
                f"mteb's {facts['task']} has no split {absent!r} of subset {subset!r} in {facts['dataset']}; use another."
            )
        read = _retrieval if facts["retrieval"] else partial(_rows, task)
        found[subset] = {split: read(held[split]) for split in wanted}
    return found


def _rows(task: AbsTask, held: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a Dataset, or the one row of an old format
    names = getattr(held, "column_names", None) or list(held[0])
    if isinstance(getattr(task, "train_split", None), str) and isinstance(task.input_column_name, str):
        names = [task.input_column_name, task.label_column_name]
    columns = {name: held[name][:] if hasattr(held, "column_names") else held[0][name] for name in names}
    if task.metadata.type == "PairClassification" and len(held) == 1 and isinstance(held[0][names[0]], list):
        columns = dict(held[0])  # until 2024 all pairs were one row
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _retrieval(held: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a retrieval task, in a fixed order; titles and instructions are joined with their text, as mteb does."""
    queries = dict(zip(map(str, held["queries"]["id"]), _retrieval_texts(held["queries"], PromptType.query), strict=True))
    corpus = dict(zip(map(str, held["corpus"]["id"]), _retrieval_texts(held["corpus"], PromptType.document), strict=True))
    ranked = held.get("top_ranked")
    return {
        "corpus": corpus,
        "queries": queries,
        "relevant_docs": {key: dict(held["relevant_docs"][key]) for key in queries if key in held["relevant_docs"]},
        "top_ranked": None if ranked is None else {key: list(ranked[key]) for key in queries if key in ranked},
    }


def write_benchmark(
    folder: Path, name: str, options: dict[str, Any], facts: dict[str, Any], data: dict[str, dict[str, Any]]
) -> None:
    """Write rows as JSON lines, then spec.json with their digest.

    Args:
        folder: results/data/{task}/task.
        name: of the task in the config. options: its entry.
        facts: see ``mteb_facts``.
        data: see ``task_data``: by subset and split, rows or the parts of a retrieval task.
    """
    state = hashlib.sha256()
    for number, splits in enumerate(data.values()):
        for file, rows in _files(number, splits, facts["retrieval"]):
            lines = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            state.update(f"{file}\x1f{lines}".encode("utf-8", "surrogatepass"))
            write_text(folder / file, lines)
    record = {"name": name, "options": options, "benchmark": facts, "digest": state.hexdigest()}
    write_record(folder / "spec.json", record)


def _files(number: int, splits: Mapping[str, Any], retrieval: bool) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for split, rows in splits.items():
        if not retrieval:
            yield f"{number:03d}-{split}.jsonl", rows
            continue
        for part in PARTS:
            if rows[part] is not None:
                entries = [{"id": key, "value": value} for key, value in rows[part].items()]
                yield f"{number:03d}-{split}-{part}.jsonl", entries


def _read_subset(folder: Path, number: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    splits = dict.fromkeys(filter(None, (facts["split"], facts["train_split"])))
    if not facts["retrieval"]:
        return {split: Rows.from_rows(read_rows(folder / f"{number:03d}-{split}.jsonl")) for split in splits}
    return {split: _read_parts(folder, f"{number:03d}-{split}") for split in splits}


def _read_parts(folder: Path, prefix: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for part in PARTS:
        file = folder / f"{prefix}-{part}.jsonl"
        rows = read_rows(file) if part != "top_ranked" or file.is_file() else None
        if part in ("corpus", "queries"):
            parts[part] = Rows({"id": [row["id"] for row in rows or []], "text": [row["value"] for row in rows or []]})
        else:
            parts[part] = None if rows is None else {row["id"]: row["value"] for row in rows}
    return parts
