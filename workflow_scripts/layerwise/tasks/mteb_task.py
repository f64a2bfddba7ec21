"""Tasks of mteb, and local reranking and retrieval: mteb's evaluators on stored vectors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mteb.abstasks import AbsTaskClassification, AbsTaskClustering

from layerwise.errors import DataError
from layerwise.records import read_record, write_record
from layerwise.samples import balanced_sample
from layerwise.tasks import mteb_source
from layerwise.tasks.baselines import baselines as text_baselines
from layerwise.tasks.encoder import Recorder, Stored, Vectors
from layerwise.tasks.mteb_files import BenchmarkFiles, mteb_facts, task_data, write_benchmark
from layerwise.tasks.mteb_score import ENCODE, gold, item_kind
from layerwise.tasks.mteb_score import score as score_vectors
from layerwise.tasks.outcome import Score
from layerwise.tasks.recording import frame_of

__all__ = ["VERSIONS", "baselines", "benchmark", "gold", "item_kind", "load", "prepare", "samples", "score"]

VERSIONS = ("mteb", "scikit-learn", "datasets")
TRAIN_ROWS, CLUSTERED = 2000, 2000  # of the standardised protocol, which no task of mteb defines


def prepare(folder: Path, name: str, options: dict[str, Any], _parent: Path | None) -> dict[str, str]:
    """Load a task of mteb and write its rows to ``folder``; return its origin and licence."""
    task = mteb_source.loaded(name, options)
    facts = mteb_facts(task)
    write_benchmark(folder, name, options, facts, task_data(task, facts))
    origin = f"mteb task {facts['task']}: {facts['dataset']} at {facts['revision']}"
    return {"origin": origin, "licence": facts["licence"] or "unknown"}


def load(folder: Path) -> BenchmarkFiles:
    """Read the files of a task."""
    return BenchmarkFiles(folder)


def samples(folder: Path, _parent: pd.DataFrame | None, _parent_folder: Path) -> pd.DataFrame:
    """Return every text the task asks for, once, found by letting mteb evaluate it; complete its spec.json on the way.

    The standardised protocol asks for train rows that mteb does not draw, and clusters a sample of what it draws; both
    are chosen here and kept in spec.json, as ``probe`` and ``clustered`` (row numbers), with the ``columns`` of the items.

    Raises:
        DataError: the main subset has one class only.
    """
    files = BenchmarkFiles(folder)
    task, recorder = files.fresh(), Recorder(files.split)
    task.evaluate(recorder, files.split, encode_kwargs=ENCODE)
    drawn = _of_items(files, task, recorder)
    write_record(folder / "spec.json", read_record(folder / "spec.json") | drawn)
    if drawn.get("probe"):
        train = files.dataset[files.subset][files.facts["train_split"]]
        recorder.add(train.select(drawn["probe"])[drawn["columns"][0]], str(files.facts["train_split"]))
    return frame_of(recorder)


def baselines(files: BenchmarkFiles, frame: pd.DataFrame, _folder: Path) -> list[dict[str, Any]]:
    """Return ``{baseline, protocol, score}`` of every baseline."""
    return text_baselines(files, frame["text"].tolist(), score_vectors, _majority(files))


def score(files: BenchmarkFiles, rows: Mapping[str, int], vectors: Vectors) -> Score:
    """Score vectors (N, D), whose row of a text is ``rows[hash]``."""
    return score_vectors(files, Stored(files.name, rows, vectors))


def benchmark(files: BenchmarkFiles) -> dict[str, Any]:
    """Return what the record says of the task: mteb's names, revision, split, subsets and prompt, which was not used."""
    kept = (
        "local",
        "task",
        "dataset",
        "revision",
        "split",
        "subset",
        "subsets",
        "languages",
        "task_prompt",
        "superseded_by",
    )
    facts = {key: files.facts[key] for key in kept if key in files.facts}
    reason = "" if item_kind(files) else f"{files.main_score} of a {files.facts['type']} task of mteb is no mean over items"
    return {"benchmark": facts | {"main_score": files.main_score}, "prompt": None, "items_absent": reason}


def _of_items(files: BenchmarkFiles, task: Any, recorder: Recorder) -> dict[str, Any]:  # noqa: ANN401
    if files.type == "sts":
        return {"columns": [*map(str, task.column_names), "score"]}
    if files.type == "pair_classification":
        return {"columns": [task.input1_column_name, task.input2_column_name, task.label_column_name]}
    if isinstance(task, AbsTaskClassification) and files.facts["train_split"] is not None:
        return _probed(files, task.input_column_name, task.label_column_name)
    if isinstance(task, AbsTaskClustering):
        columns = [task.input_column_name, task.label_column_name]
        asked = [row for row, text in enumerate(files.main[columns[0]]) if text in recorder.splits]
        drawn = np.random.default_rng(files.options["seed"]).permutation(asked)[:CLUSTERED]
        return {"columns": columns, "clustered": sorted(int(row) for row in drawn)}
    return {}


def _probed(files: BenchmarkFiles, text: str, label: str) -> dict[str, Any]:
    train, test = (files.dataset[files.subset][split][label] for split in (files.facts["train_split"], files.split))
    names = [str(value) for value in train]
    if len(set(names)) < 2 or len({str(value) for value in test}) < 2:
        raise DataError(
            f"task {files.name!r}: subset {files.subset!r} has one class only; two are needed, name another 'subset'."
        )
    unseen = sorted({str(value) for value in test} - set(names))
    frame = pd.DataFrame({"row": range(len(names)), "label": names})
    drawn = balanced_sample(frame, files.options["train"] or TRAIN_ROWS, files.options["seed"], "label")
    return {"columns": [text, label], "probe": drawn["row"].tolist(), "labels_in_no_train_row": unseen}


def _majority(files: BenchmarkFiles) -> float | None:
    """Return the score of a constant answer, where it does not depend on how equals are ordered."""
    if files.type == "classification" and files.spec.get("probe"):
        label = files.spec["columns"][1]
        train = [str(value) for value in files.dataset[files.subset][files.facts["train_split"]][label]]
        commonest = max(sorted(set(train)), key=train.count)
        return float(np.mean([str(value) == commonest for value in files.main[label]]))
    if files.type == "pair_classification":
        return float(np.mean(np.asarray(files.pairs()[2], dtype=float)))
    return 0.0 if files.type in ("sts", "clustering") else None
