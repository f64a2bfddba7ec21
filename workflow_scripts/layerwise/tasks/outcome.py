"""What a task gives for one set of vectors."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Score:
    """What one layer, or one baseline, gets on a task.

    Attributes:
        scores: by protocol, in [0, 1] (Spearman in [-1, 1]): ``mteb``, ``knn``, ``standardised``, whichever the task has;
            the first is its main score.
        n_not_converged: fits of mteb's classifier that stopped at its iteration limit.
        items: outcome of every test item under the last protocol of ``scores``: 0/1, a cluster number or a cosine.
    """

    scores: dict[str, float]
    n_not_converged: int
    items: list[float]
