"""What a task gives without any model: majority, text length, TF-IDF. A layer below these has not shown anything."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from layerwise.tasks.encoder import Stored, text_key
from layerwise.tasks.outcome import Score
from layerwise.tasks.sparse import SparseStored, cosine_score, truncated

WORD = r"(?u)\b\w+\b"  # scikit-learn's default leaves out words of one letter
DENSE_CELLS = 20_000_000  # texts x words of a TF-IDF matrix that is made dense: 160 MB
_PAIRS = ("sts", "pair_classification")


def baselines(
    files: Any,  # noqa: ANN401 - a text task or a task of mteb
    texts: list[str],
    score: Callable[[Any, Stored], Score],
    majority: float | None,
) -> list[dict[str, Any]]:
    """Return ``{baseline, protocol, score}`` of every baseline on a task.

    TF-IDF (words, sublinear, fitted on all texts of the task without labels) and text length go through the same
    evaluators as a layer. Length is a point on a quarter circle, so that its cosine falls with the difference of log
    lengths. The matrix of a large task stays sparse; there clusters are found in its 256 first singular directions.

    Args:
        files: of the task: a name, a type, and what ``score`` needs.
        texts: every text of the task, once.
        score: scores stored vectors.
        majority: the score of a constant answer, if the task has one.
    """
    rows = {text_key(text): i for i, text in enumerate(texts)}
    logs = np.log([len(text) + 1 for text in texts])
    angles = (logs - logs.min()) / max(np.ptp(logs), 1e-9) * np.pi / 2
    lengths = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    scores = {"text_length": score(files, Stored(files.name, rows, lengths)).scores}
    scores["tfidf"] = _tfidf(files, texts, rows, score)
    if majority is not None:
        scores["majority"] = dict.fromkeys(scores["tfidf"], majority)
    return [
        {"baseline": name, "protocol": protocol, "score": value}
        for name, protocols in scores.items()
        for protocol, value in protocols.items()
    ]


def _tfidf(
    files: Any,  # noqa: ANN401 - a text task or a task of mteb
    texts: list[str],
    rows: dict[str, int],
    score: Callable[[Any, Stored], Score],
) -> dict[str, float]:
    try:
        matrix = TfidfVectorizer(sublinear_tf=True, token_pattern=WORD).fit_transform(texts)
    except ValueError:  # no text has a word
        return score(files, Stored(files.name, rows, np.ones((len(texts), 1)))).scores
    if matrix.shape[0] * matrix.shape[1] <= DENSE_CELLS:
        return score(files, Stored(files.name, rows, matrix.toarray())).scores
    if files.type in _PAIRS:
        first, second, gold = files.pairs()
        stored = SparseStored(files.name, rows, matrix, numbers=False)
        halves = [stored.matrix[stored.find(side)] for side in (first, second)]
        return {"mteb": cosine_score(files.type, halves[0], halves[1], gold)}
    if files.type in ("classification", "reranking", "retrieval"):
        return score(files, SparseStored(files.name, rows, matrix, numbers=files.type != "classification")).scores
    return score(files, Stored(files.name, rows, truncated(matrix, files.options["seed"]))).scores
