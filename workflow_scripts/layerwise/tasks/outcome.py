"""What a task gives for one set of vectors."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Score:
    """What one layer, or one baseline, gets on a task.

    Attributes:
        scores: by protocol, in [0, 1] (Spearman in [-1, 1]): ``mteb``, ``knn``, ``standardised``, whichever the task has;
            the first is its main score.
        n_not_converged: fits of mteb's classifier that stopped at its iteration limit.
        items: outcome of every test item under the last protocol of ``scores``: 0/1, a cluster number, a cosine, or a
            query's own score; empty where the score does not come from items.
        results: all that mteb's evaluator reports, by subset; only of tasks scored by mteb.
    """

    scores: dict[str, float]
    n_not_converged: int
    items: list[float]
    results: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


def plain(value: Any) -> Any:  # noqa: ANN401 - anything mteb puts into a result
    """Return a result as JSON holds it: plain numbers, NaN and infinity as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
