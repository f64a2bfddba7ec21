"""Anisotropy: the mean cosine between different vectors, of a corpus or among the tokens of one text."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import UndefinedMetric
from layerwise.metrics.spec import Activations, Array, Case, Direction, MetricSpec, Value
from layerwise.spectrum import checked, unit

SPEC = MetricSpec(
    name="anisotropy",
    unit="cosine",
    needs=("pooled", "tokens"),
    minimum_samples=3,
    minimum_views=1,
    bounds=(-1.0, 1.0),
    direction=Direction(theory=None, study=None),  # described since Ethayarajh (2019), selected by nobody here
    variants=("paper",),
    recipes=("unit", "unit_skip_first"),
)


class Sums(NamedTuple):
    """N unit vectors: their number, their sum (D,), and the sum of their squared norms (zero rows stay zero)."""

    n: int
    total: Array
    own: float


def anisotropy(Z: Array) -> float:
    """Mean cosine between all pairs of different rows, without centring (Ethayarajh 2019, arXiv 1909.00512).

    From the sum s of the N unit vectors: (|s|^2 - N) / (N (N - 1)), no pair is formed. A zero row has cosine 0 with every
    other. Readouts are compared between samples, tokens within one text (recipes ``unit`` and ``unit_skip_first``).

    Args:
        Z: (N, D) vectors, N >= 2. Any scale, row by row.

    Returns:
        Cosine within [-1 / (N - 1), 1]: 1 for one direction, 0 for unrelated ones. Invariant to row order, rotation and the
        length of every row.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, all rows zero.

    Example:
        >>> round(anisotropy(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])), 6)
        0.471405
    """
    return _compute(_prepare(Z))


def prepare(views: Array) -> Array:
    """Unit norm and no centring, which would bring every mean cosine to -1 / (N - 1)."""
    return unit(views)


def summarise(views: Array) -> Sums:
    """Sums over (N, 1, D) prepared vectors.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity.
    """
    return _prepare(views[:, 0])


def accumulate(shape: tuple[int, int], blocks: Iterable[Array]) -> Sums:
    """The same for (N, D) prepared vectors that come in blocks."""
    total, own = np.zeros(shape[1]), 0.0
    for block in blocks:
        total, own = total + block.sum(axis=0), own + float(np.square(block).sum())
    return Sums(shape[0], total, own)


def evaluate(state: Sums, case: Case, seed: int) -> Value:
    """Mean cosine, which is on a shared scale as it is.

    Raises:
        UndefinedMetric: all rows zero.
    """
    cosine = _compute(state)
    return Value(cosine, cosine)


def sample_values(activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) mean cosines among each sample's tokens for every case, NaN where undefined."""
    cosines = np.asarray(activations.token_cosines(layer), dtype=np.float64)[:, int(recipe == "unit_skip_first")]
    return [cosines for _ in cases]


def sample_ceiling(sizes: NDArray[np.int64], width: int, recipe: str, case: Case) -> Array:
    """(N,) the largest cosine, 1; NaN for one token."""
    return np.where(sizes >= 2, 1.0, np.nan)


def sample_null(tokens: Array, cases: list[Case]) -> list[float]:
    """Mean cosine in one prepared (T, D) draw for every case, 0 on average."""
    return [anisotropy(tokens)] * len(cases)


def _prepare(Z: Array) -> Sums:
    rows = unit(checked(Z, minimum=2))
    return accumulate((rows.shape[0], rows.shape[1]), [rows])


def _compute(sums: Sums) -> float:
    if not sums.own > 0:
        raise UndefinedMetric("all vectors are zero")
    return (float(np.square(sums.total).sum()) - sums.own) / (sums.n * (sums.n - 1))
