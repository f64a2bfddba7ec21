"""Linear centred kernel alignment: how alike two sets of vectors of the same samples are, up to rotation and scale.

Kornblith et al., "Similarity of Neural Network Representations Revisited" (ICML 2019), section 3. In high dimension it is
biased upwards: two independent Gaussian sets give about D / (N + D). ``debiased`` has no such floor: the unbiased HSIC of
Song et al. (JMLR 2012), as in Nguyen et al. (ICLR 2021).
"""

import numpy as np
from numpy.typing import ArrayLike

from layerwise.errors import UndefinedMetric
from layerwise.spectrum import Array, checked, scaled

_EPS = float(np.finfo(np.float64).eps)
_LEAST, _LEAST_DEBIASED = 2, 4


def linear_cka(first: ArrayLike, second: ArrayLike, debiased: bool = False) -> float:
    """Return the linear CKA of two sets of vectors.

    Args:
        first: (N, D) vectors of any unit.
        second: (N, E) vectors of the same samples, in the same order.
        debiased: with unbiased estimates, N >= 4; can be below 0.

    Returns:
        Within [0, 1]; 1 where one set is the other one rotated, scaled and shifted. Debiased: at most 1.

    Raises:
        UndefinedMetric: too few samples, NaN or infinity, all vectors of a set equal, or different numbers of samples.
    """
    least = _LEAST_DEBIASED if debiased else _LEAST
    x, y = _centred(first, least), _centred(second, least)
    if len(x) != len(y):
        raise UndefinedMetric(f"{len(x)} samples in one set and {len(y)} in the other")
    shared, own, other = (_hsic(a, b, debiased) for a, b in ((x, y), (x, x), (y, y)))
    if not (own > 0 and other > 0):
        raise UndefinedMetric("the samples are too few for an unbiased estimate")
    return min(shared / float(np.sqrt(own) * np.sqrt(other)), 1.0)


def _centred(rows: ArrayLike, least: int) -> Array:
    """Minus their mean, on a scale whose fourth powers float64 can hold."""
    vectors = scaled(checked(rows, least))
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    rounding = 4 * _EPS * len(vectors) * np.abs(vectors).max()
    if np.abs(centred).max() <= rounding:
        raise UndefinedMetric("all vectors are equal")
    return scaled(centred)


def _hsic(x: Array, y: Array, debiased: bool) -> float:
    """HSIC of linear kernels of centred vectors, up to a factor that CKA does not see: sum of squares of X^T Y.

    Unbiased, with the diagonals k and l of the two N x N kernels left out: since the vectors are centred, the rows of the
    kernels without their diagonals sum to -k and -l, so that the N x N matrices are never built.
    """
    together = float(np.square(x.T @ y).sum())
    if not debiased:
        return together
    k, l = (np.square(rows).sum(axis=1) for rows in (x, y))  # noqa: E741 - as in the paper
    n, diagonal = len(x), float(k @ l)
    return together - diagonal + float(k.sum() * l.sum()) / ((n - 1) * (n - 2)) - 2 * diagonal / (n - 2)
