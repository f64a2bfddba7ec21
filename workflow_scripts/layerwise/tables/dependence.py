"""Measures of dependence between two short curves over layers. A measure that does not exist is NaN, never an error."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_TINY = 1e-12


def constant(curves: ArrayLike) -> NDArray[np.bool_]:
    """Whether curves (..., L) are the same at every layer, up to float64 rounding."""
    curves = np.asarray(curves, dtype=np.float64)
    return np.ptp(curves, axis=-1) <= _TINY * np.abs(curves).max(axis=-1)


def ranks(curves: ArrayLike) -> Array:
    """Ranks 1..L of curves (..., L) along the last axis; ties share their mean rank. NaN is not a value of a curve."""
    curves = np.asarray(curves, dtype=np.float64)
    if curves.ndim > 1:
        order = np.argsort(curves, axis=-1)
        if (np.diff(np.take_along_axis(curves, order, axis=-1), axis=-1) > 0).all():
            places = np.empty(curves.shape)
            np.put_along_axis(places, order, np.broadcast_to(np.arange(1.0, curves.shape[-1] + 1), curves.shape), axis=-1)
            return places
    # counting needs L^2 comparisons, which is little for layers, and no import of scipy.stats, which takes a second
    below = (curves[..., None, :] < curves[..., :, None]).sum(axis=-1)
    upto = (curves[..., None, :] <= curves[..., :, None]).sum(axis=-1)
    return (below + upto + 1.0) / 2.0


def unit_ranks(curves: ArrayLike) -> Array:
    """Ranks of curves (..., L) along the last axis, centred, unit norm; NaN if constant or undefined at some layer.

    Ties share their mean rank. The product of two such vectors is their Spearman correlation.
    """
    curves = np.asarray(curves, dtype=np.float64)
    centred = ranks(curves) - (curves.shape[-1] + 1) / 2.0
    norms = np.linalg.norm(centred, axis=-1, keepdims=True)
    defined = (norms > 0) & (~constant(curves) & np.isfinite(curves).all(axis=-1))[..., None]
    return np.divide(centred, norms, out=np.full(curves.shape, np.nan), where=defined)


def spearman(x: ArrayLike, y: ArrayLike) -> Array:
    """Spearman correlation of curves (..., L) pairwise along the leading axes, in [-1, 1]; NaN if one is constant."""
    return np.clip((unit_ranks(x) * unit_ranks(y)).sum(axis=-1), -1.0, 1.0)


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of two curves (L,), in [-1, 1]; NaN if one is constant."""
    if constant(x) or constant(y):
        return float("nan")
    a, b = (np.sign(np.subtract.outer(curve, curve)) for curve in (np.asarray(x, float), np.asarray(y, float)))
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def residual_spearman(x: ArrayLike, y: ArrayLike, depth: ArrayLike) -> Array:
    """Spearman correlation of what a quadratic in depth leaves of curves (..., L): the relation beyond depth.

    An inverted U that both curves follow vanishes, also where it is free of noise. What curves share beyond a quadratic
    (a peak far from the middle, a jump at one layer) stays; only the permutation of tasks keeps any profile of depth.

    Returns:
        (...) in [-1, 1]; NaN below 6 layers, for a constant curve, or where depth explains a curve completely.
    """
    return spearman(*(_residuals(np.asarray(curve, dtype=np.float64), depth) for curve in (x, y)))


def partial_spearman(x: ArrayLike, y: ArrayLike, depth: ArrayLike) -> float:
    """Correlation of the ranks of two curves (L,) after depth and depth^2 are regressed out of the ranks.

    This is the usual partial rank correlation, as one would compute it for the study, with the controls entering as they
    are (the rank of depth^2 would repeat the rank of depth). A quadratic in ranks is only close to an inverted U in
    values: where both curves follow the same U almost without noise, some of it stays. ``residual_spearman`` has no such
    remainder and is the one to read.

    Returns:
        In [-1, 1]; NaN below 6 layers, for a constant curve, or where depth explains a curve's ranks completely.
    """
    if constant(x) or constant(y):  # here, because ranks of rounding errors are not constant
        return float("nan")
    a, b = (_residuals(ranks(curve), depth) for curve in (x, y))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    return float(np.clip(a @ b, -1.0, 1.0))


@lru_cache(maxsize=256)
def _quadratic(depth: tuple[float, ...]) -> Array:
    """Orthonormal columns (L, 3) that span the quadratics in depth."""
    x = np.array(depth)
    basis, _ = np.linalg.qr(np.stack([np.ones_like(x), x, x**2], axis=1))
    return basis


def _residuals(curves: Array, depth: ArrayLike) -> Array:
    """What a quadratic in depth leaves of curves (..., L); a curve of NaN where it leaves nothing or L < 6."""
    places = np.asarray(depth, dtype=np.float64)
    if len(places) < 6:  # 3 fitted coefficients leave fewer than 3 degrees of freedom
        return np.full(curves.shape, np.nan)
    basis = _quadratic(tuple(places.tolist()))
    centred = curves - curves.mean(axis=-1, keepdims=True)
    left = centred - (centred @ basis) @ basis.T
    little = np.linalg.norm(left, axis=-1) <= 1e-6 * np.linalg.norm(centred, axis=-1)
    return np.where((constant(curves) | little)[..., None], np.nan, left)


def distance_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Distance correlation of two curves (L,), in [0, 1] (Szekely, Rizzo, Bakirov 2007); NaN if one is constant.

    It is biased upwards: independent curves of 25 layers average .34.
    """
    a, b = _distances(x), _distances(y)
    a, b = (m - m.mean(axis=0) - m.mean(axis=1, keepdims=True) + m.mean() for m in (a, b))
    scale = np.sqrt((a * a).mean() * (b * b).mean())
    if constant(x) or constant(y) or scale == 0:
        return float("nan")
    return float(np.sqrt(np.clip((a * b).mean() / scale, 0.0, 1.0)))


def corrected_squared_distance_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Bias-corrected squared distance correlation of two curves (L,), at most 1 and about 0 for independent curves.

    It may be negative (Szekely and Rizzo 2014, U-centred distances). NaN below 4 layers or if one is constant.
    """
    a, b = _distances(x), _distances(y)
    n = len(a)
    if n < 4 or constant(x) or constant(y):
        return float("nan")
    a, b = _u_centred(a), _u_centred(b)
    scale = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / scale) if scale > 0 else float("nan")


def _distances(x: ArrayLike) -> Array:
    values = np.asarray(x, dtype=np.float64)
    return np.abs(values[:, None] - values[None, :])


def _u_centred(distances: Array) -> Array:
    n = len(distances)
    rows = distances.sum(axis=1, keepdims=True)
    centred = distances - rows / (n - 2) - rows.T / (n - 2) + distances.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(centred, 0.0)
    return centred
