"""TF-IDF of large tasks, whose dense matrix (texts x words) would not fit the memory."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import average_precision_score

from layerwise.tasks.encoder import Stored, Vectors

COMPONENTS = 256


class SparseStored(Stored):
    """Answers with sparse rows; where mteb wants similarities, with row numbers, which it hands back to ``similarity``."""

    def __init__(self, task: str, rows: Mapping[str, int], matrix: sparse.csr_array, numbers: bool) -> None:
        """Look up texts of ``task`` in ``matrix`` (N, W), whose rows have unit norm or are zero.

        Args:
            task: for messages. rows: the row of each text's key.
            matrix: TF-IDF. numbers: answer with row numbers (N, 1).
        """
        super().__init__(task, rows, matrix)
        self.matrix, self.numbers = sparse.csr_matrix(matrix), numbers

    def encode(self, inputs: Iterable[Mapping[str, Any]], **_unused: Any) -> Any:  # noqa: ANN401
        """Return the sparse rows of the texts in ``inputs``, or their numbers."""
        found = self.find([text for batch in inputs for text in batch["text"]])
        return np.array(found, dtype=np.float64)[:, None] if self.numbers else self.matrix[found]

    def similarity(self, first: Any, second: Any) -> NDArray[np.float64]:  # noqa: ANN401
        """Return the (N, M) cosines of the rows whose numbers are ``first`` (N, 1) and ``second`` (M, 1)."""
        rows = [self.matrix[np.asarray(numbers).ravel().astype(int)] for numbers in (first, second)]
        return np.asarray((rows[0] @ rows[1].T).todense())


def cosine_score(kind: str, first: Any, second: Any, gold: Any) -> float:  # noqa: ANN401
    """Return the score of the cosines of pairs of sparse unit rows: Spearman of an sts task, else average precision.

    mteb's ``max_ap`` is the best of five similarities; for unit vectors the Manhattan distance alone can differ.
    """
    cosines = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    if kind == "sts":
        return float(np.nan_to_num(spearmanr(cosines, gold).statistic))
    return float(average_precision_score(np.asarray(gold, dtype=float) > 0, cosines))


def truncated(matrix: sparse.csr_array, seed: int) -> Vectors:
    """Return the rows of ``matrix`` (N, W) in their first 256 singular directions: (N, at most 256), for clustering."""
    count = min(COMPONENTS, min(matrix.shape) - 1)
    vectors: Vectors = TruncatedSVD(count, random_state=seed).fit_transform(matrix)
    return vectors
