"""Scores of one set of vectors on a task of mteb: all subsets, and the outcomes of the items of the main one."""

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from mteb.abstasks import AbsTask
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import v_measure_score

from layerwise.tasks.encoder import Stored
from layerwise.tasks.mteb_files import BenchmarkFiles
from layerwise.tasks.outcome import Score, plain
from layerwise.tasks.probes import cluster, cosine_pairs, linear_probe

ENCODE = {"batch_size": 1024, "show_progress_bar": False}
# mteb's names of the scores of a retrieval task, and the evaluator's for those that each query has.
_QUERY_MEASURES = {"map_at_": "map_cut_", "ndcg_at_": "ndcg_cut_", "recall_at_": "recall_", "precision_at_": "P_"}


def score(files: BenchmarkFiles, encoder: Stored) -> Score:
    """Score the vectors behind ``encoder`` on a task of mteb, or on a local one of its retrieval types."""
    task, queries = files.fresh(), {}
    if files.facts["retrieval"]:
        queries = _keep_queries(task)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = task.evaluate(encoder, files.split, encode_kwargs=ENCODE)
    # Vectors that order nothing have no rank correlation; like a constant answer they get 0.
    scores = {"mteb": float(np.nan_to_num(result[files.subset]["main_score"], nan=0.0))}
    items = _items(files, encoder, queries.get(files.subset, {}))
    if files.spec.get("probe"):
        scores["standardised"] = float(np.mean(items))
    elif files.spec.get("clustered"):
        scores["standardised"] = float(v_measure_score(gold(files), items))
    not_converged = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    results = {subset: plain(result[subset]) for subset in files.facts["subsets"]}
    return Score(scores, not_converged, [round(float(item), 6) for item in items], results)


def item_kind(files: BenchmarkFiles) -> str | None:
    """Return what the items of the task are, or None where its score does not come from items."""
    if files.type in ("sts", "pair_classification"):
        return "similarity"
    if query_measure(files.main_score) is not None and files.facts["retrieval"]:
        return "query"
    return "correct" if files.spec.get("probe") else "cluster" if files.spec.get("clustered") else None


def gold(files: BenchmarkFiles) -> list[Any]:
    """Return the true label, human score or id of every item, in the order of ``Score.items``."""
    kind = item_kind(files)
    if kind == "query":
        return list(query_ids(files))
    if kind == "similarity":
        return [float(value) for value in files.pairs()[2]]
    if kind == "correct":
        return [str(label) for label in files.main[files.spec["columns"][1]]]
    labels = files.main[files.spec["columns"][1]]
    return [top_label(labels[row]) for row in files.spec["clustered"]]


def top_label(label: Any) -> str:  # noqa: ANN401 - a label, or the path of labels of a hierarchy
    """Return a label, the topmost of a hierarchy."""
    return str(label[0] if isinstance(label, list) else label)


def query_ids(files: BenchmarkFiles) -> list[str]:
    """Return the queries that are scored, in their order in the data."""
    relevant = files.main["relevant_docs"]
    return [query for query in files.main["queries"]["id"] if relevant.get(query)]


def query_measure(main_score: str) -> str | None:
    """Return the evaluator's name of a score that each query has, or None."""
    name = next((name for name in _QUERY_MEASURES if re.fullmatch(rf"{name}\d+", main_score)), None)
    return None if name is None else main_score.replace(name, _QUERY_MEASURES[name])


def _keep_queries(task: AbsTask) -> dict[str, dict[str, dict[str, float]]]:
    """The scores of every query by subset, which mteb hands to this hook and then averages."""
    kept: dict[str, dict[str, dict[str, float]]] = {}
    original = task.task_specific_scores

    def keep(scores: Any, *others: Any, hf_subset: str, **options: Any) -> Any:  # noqa: ANN401
        kept[hf_subset] = scores
        return original(scores, *others, hf_subset=hf_subset, **options)

    task.task_specific_scores = keep
    return kept


def _items(files: BenchmarkFiles, encoder: Stored, queries: Mapping[str, Mapping[str, float]]) -> Any:  # noqa: ANN401
    kind = item_kind(files)
    if kind is None:
        return []
    if kind == "query":
        measure = query_measure(files.main_score)
        return [queries[query][str(measure)] for query in query_ids(files)]
    if kind == "similarity":
        first, second = (encoder.vectors[encoder.find(texts)] for texts in files.pairs()[:2])
        return cosine_pairs(first, second)
    text, label = files.spec["columns"]
    if kind == "cluster":
        rows = files.main.select(files.spec["clustered"])
        names = gold(files)
        return cluster(encoder.vectors[encoder.find(rows[text])], len(set(names)), files.options["seed"])
    train = files.dataset[files.subset][files.facts["train_split"]].select(files.spec["probe"])
    parts = [encoder.vectors[encoder.find(rows[text])] for rows in (train, files.main)]
    labels = [_names(rows[label]) for rows in (train, files.main)]
    return linear_probe(parts[0], labels[0], parts[1], labels[1], files.options["seed"])


def _names(labels: list[Any]) -> NDArray[np.str_]:
    return np.array([str(label) for label in labels])
