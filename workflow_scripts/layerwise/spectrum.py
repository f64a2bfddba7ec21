"""Normalised eigenvalue spectra and their Renyi entropies: the algebra that most metrics share.

All functions work in float64 and in nats. None depends on the scale of its input: squares of 1e200 or 1e-200 would
leave float64's range, so vectors of such size are first multiplied by a power of two, which changes no digit.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from layerwise.errors import UndefinedMetric

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


def centre_unit(rows: ArrayLike) -> Array:
    """Subtract the mean row, then scale every row to unit norm; a row equal to the mean becomes zero.

    "Equal" means within the rounding of the mean itself: otherwise the last bits of N copies of one vector would be
    blown up to N unit vectors, and a constant input would look like a defined one.

    Args:
        rows: (N, D) vectors, or (N, V, D) for V views, each centred on its own mean. Any unit.

    Returns:
        Same shape, float64; NaN anywhere in a column reaches every row.
    """
    rows = scaled(np.asarray(rows, dtype=np.float64))
    return unit_about(rows, rows.mean(axis=0, keepdims=True), len(rows))


def unit_about(rows: Array, mean: Array, n: int) -> Array:
    """Subtract the mean of n rows, of which ``rows`` may be a block, then scale to unit norm as ``centre_unit`` does."""
    centred = rows - mean
    rounding = 4 * _EPS * n * (_norms(rows) + _norms(mean))
    centred[(_norms(centred) <= rounding)[..., 0]] = 0.0
    return unit(centred)


def unit(rows: ArrayLike) -> Array:
    """Scale every vector along the last axis to unit norm; zero vectors stay zero."""
    vectors: Array = np.asarray(rows, dtype=np.float64)
    norms = _norms(vectors)
    if (norms < 1e-140).any() or not (norms < 1e140).all():  # rare: the squares may have left float64's range
        peaks = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0)
        vectors = np.ldexp(vectors, -np.frexp(peaks)[1])
        norms = _norms(vectors)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms != 0))


def scaled(rows: Array) -> Array:
    """Return the array multiplied by 2^-exponent(rows), so that squares and fourth powers stay within float64."""
    exponent = scale_exponent(rows)
    return np.ldexp(rows, -exponent) if exponent else rows


def scale_exponent(rows: Array) -> int:
    """Power of two that brings the largest entry into [0.5, 1); 0 if that is within 1e-60..1e60 or not finite."""
    peak = float(max(rows.max(initial=0.0), -rows.min(initial=0.0)))  # no copy of the array, unlike abs
    return 0 if 1e-60 < peak < 1e60 or not np.isfinite(peak) else int(np.frexp(peak)[1])


def checked(rows: ArrayLike, minimum: int = 1) -> Array:
    """Return ``rows`` as a finite float64 (N, D) array.

    Raises:
        UndefinedMetric: not two-dimensional, fewer than ``minimum`` rows, or a NaN or infinity.
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2:
        raise UndefinedMetric(f"an (N, D) array is needed, got shape {rows.shape}")
    if len(rows) < minimum or rows.shape[1] == 0:
        raise UndefinedMetric(f"{len(rows)} samples of width {rows.shape[1]}, at least {minimum} needed")
    if not (np.isfinite(rows.min()) and np.isfinite(rows.max())):  # both carry NaN, and neither copies the array
        raise UndefinedMetric(f"{int((~np.isfinite(rows)).any(axis=1).sum())} of {len(rows)} rows hold NaN or infinity")
    return rows


def gram(rows: Array) -> Array:
    """Return the smaller of Z Z^T and Z^T Z of ``scaled`` rows: both have one non-zero spectrum (study, App. B)."""
    rows = scaled(rows)
    return rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows


def second_moment(width: int, blocks: Iterable[Array]) -> Array:
    """Return Z^T Z (D, D) of vectors that come in blocks (rows, D), added up block by block."""
    return sum((block.T @ block for block in blocks), np.zeros((width, width)))


def normalised_eigenvalues(matrix: Array) -> Array:
    """Eigenvalues of a symmetric matrix (..., n, n), negative ones set to zero, divided by their sum; ascending.

    Eigenvalues below n eps times the largest are rounding and become exact zeros: a rank-deficient matrix then keeps
    its rank, which roots and small alpha would otherwise see as hundreds of tiny directions.

    Raises:
        UndefinedMetric: no eigenvalue is positive, that is, every vector is zero.
    """
    values = np.linalg.eigvalsh(matrix)
    values = np.where(values > values.shape[-1] * _EPS * values[..., -1:], values, 0.0)
    total = values.sum(axis=-1, keepdims=True)
    if not (total > 0).all():
        raise UndefinedMetric("all vectors are zero (or equal, after centring)")
    return np.asarray(values / total, dtype=np.float64)


def gram_spectrum(rows: Array) -> Array:
    """Normalised spectrum (min(N, D),) of Z Z^T for one (N, D) array, ascending, sum 1."""
    return normalised_eigenvalues(gram(rows))


def renyi_entropy(spectrum: ArrayLike, alpha: float = 1.0) -> Array:
    """S_alpha of normalised spectra, along the last axis (the study, Eq. 1; alpha = 1 is the von Neumann limit).

    Args:
        spectrum: (..., r) non-negative, summing to 1 along the last axis.
        alpha: order, > 0.

    Returns:
        (...) in nats, within [0, log r]. NaN spectra give NaN.

    Raises:
        ValueError: alpha is not positive.
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be > 0, got {alpha}")
    spectrum = np.asarray(spectrum, dtype=np.float64)
    positive = ~(spectrum <= 0)  # keeps NaN
    if alpha == 1.0:
        logs = np.log(spectrum, out=np.zeros_like(spectrum), where=positive)
        return np.asarray(np.maximum(-(spectrum * logs).sum(axis=-1), 0.0))
    peak = spectrum.max(axis=-1, keepdims=True)  # p^alpha underflows for large alpha, (p / peak)^alpha does not
    powers = np.power(spectrum / peak, alpha, out=np.zeros_like(spectrum), where=positive)
    return np.asarray(np.maximum((np.log(powers.sum(axis=-1)) + alpha * np.log(peak[..., 0])) / (1.0 - alpha), 0.0))


def singular_rank(spectrum: ArrayLike) -> Array:
    """Effective rank (Roy and Vetterli, 2007) from normalised eigenvalues of Z Z^T.

    exp of the Shannon entropy of sigma_i / sum sigma, where sigma_i, the singular values, are the roots of the
    eigenvalues.

    Args:
        spectrum: (..., r) non-negative, summing to 1.

    Returns:
        (...) within [1, r]. NaN spectra give NaN.
    """
    sigma = np.sqrt(np.asarray(spectrum, dtype=np.float64))
    return np.asarray(np.exp(renyi_entropy(sigma / sigma.sum(axis=-1, keepdims=True))))


def _norms(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", rows, rows)))[..., None]
