"""Scores of one set of vectors on one task, under every protocol, with per-item outcomes."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import v_measure_score

from layerwise.tasks.benchmark import TaskFiles
from layerwise.tasks.encoder import Stored
from layerwise.tasks.outcome import Score, plain
from layerwise.tasks.probes import cluster, cosine_pairs, cross_validated_probe, linear_probe

ITEM_KINDS = {
    "classification": "correct",
    "clustering": "cluster",
    "pair_classification": "similarity",
    "sts": "similarity",
}


def score(files: TaskFiles, encoder: Stored) -> Score:
    """Score the vectors behind ``encoder`` on a task."""
    task = files.fresh()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = task.evaluate(encoder, "test", encode_kwargs={"batch_size": 1024, "show_progress_bar": False})
    # Vectors that make every pair equally similar order nothing: no rank correlation exists, and like a constant answer
    # (baseline `majority`) they get 0.
    scores = {"mteb": float(np.nan_to_num(result["default"]["main_score"], nan=0.0))}
    items = np.asarray(_items(files, encoder), dtype=np.float64)
    if files.type == "classification":
        scores["standardised"] = float(items.mean())
    elif files.type == "clustering":
        scores["standardised"] = float(v_measure_score(gold(files), items))
    not_converged = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    results = {"default": plain(result["default"])}
    return Score(scores, not_converged, [round(float(item), 6) for item in items], results)


def gold(files: TaskFiles) -> list[Any]:
    """Return the true label or human score of every item, in the order of ``Score.items``."""
    column = {"classification": "label", "clustering": "labels", "pair_classification": "labels", "sts": "score"}[files.type]
    splits = ("train", "test") if files.options["folds"] else ("test",)
    return [value for split in splits for value in files.dataset[split][column]]


def _items(files: TaskFiles, encoder: Stored) -> Any:  # noqa: ANN401 - an integer or a float array
    test, seed = files.dataset["test"], files.options["seed"]
    if files.type == "classification":
        return _classified(files, encoder)
    if files.type == "clustering":
        return cluster(encoder.vectors[encoder.find(test["sentences"])], len(set(test["labels"])), seed)
    first, second = (encoder.vectors[encoder.find(test[column])] for column in ("sentence1", "sentence2"))
    return cosine_pairs(first, second)


def _classified(files: TaskFiles, encoder: Stored) -> Any:  # noqa: ANN401 - an integer array
    splits, seed, folds = files.dataset, files.options["seed"], files.options["folds"]
    train, test = (encoder.vectors[encoder.find(splits[split]["text"])] for split in ("train", "test"))
    train_labels, test_labels = (np.array(splits[split]["label"]) for split in ("train", "test"))
    if folds is None:
        return linear_probe(train, train_labels, test, test_labels, seed)
    together = sparse.vstack([train, test]).tocsr() if sparse.issparse(train) else np.vstack([train, test])
    return cross_validated_probe(together, np.concatenate([train_labels, test_labels]), folds, seed)
