"""InfoNCE: how surely one view of a sample is recognised among all samples from its other view."""

from typing import NamedTuple

import numpy as np

from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.spec import Array, Case, Direction, MetricSpec, Value, check_variant
from layerwise.spectrum import checked

SPEC = MetricSpec(
    name="infonce",
    unit="nats",
    needs=("views",),
    minimum_samples=2,
    minimum_views=2,
    bounds=(0.0, None),
    direction=Direction(theory="min", study="min"),
    variants=("paper", "released"),
    parameters={"temperature": 0.1},
    standard_error="samples",
    pairs=True,
    max_samples=4_000,
)


class Pair(NamedTuple):
    """Two prepared views (N, D) of the same samples."""

    a: Array
    b: Array


class Losses(NamedTuple):
    """(N,) loss of every sample, (N,) its mean loss over all wrong partners, and log of the number of candidates."""

    paired: Array
    broken: Array
    chance: float


def infonce(A: Array, B: Array, temperature: float = 0.1, variant: str = "paper") -> float:
    """Contrastive loss from one view to the other, mean over samples (van den Oord et al. 2018; Skean et al. 2025).

    `paper`: cross-entropy of the logits A B^T / temperature with the diagonal as targets, N candidates.
    `released`: the form of the authors' code before 2025, which part of their published curves uses: each of the 2N
    vectors must find its partner among the other 2N - 1 (NT-Xent; Chen et al. 2020).

    Args:
        A: (N, D) first view, prepared: rows centred over the corpus, unit norm. N >= 2.
        B: (N, D) second view, prepared, rows in the order of A.
        temperature: > 0; unit vectors cannot reach 0 loss, the floor rises with it.
        variant: "paper" or "released".

    Returns:
        Nats, >= 0; log N (`released`: log(2N - 1)) when views carry no information. log N - loss bounds mutual
        information from below. Invariant to a common row order and a common rotation; NOT to scale.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, unequal shapes, a view all zero, or logits beyond float64.
        ConfigError: unknown variant, or temperature not positive.
    """
    check_variant(SPEC, variant)
    if not (np.isfinite(temperature) and temperature > 0):
        raise ConfigError(f"infonce: temperature must be a positive number, got {temperature!r}.")
    return float(_compute(_prepare(A, B), temperature, variant).paired.mean())


def summarise(views: Array) -> Pair:
    """First two of the (N, V, D) prepared views.

    Raises:
        UndefinedMetric: as ``infonce``.
    """
    return _prepare(views[:, 0], views[:, 1])


def evaluate(state: Pair, case: Case, seed: int) -> Value:
    """Loss with its standard error over samples; normalised 1 - loss / log N, the share of log N that is gained.

    The broken-pairs null is the exact mean over all wrong partners, not a draw.

    Raises:
        UndefinedMetric: logits beyond float64.
    """
    losses = _compute(state, case.parameters["temperature"], case.variant)
    value = float(losses.paired.mean())
    error = float(losses.paired.std(ddof=1) / np.sqrt(len(losses.paired)))
    return Value(value, 1.0 - value / losses.chance, error, float(losses.broken.mean()))


def _prepare(A: Array, B: Array) -> Pair:
    pair = Pair(checked(A, minimum=2), checked(B, minimum=2))
    if pair.a.shape != pair.b.shape:
        raise UndefinedMetric(f"the two views have shapes {pair.a.shape} and {pair.b.shape}, they must be equal")
    if not (pair.a.any() and pair.b.any()):
        raise UndefinedMetric("all vectors of a view are zero (or equal, after centring)")
    return pair


def _compute(pair: Pair, temperature: float, variant: str) -> Losses:
    n = len(pair.a)
    with np.errstate(over="ignore", invalid="ignore"):
        across = pair.a @ pair.b.T / temperature
        if variant == "paper":
            normaliser, chance = _log_sum_exp(across), float(np.log(n))
        else:
            normaliser, chance = _simclr_normaliser(pair, across, temperature), float(np.log(2 * n - 1))
    if not np.isfinite(normaliser).all():
        raise UndefinedMetric("the logits leave float64's range: the rows must be unit vectors")
    right = np.diagonal(across)
    wrong = (across.sum(axis=1) - right) / (n - 1)
    return Losses(np.maximum(normaliser - right, 0.0), normaliser - wrong, chance)


def _simclr_normaliser(pair: Pair, across: Array, temperature: float) -> Array:
    """(N,) mean over a sample's two anchors of the log-sum-exp over the 2N - 1 other vectors."""
    sums = []
    for anchor, cross in ((pair.a, across), (pair.b, across.T)):
        within = anchor @ anchor.T / temperature
        np.fill_diagonal(within, -np.inf)
        sums.append(_log_sum_exp(np.concatenate([within, cross], axis=1)))
    return np.asarray((sums[0] + sums[1]) / 2)


def _log_sum_exp(logits: Array) -> Array:
    peak = logits.max(axis=1)
    return np.asarray(peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1)))
