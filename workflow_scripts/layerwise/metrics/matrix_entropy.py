"""Matrix-based entropy of a set of vectors (the study, Eq. 1), shared by prompt entropy and dataset entropy."""

from functools import cached_property
from typing import Self

import numpy as np

from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.spec import Array
from layerwise.spectrum import checked, gram, normalised_eigenvalues, renyi_entropy

VARIANTS = ("paper", "released")


class Spectra:
    """The Gram matrix of (N, D) vectors and its two spectra, each computed once and only when asked for."""

    def __init__(self, shape: tuple[int, ...], gram_matrix: Array) -> None:
        """Take (N, D) and the smaller of Z Z^T and Z^T Z."""
        self.shape, self.gram = shape, gram_matrix

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Form the Gram matrix of (N, D) vectors."""
        return cls(rows.shape, gram(rows))

    @cached_property
    def paper(self) -> Array:
        """(min(N, D),) normalised eigenvalues of the Gram matrix."""
        return normalised_eigenvalues(self.gram)

    @cached_property
    def clamped(self) -> Array:
        """(min(N, D), min(N, D)) Gram matrix with negative entries set to 0; no longer positive semi-definite."""
        return np.maximum(self.gram, 0.0)

    @cached_property
    def released(self) -> Array:
        """(min(N, D),) normalised positive eigenvalues of the clamped matrix."""
        return normalised_eigenvalues(self.clamped)


def matrix_entropy(Z: Array, alpha: float = 1.0, variant: str = "paper") -> float:
    """Renyi entropy of the normalised eigenvalues of Z Z^T.

    S_a(Z) = log(sum_i p_i^a) / (1 - a), p_i = lambda_i(Z Z^T) / tr(Z Z^T), von Neumann's at a = 1 (Giraldo et al. 2014;
    Skean et al. 2025, Eq. 1). `released` follows what the authors' code computes instead: negative entries of the
    smaller of Z Z^T and Z^T Z are set to 0 before the eigenvalues (higher by 5 to 50 per cent), and alpha = 2 adds 2
    log n for the n x n matrix, because its trace is taken for n instead of 1.

    Args:
        Z: (N, D) prepared vectors, N >= 2; neither centred nor scaled here. Any scale.
        alpha: order, > 0.
        variant: "paper" or "released".

    Returns:
        Nats, within [0, log min(N, D)] for `paper`. Invariant to row order, rotation and global scale (`released`:
        only to row order and scale, and for N > D not to rotation).

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, all rows zero.
        ConfigError: unknown variant, or alpha not positive.

    Example:
        >>> round(matrix_entropy(np.eye(4)), 6)
        1.386294
    """
    if variant not in VARIANTS:
        raise ConfigError(f"matrix entropy: variant {variant!r} is unknown; write one of {', '.join(VARIANTS)}.")
    if not (np.isfinite(alpha) and alpha > 0):
        raise ConfigError(f"matrix entropy: alpha must be a positive number, got {alpha!r}.")
    return spectra_entropy(_prepare(Z), alpha, variant)


def spectra_entropy(spectra: Spectra, alpha: float, variant: str) -> float:
    """Entropy in nats from spectra; see ``matrix_entropy``."""
    if variant == "paper":
        return float(renyi_entropy(spectra.paper, alpha))
    if alpha != 2.0:
        return float(renyi_entropy(spectra.released, alpha))
    clamped, trace = spectra.clamped, float(np.trace(spectra.clamped))
    if not trace > 0:
        raise UndefinedMetric("all vectors are zero (or equal, after centring)")
    return float(2 * np.log(len(clamped)) - np.log(np.square(clamped / trace).sum()))


def entropy_ceiling(n: int, width: int, centred: bool, variant: str) -> float:
    """Largest entropy of n vectors: log min(n - 1, D) when centred (`released` forgets the 1), else log min(n, D)."""
    lost = 1 if centred and variant == "paper" else 0
    return float(np.log(max(min(n - lost, width), 1)))


def _prepare(Z: Array) -> Spectra:
    return Spectra.of(checked(Z, minimum=2))
