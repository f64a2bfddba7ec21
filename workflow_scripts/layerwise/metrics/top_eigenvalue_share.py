"""Top eigenvalue share: how much of the second moment lies along its single largest direction."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from layerwise.metrics.recipes import is_centred
from layerwise.metrics.spec import Activations, Array, Case, Direction, MetricSpec, Value
from layerwise.spectrum import checked, gram_spectrum, normalised_eigenvalues, second_moment

SPEC = MetricSpec(
    name="top_eigenvalue_share",
    unit="share",
    needs=("pooled", "tokens"),
    minimum_samples=3,
    minimum_views=1,
    bounds=(0.0, 1.0),
    direction=Direction(theory=None, study=None),  # an account of the valley, by which nobody picks a layer
    variants=("paper",),
)


def top_eigenvalue_share(Z: Array) -> float:
    """Largest eigenvalue of Z Z^T over its trace (p_1 of Queipo de Llano et al. 2025, arXiv 2510.06477).

    Not centred: readouts are taken as they are, tokens as their recipe prepares them. For raw tokens it is at least
    the share of any single token (``sink_variance_share``).

    Args:
        Z: (N, D) vectors, N >= 2. Any scale.

    Returns:
        Share within [1 / min(N, D), 1]; invariant to row order, rotation and global scale.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, all rows zero.

    Example:
        >>> round(top_eigenvalue_share(np.diag([2.0, 1.0, 1.0])), 6)
        0.666667
    """
    return _compute(_prepare(Z))


def prepare(views: Array) -> Array:
    """As they are: the second moment is not centred."""
    return views


def summarise(views: Array) -> Array:
    """Normalised spectrum of (N, 1, D) vectors, ascending.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, all rows zero.
    """
    return _prepare(views[:, 0])


def accumulate(shape: tuple[int, int], blocks: Iterable[Array]) -> Array:
    """The same for (N, D), N > D, vectors that come in blocks.

    Raises:
        UndefinedMetric: all rows zero.
    """
    return normalised_eigenvalues(second_moment(shape[1], blocks))


def evaluate(state: Array, case: Case, seed: int) -> Value:
    """The share, which is on a shared scale as it is."""
    share = _compute(state)
    return Value(share, share)


def sample_values(activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) shares in each sample's tokens for every case, NaN where undefined."""
    shares = activations.spectra(recipe, layer).max(axis=1)
    return [shares for _ in cases]


def sample_ceiling(sizes: NDArray[np.int64], width: int, recipe: str, case: Case) -> Array:
    """(N,) the largest share, 1; NaN where the tokens can take one direction only and the share says nothing."""
    return np.where(np.minimum(sizes - int(is_centred(recipe)), width) > 1, 1.0, np.nan)


def sample_null(tokens: Array, cases: list[Case]) -> list[float]:
    """Share in one prepared (T, D) draw for every case."""
    return [top_eigenvalue_share(tokens)] * len(cases)


def _prepare(Z: Array) -> Array:
    return gram_spectrum(checked(Z, minimum=2))


def _compute(spectrum: Array) -> float:
    return float(spectrum[-1])
