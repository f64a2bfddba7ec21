"""Effective rank (Roy and Vetterli, 2007) of pooled vectors and of the tokens of one prompt."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from layerwise.metrics.recipes import is_centred
from layerwise.metrics.spec import Activations, Array, Case, Direction, MetricSpec, Value
from layerwise.spectrum import checked, gram_spectrum, normalised_eigenvalues, second_moment, singular_rank

SPEC = MetricSpec(
    name="effective_rank",
    unit="directions",
    needs=("pooled", "tokens"),
    minimum_samples=3,
    minimum_views=1,
    bounds=(1.0, None),
    direction=Direction(theory="max", study=None),
    variants=("paper",),
)


def effective_rank(Z: Array) -> float:
    """Exponential of the Shannon entropy of the singular values divided by their sum (Roy and Vetterli 2007).

    Singular values, not their squares: squaring makes a distribution more uneven, so the result is never below
    exp(matrix_entropy(Z)). (Theorem 1 of Skean et al. 2025 states the reverse; its proof lets the same numbers sum to
    one before and after squaring.) Computed from the roots of the smaller Gram matrix's eigenvalues: singular values
    below 1e-8 of the largest come out as 0 or with few digits, which moves the result by less than 1e-3.

    Args:
        Z: (N, D) prepared vectors, N >= 2. Any scale.

    Returns:
        Number of directions, within [1, min(N, D)]; invariant to row order, rotation and global scale.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, all rows zero.

    Example:
        >>> round(effective_rank(np.eye(3)), 6)
        3.0
    """
    return _compute(_prepare(Z))


def summarise(views: Array) -> tuple[Array, tuple[int, int]]:
    """Normalised spectrum and shape of the (N, 1, D) prepared vectors.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, all rows zero.
    """
    rows = views[:, 0]
    return _prepare(rows), (rows.shape[0], rows.shape[1])


def accumulate(shape: tuple[int, int], blocks: Iterable[Array]) -> tuple[Array, tuple[int, int]]:
    """The same for (N, D), N > D, prepared vectors that come in blocks.

    Raises:
        UndefinedMetric: all rows zero.
    """
    return normalised_eigenvalues(second_moment(shape[1], blocks)), shape


def evaluate(state: tuple[Array, tuple[int, int]], case: Case, seed: int) -> Value:
    """Effective rank; normalised by min(N - 1, D), the most that centred vectors can reach."""
    spectrum, (n, width) = state
    rank, most = _compute(spectrum), min(n - 1, width)
    return Value(rank, rank / most if most > 1 else None)


def sample_values(activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) effective ranks of each sample's tokens for every case, NaN where undefined."""
    ranks = singular_rank(activations.spectra(recipe, layer))
    return [ranks for _ in cases]


def sample_ceiling(sizes: NDArray[np.int64], width: int, recipe: str, case: Case) -> Array:
    """(N,) min(T - 1, D) for centred tokens, min(T, D) for others, NaN where that is one direction."""
    directions = np.minimum(sizes - int(is_centred(recipe)), width).astype(np.float64)
    return np.where(directions > 1, directions, np.nan)


def sample_null(tokens: Array, cases: list[Case]) -> list[float]:
    """Effective rank of one prepared (T, D) draw for every case."""
    return [effective_rank(tokens)] * len(cases)


def _prepare(Z: Array) -> Array:
    return gram_spectrum(checked(Z, minimum=2))


def _compute(spectrum: Array) -> float:
    return float(singular_rank(spectrum))
