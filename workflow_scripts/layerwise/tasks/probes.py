"""Probes on stored vectors: the `standardised` protocol, with the outcome of every test item."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

Vectors = NDArray[np.float64]
Labels = NDArray[np.str_]
STRENGTHS = (1e-3, 1e-2, 1e-1)


def linear_probe(train: Vectors, train_labels: Labels, test: Vectors, test_labels: Labels, seed: int) -> NDArray[np.int64]:
    """Return for each test item whether a linear probe is right (1) or wrong (0).

    Multinomial logistic regression on features scaled by the train rows; C is chosen on a held-out fifth of the train
    rows among ``STRENGTHS`` (the smallest of equals), then the probe is fitted on all of them. Reported beside mteb's
    own protocol, whose unscaled fit does not converge on raw residual streams.

    Args:
        train: (N, D). train_labels: (N,). test: (M, D). test_labels: (M,).
        seed: of the held-out split.
    """
    parts = train_test_split(train, train_labels, test_size=0.2, random_state=seed, stratify=_strata(train_labels))
    fitted, held_out, fitted_labels, held_out_labels = parts
    predictions = _predictions(fitted, fitted_labels, held_out, STRENGTHS)
    accuracies = [float(np.mean(predicted == held_out_labels)) for predicted in predictions]
    (predicted,) = _predictions(train, train_labels, test, STRENGTHS[int(np.argmax(accuracies)) :][:1])
    return (predicted == test_labels).astype(np.int64)


def cross_validated_probe(vectors: Vectors, labels: Labels, folds: int, seed: int) -> NDArray[np.int64]:
    """Return for each of N rows whether a linear probe that was fitted without its fold is right (1) or wrong (0).

    Args:
        vectors: (N, D). labels: (N,).
        folds: number of stratified folds; each is predicted by ``linear_probe`` on the others.
        seed: of the folds and of the choice of C.
    """
    correct = np.zeros(len(labels), dtype=np.int64)
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(vectors, labels):
        correct[test] = linear_probe(vectors[train], labels[train], vectors[test], labels[test], seed)
    return correct


def cluster(vectors: Vectors, n_clusters: int, seed: int) -> NDArray[np.int64]:
    """Return the k-means cluster of every row of ``vectors`` (N, D): the best of three starts."""
    return KMeans(n_clusters, n_init=3, random_state=seed).fit_predict(vectors).astype(np.int64)


def cosine_pairs(first: Vectors, second: Vectors) -> Vectors:
    """Return the cosine of every pair of rows; 0 where a vector is zero."""
    product = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.divide((first * second).sum(axis=1), product, out=np.zeros(len(first)), where=product > 0)


def _predictions(train: Vectors, labels: Labels, test: Vectors, strengths: Sequence[float]) -> list[Labels]:
    """Labels of the test rows by a probe of each strength, on features scaled once by the train rows."""
    if (labels == labels[0]).all():  # a rare class may be in the held-out rows only
        return [np.full(len(test), labels[0]) for _ in strengths]
    scaler = StandardScaler(with_mean=not sparse.issparse(train)).fit(train)
    scaled, asked = scaler.transform(train), scaler.transform(test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        probes = [LogisticRegression(C=strength, max_iter=500).fit(scaled, labels) for strength in strengths]
    return [probe.predict(asked) for probe in probes]


def _strata(labels: Labels) -> Labels | None:
    """The labels, unless one is too rare to be on both sides of a split."""
    counts = np.unique(labels, return_counts=True)[1]
    return labels if counts.min() >= 2 and len(labels) // 5 >= len(counts) else None
