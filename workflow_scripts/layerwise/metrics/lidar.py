"""LiDAR: how many directions separate the samples once the spread between views of one sample is divided out."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.matrix_entropy import entropy_ceiling
from layerwise.metrics.resampling import spearman
from layerwise.metrics.spec import Array, Case, Direction, Indices, MetricSpec, Value, check_variant
from layerwise.spectrum import checked, gram_spectrum, renyi_entropy, scale_exponent, scaled

SPEC = MetricSpec(
    name="lidar",
    unit="directions",
    needs=("views",),
    minimum_samples=3,
    minimum_views=2,
    bounds=(1.0, None),
    direction=Direction(theory="max", study="min"),
    variants=("paper", "released"),
    parameters={"delta": 1e-4, "delta_relative": 1e-2},
    max_samples=4_000,
)

SATURATED_BELOW = 0.15  # nats of log-LiDAR between the highest and the lowest layer
DELTA_FACTORS = (0.01, 1.0, 100.0)


class Scatter(NamedTuple):
    """What LiDAR needs of a set of samples; sets without common samples add up (``merge``).

    Attributes:
        means: (N, d) mean over views of every sample, not centred, in units of 2^exponent.
        within: (d, d) sum over samples and views of the outer products of deviations from ``means``, same units
            squared.
        views: V.
        exponent: the power of two that was divided out of the vectors.
        width: D; d is smaller when the samples span fewer than D dimensions.
    """

    means: Array
    within: Array
    views: int
    exponent: int
    width: int


def lidar(views: Array, delta: float = 1e-4, variant: str = "paper", delta_relative: float | None = None) -> float:
    """Effective number of directions that discriminate samples (Thilak et al. 2023, arXiv 2312.04000).

    The exponential of the Shannon entropy of the normalised eigenvalues of S_w^(-1/2) S_b S_w^(-1/2), where S_b = mean
    over samples of (mu_i - mu)(mu_i - mu)^T and S_w = mean over samples and views of (x_ij - mu_i)(x_ij - mu_i)^T,
    plus delta I. `released` is the entropy itself, which is what the study's figures show.

    Args:
        views: (N, V, D) prepared vectors: every view centred over the corpus, unit norm. N >= 2, V >= 2.
        delta: ridge added to S_w, in squared units of the vectors; 1e-4 is meant for unit vectors.
        variant: "paper" or "released".
        delta_relative: ridge as a share of S_w's mean eigenvalue, tr(S_w) / D; replaces ``delta`` and makes the result
            independent of scale.

    Returns:
        Directions, within [1, min(N - 1, D)] (`released`: nats, within [0, log min(N - 1, D)]). Invariant to the order
        of samples and of views, and to rotation.

    Raises:
        UndefinedMetric: fewer than 2 samples or views, NaN or infinity, samples with equal means, identical views with
            a relative ridge, or S_w singular with a ridge that is nothing beside it.
        ConfigError: unknown variant, or a ridge that is not positive.
    """
    check_variant(SPEC, variant)
    name, ridge = ("delta", delta) if delta_relative is None else ("delta_relative", delta_relative)
    if not (np.isfinite(ridge) and ridge > 0):
        raise ConfigError(f"lidar: {name} must be a positive number, got {ridge!r}.")
    entropy = _compute(_prepare(views), {name: ridge})
    return float(np.exp(entropy)) if variant == "paper" else entropy


def supports(case: Case, source: str) -> bool:
    """The authors' code has an absolute ridge only."""
    return case.variant == "paper" or "delta" in case.parameters


def summarise(views: Array) -> Scatter:
    """Scatter of the (N, V, D) prepared views.

    Raises:
        UndefinedMetric: fewer than 2 samples or views, NaN or infinity.
    """
    return _prepare(views)


def evaluate(state: Scatter, case: Case, seed: int) -> Value:
    """LiDAR; normalised as log LiDAR / log min(N - 1, D) (`released`: entropy / log min(N, D)).

    Raises:
        UndefinedMetric: see ``lidar``.
    """
    entropy = _compute(state, case.parameters)
    ceiling = entropy_ceiling(len(state.means), state.width, centred=True, variant=case.variant)
    value = float(np.exp(entropy)) if case.variant == "paper" else entropy
    return Value(value, entropy / ceiling if ceiling > 0 else None)


def parts(views: Array, groups: Sequence[Indices]) -> list[Scatter]:
    """Scatter of each group of samples, in common coordinates.

    Costs one pass over the vectors for any number of half-samples, which are sums of groups. When all N V vectors span
    fewer than D dimensions they are first written in an orthonormal basis of their span: S_b has nothing outside it.

    Raises:
        UndefinedMetric: fewer than 2 views, NaN or infinity.
    """
    n, v, width = views.shape
    if v < SPEC.minimum_views:
        raise UndefinedMetric(f"{v} view per sample, at least {SPEC.minimum_views} needed")
    rows = checked(views.reshape(n * v, width))
    exponent = scale_exponent(rows)
    rows = scaled(rows)
    if n * v < width:
        triangle: Array = np.asarray(np.linalg.qr(rows.T, mode="r"))
        rows = triangle.T
    cube = rows.reshape(n, v, -1)
    return [_scatter(cube if len(group) == n else cube[group], exponent, width) for group in groups]


def merge(scatters: Sequence[Scatter]) -> Scatter:
    """Scatter of the union of disjoint sets of samples that ``parts`` described together."""
    return scatters[0]._replace(
        means=np.concatenate([s.means for s in scatters]),
        within=sum((s.within for s in scatters[1:]), scatters[0].within),
    )


def companions(case: Case) -> list[Case]:
    """The same case with its ridge 100 times smaller and 100 times larger."""
    ((name, ridge),) = case.parameters.items()
    return [Case(case.variant, {name: ridge * factor}) for factor in DELTA_FACTORS if factor != 1.0]


def annotate(record: dict[str, Any], curve: list[float | None], others: list[list[float | None]]) -> None:
    """Add `saturated` (the layers hardly differ) and `delta_spearman` (does the curve's shape depend on the ridge).

    Args:
        record: gets the two keys; `saturated` is None when fewer than two layers have a value.
        curve: (L + 1,) values by layer, None where undefined.
        others: the curves of ``companions``, in order.
    """
    known = [value for value in curve if value is not None]
    nats = known if record["variant"] == "released" else [float(np.log(value)) for value in known]
    record["saturated"] = max(nats) - min(nats) < SATURATED_BELOW if len(nats) > 1 else None
    factors = [factor for factor in DELTA_FACTORS if factor != 1.0]
    record["delta_spearman"] = {f"{f:g}": spearman(curve, other) for f, other in zip(factors, others, strict=True)}


def _prepare(views: Array) -> Scatter:
    views = np.asarray(views, dtype=np.float64)
    if views.ndim != 3 or len(views) < 2:
        raise UndefinedMetric(f"an (N, V, D) array with N >= 2 is needed, got shape {views.shape}")
    return parts(views, [np.arange(len(views))])[0]


def _scatter(views: Array, exponent: int, width: int) -> Scatter:
    means = views.mean(axis=1)
    deviations = (views - means[:, None]).reshape(-1, views.shape[-1])  # S_w from raw moments would cancel
    return Scatter(means, deviations.T @ deviations, views.shape[1], exponent, width)


def _compute(state: Scatter, ridge: Mapping[str, float]) -> float:
    """Entropy in nats of the eigenvalues of S_w^(-1/2) S_b S_w^(-1/2).

    With S_w = C C^T the matrix C^-1 S_b C^-T has the same eigenvalues, and so has the smaller Gram matrix of C^-1 M^T
    for the centred means M: one Cholesky factor and one triangular solve instead of an inverse root.
    """
    means = state.means - state.means.mean(axis=0)
    rounding = 1e-14 * len(means) * np.abs(state.means).max(initial=0.0)
    if len(means) < 2 or np.abs(means).max(initial=0.0) <= rounding:
        raise UndefinedMetric("all samples have the same mean over views: nothing to separate")
    within = state.within / (len(means) * state.views)
    return float(renyi_entropy(gram_spectrum(solve_triangular(_root(within, state, ridge), means.T, lower=True).T)))


def _root(within: Array, state: Scatter, ridge: Mapping[str, float]) -> Array:
    """Lower Cholesky factor of S_w + ridge I, up to a factor (which the normalised spectrum does not see)."""
    if "delta_relative" in ridge:
        spread = float(np.trace(within))
        amount = ridge["delta_relative"] * spread / state.width
        rounding = np.square(8 * np.finfo(np.float64).eps) * float(np.square(state.means).sum(axis=1).mean())
        if spread <= rounding:
            raise UndefinedMetric("the views of every sample are identical, so a ridge relative to their spread is zero")
    else:
        with np.errstate(over="ignore", under="ignore"):
            amount = float(np.square(np.ldexp(np.sqrt(np.float64(ridge["delta"])), -state.exponent)))
    matrix = within + amount * np.eye(len(within)) if amount <= 1.0 else within / amount + np.eye(len(within))
    try:
        root: Array = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        root = np.zeros_like(matrix)
    pivots = np.square(np.diagonal(root))
    # Pivots this small are rounding: they, not the data, would decide the result.
    if pivots.min() <= len(root) * np.finfo(np.float64).eps * pivots.max():
        raise UndefinedMetric("the spread between views is singular, and the ridge is nothing beside it")
    return root
