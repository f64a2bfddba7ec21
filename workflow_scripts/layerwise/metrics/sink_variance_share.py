"""Sink variance share: how much of the second moment of a text's tokens its first token carries alone."""

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import UndefinedMetric
from layerwise.metrics.spec import Activations, Array, Case, Direction, MetricSpec
from layerwise.spectrum import checked, scaled

SPEC = MetricSpec(
    name="sink_variance_share",
    unit="share",
    needs=("tokens",),
    minimum_samples=1,
    minimum_views=1,
    bounds=(0.0, 1.0),
    direction=Direction(theory=None, study=None),  # an account of the valley, by which nobody picks a layer
    variants=("paper",),
    standard_error="samples",
    recipes=("raw",),
)


def sink_variance_share(tokens: Array) -> float:
    """Squared norm of the first token over the sum of squared norms of all tokens: |x_1|^2 / tr(X X^T).

    The largest eigenvalue of the uncentred second moment is at least this share of its trace (Queipo de Llano et al. 2025,
    arXiv 2510.06477, bound it below by the first token): where it is near 1, the raw spectrum has one direction and the raw
    entropy is near 0, whatever the other tokens do.

    Args:
        tokens: (T, D) token vectors of one text, raw, T >= 2. Any scale.

    Returns:
        Share within [0, 1]; 1 / T where all norms are equal. Invariant to rotation, to global scale and to the order of the
        other tokens.

    Raises:
        UndefinedMetric: fewer than 2 tokens, NaN or infinity, or all tokens zero.

    Example:
        >>> sink_variance_share(np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]))
        0.5625
    """
    return _compute(*_prepare(tokens))


def sample_values(activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) shares for every case, NaN where undefined."""
    norms = np.asarray(activations.token_norms(layer), dtype=np.float64)
    first, rest = norms[:, 0], norms[:, 2]
    total = np.hypot(first, rest)
    shares = np.square(np.divide(first, total, out=np.full(len(norms), np.nan), where=total > 0))
    return [shares for _ in cases]


def sample_ceiling(sizes: NDArray[np.int64], width: int, recipe: str, case: Case) -> Array:
    """(N,) the largest share, 1; NaN for one token, which is all there is."""
    return np.where(sizes >= 2, 1.0, np.nan)


def sample_null(tokens: Array, cases: list[Case]) -> list[float]:
    """Share in one (T, D) draw for every case, 1 / T on average."""
    return [sink_variance_share(tokens)] * len(cases)


def _prepare(tokens: Array) -> tuple[float, float]:
    norms = np.linalg.norm(scaled(checked(tokens, minimum=2)), axis=1)
    return float(norms[0]), float(np.linalg.norm(norms[1:]))


def _compute(first: float, rest: float) -> float:
    total = float(np.hypot(first, rest))
    if not total > 0:
        raise UndefinedMetric("all tokens are zero")
    return (first / total) ** 2
