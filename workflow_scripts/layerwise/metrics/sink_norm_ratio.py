"""Sink norm ratio: how many times longer the first token of a text is than its other tokens (massive activations)."""

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import UndefinedMetric
from layerwise.metrics.spec import Activations, Array, Case, Direction, MetricSpec
from layerwise.spectrum import checked, scaled

SPEC = MetricSpec(
    name="sink_norm_ratio",
    unit="times the median",
    needs=("tokens",),
    minimum_samples=1,
    minimum_views=1,
    bounds=(0.0, None),
    # The account of the valley (arXiv 2510.06477) explains it by the first token; nobody picks a layer by its norm.
    direction=Direction(theory=None, study=None),
    variants=("paper",),
    standard_error="samples",
    recipes=("raw",),
)


def sink_norm_ratio(tokens: Array) -> float:
    """Norm of the first token over the median norm of the others.

    In language models the first token becomes an attention sink of huge norm (Sun et al. 2024, arXiv 2402.17762; Queipo de
    Llano et al. 2025, arXiv 2510.06477). The value of a corpus is the mean over texts; for images the first token is the
    class token, the others are the patches. The median is the lower of two middle ones, as in the activation file.

    Args:
        tokens: (T, D) token vectors of one text, raw, T >= 2. Any scale.

    Returns:
        Ratio >= 0, 1 for a first token like the others. Invariant to rotation, to global scale and to the order of the
        other tokens.

    Raises:
        UndefinedMetric: fewer than 2 tokens, NaN or infinity, or at least half of the others are zero.

    Example:
        >>> sink_norm_ratio(np.array([[30.0, 40.0], [0.0, 1.0], [2.0, 0.0], [0.0, 4.0]]))
        25.0
    """
    first, median = _prepare(tokens)
    return _compute(first, median)


def sample_values(activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) ratios for every case, NaN where undefined."""
    norms = np.asarray(activations.token_norms(layer), dtype=np.float64)
    first, median = norms[:, 0], norms[:, 1]
    ratios = np.divide(first, median, out=np.full(len(norms), np.nan), where=median > 0)
    return [ratios for _ in cases]


def sample_ceiling(sizes: NDArray[np.int64], width: int, recipe: str, case: Case) -> Array:
    """(N,) 1, since a ratio has no largest value and is comparable as it is; NaN for one token."""
    return np.where(sizes >= 2, 1.0, np.nan)


def sample_null(tokens: Array, cases: list[Case]) -> list[float]:
    """Ratio of one (T, D) draw for every case."""
    return [sink_norm_ratio(tokens)] * len(cases)


def _prepare(tokens: Array) -> tuple[float, float]:
    norms = np.linalg.norm(scaled(checked(tokens, minimum=2)), axis=1)
    return float(norms[0]), float(np.quantile(norms[1:], 0.5, method="lower"))


def _compute(first: float, median: float) -> float:
    if not median > 0:
        raise UndefinedMetric("the median norm of the tokens after the first is 0")
    return first / median
