"""Intrinsic dimension (TwoNN) of pooled vectors: on how many dimensions the samples lie locally.

Written here in NumPy and tested against scikit-dimension 0.5: importing that takes two seconds and 200 MB (numba, LLVM) for
the lines of ``_compute``, and a metric's job starts in a fraction of a second.
"""

import numpy as np

from layerwise.errors import UndefinedMetric
from layerwise.metrics.spec import Array, Case, Direction, MetricSpec, Value
from layerwise.spectrum import checked, scaled

SPEC = MetricSpec(
    name="intrinsic_dimension",
    unit="dimensions",
    needs=("pooled",),
    minimum_samples=10,  # a slope through nine ratios
    minimum_views=1,
    bounds=(0.0, None),
    direction=Direction(theory=None, study=None),  # "we do not study intrinsic dimensionality"
    variants=("paper",),
    max_samples=4_000,
)

_DISCARDED = 0.1  # the largest ratios, which the paper leaves out of its fit
_CANDIDATES = 4


def intrinsic_dimension(Z: Array) -> float:
    """TwoNN (Facco, d'Errico, Rodriguez and Laio 2017, Scientific Reports 7:12140).

    For every row, mu = distance to its second neighbour over that to its first. Where the density is constant up to the
    second neighbour, mu has the distribution F(mu) = 1 - mu^-d, so -log(1 - F) is a line in log mu of slope d. The slope is
    fitted through the origin, F taken as i / N in sorted order, without the tenth of largest ratios. It grows with N and is
    far too low above about 20 dimensions: compare at equal N, and with the null.

    Args:
        Z: (N, D) vectors, N >= 10. Any scale.

    Returns:
        Dimensions > 0. Invariant to row order, shift, rotation and global scale.

    Raises:
        UndefinedMetric: fewer than 10 rows, NaN or infinity, a row that occurs more than once (its nearest neighbour is at
            distance 0 and mu has no value), or every two neighbours at one distance.
    """
    return _compute(_prepare(Z))


def prepare(views: Array) -> Array:
    """As they are: only distances between the vectors count."""
    return views


def summarise(views: Array) -> Array:
    """(N,) ratios of (N, 1, D) vectors.

    Raises:
        UndefinedMetric: as ``intrinsic_dimension``.
    """
    return _prepare(views[:, 0])


def evaluate(state: Array, case: Case, seed: int) -> Value:
    """Dimensions; no normalised value, for its largest depends on N and on nothing that models share.

    Raises:
        UndefinedMetric: every two neighbours are at one distance.
    """
    return Value(_compute(state), None)


def _prepare(Z: Array) -> Array:
    """Sorted ratios (N,) of second to first neighbour's distance."""
    rows = scaled(checked(Z, minimum=SPEC.minimum_samples))
    rows = rows - rows.mean(axis=0)
    squares = np.einsum("ij,ij->i", rows, rows)
    near = squares[:, None] + squares - 2 * rows @ rows.T
    np.fill_diagonal(near, np.inf)
    # Differences of large squares order the candidates; the distances themselves are taken anew.
    candidates = np.argpartition(near, _CANDIDATES, axis=1)[:, :_CANDIDATES]
    distances = np.stack([np.linalg.norm(rows[others] - rows, axis=1) for others in candidates.T])
    first, second = np.sort(distances, axis=0)[:2]
    twins = int((first == 0).sum())
    if twins:
        raise UndefinedMetric(f"{twins} of {len(rows)} vectors occur more than once: the nearest neighbour is at distance 0")
    return np.sort(second / first)


def _compute(ratios: Array) -> float:
    n = len(ratios)
    kept = int(n * (1 - _DISCARDED))
    x, y = np.log(ratios[:kept]), -np.log1p(-np.arange(1, kept + 1) / n)
    if not x.any():
        raise UndefinedMetric("every vector has its two nearest neighbours at one distance")
    return float((x @ y) / (x @ x))
