"""What a task gives without any model: majority, text length, TF-IDF. A layer below these has not shown anything."""

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from layerwise.tasks.benchmark import TaskFiles
from layerwise.tasks.encoder import Stored, text_key
from layerwise.tasks.score import gold, score

WORD = r"(?u)\b\w+\b"  # scikit-learn's default leaves out words of one letter


def baselines(files: TaskFiles, texts: list[str]) -> list[dict[str, Any]]:
    """Return ``{baseline, protocol, score}`` of every baseline on a task.

    TF-IDF (words, sublinear, fitted on all texts of the task without labels) and text length go through the same
    evaluators as a layer. Length is a point on a quarter circle, so that its cosine falls with the difference of log
    lengths. Majority is the score of a constant answer.
    """
    rows = {text_key(text): i for i, text in enumerate(texts)}
    tfidf = TfidfVectorizer(sublinear_tf=True, token_pattern=WORD).fit_transform(texts).toarray()
    logs = np.log([len(text) + 1 for text in texts])
    angles = (logs - logs.min()) / max(np.ptp(logs), 1e-9) * np.pi / 2
    lengths = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    scores = {
        name: score(files, Stored(files.name, rows, v)).scores for name, v in (("text_length", lengths), ("tfidf", tfidf))
    }
    scores["majority"] = dict.fromkeys(scores["tfidf"], _majority(files))
    return [
        {"baseline": name, "protocol": protocol, "score": value}
        for name, protocols in scores.items()
        for protocol, value in protocols.items()
    ]


def _majority(files: TaskFiles) -> float:
    labels = gold(files)
    if files.type == "classification":
        train = list(files.dataset["train"]["label"])
        return labels.count(max(sorted(set(train)), key=train.count)) / len(labels)
    return sum(labels) / len(labels) if files.type == "pair_classification" else 0.0
