"""Curvature: the mean angle by which a sequence of token vectors turns at each token."""

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import UndefinedMetric
from layerwise.metrics.spec import Activations, Array, Case, Direction, MetricSpec, check_variant
from layerwise.spectrum import checked, scaled, unit

SPEC = MetricSpec(
    name="curvature",
    unit="radians",
    needs=("tokens",),
    minimum_samples=1,
    minimum_views=1,
    bounds=(0.0, float(np.pi)),
    # Theory: trajectories straighten (Henaff et al. 2019, Hosseini and Fedorenko 2023). The study picks the maximum of
    # the ABSOLUTE-cosine curve; below 90 degrees of it that is the minimum of the signed one: the same layers.
    direction=Direction(theory="min", study="min"),
    released_runs_opposite=True,
    token_order=True,
    variants=("paper", "released"),
    standard_error="samples",
)


def curvature(tokens: Array, variant: str = "paper") -> float:
    """Mean angle between successive steps v_k = z_{k+1} - z_k (Skean et al. 2025; Hosseini and Fedorenko 2023).

    `paper` takes the angle of the signed cosine and leaves out the triples where a step has no length. `released`, as
    the authors' code, takes the angle of the absolute cosine and counts such triples as 0; its tokens are centred and
    of unit norm. Unrelated tokens give 2 pi / 3 and pi / 3: never show both in one figure.

    Args:
        tokens: (T, D) token vectors of one prompt in order, T >= 3. Any scale.
        variant: "paper" or "released".

    Returns:
        Radians, within [0, pi] (`released`: [0, pi / 2]); 0 for a straight line. Invariant to rotation, shift, global
        scale and reversal, not to the order of rows.

    Raises:
        UndefinedMetric: fewer than 3 tokens, NaN or infinity, or no triple without a zero-length step (`released`:
            every step has zero length).
        ConfigError: unknown variant.

    Example:
        >>> round(curvature(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])), 6)
        1.570796
    """
    check_variant(SPEC, variant)
    return _compute(_prepare(tokens), variant)


def supports(case: Case, source: str) -> bool:
    """The authors' variant exists for their own recipe alone."""
    return case.variant == "paper" or source == "centre_unit"


def sample_values(activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) mean turning angles in radians for every case, NaN where undefined."""
    angles = np.asarray(activations.angles(recipe, layer), dtype=np.float64)
    return [angles[:, 0 if case.variant == "paper" else 1] for case in cases]


def sample_ceiling(sizes: NDArray[np.int64], width: int, recipe: str, case: Case) -> Array:
    """(N,) the largest angle, pi (`released`: pi / 2), NaN below three tokens."""
    return np.where(sizes >= 3, np.pi if case.variant == "paper" else np.pi / 2, np.nan)


def sample_null(tokens: Array, cases: list[Case]) -> list[float]:
    """Curvature of one prepared (T, D) draw for every case, radians."""
    steps = _prepare(tokens)
    return [_compute(steps, case.variant) for case in cases]


def _prepare(tokens: Array) -> Array:
    return unit(np.diff(scaled(checked(tokens, minimum=3)), axis=0))


def _compute(steps: Array, variant: str) -> float:
    moved = np.abs(steps).max(axis=1) > 0
    whole = moved[1:] & moved[:-1]
    if not moved.any() or (variant == "paper" and not whole.any()):
        raise UndefinedMetric("no three successive tokens differ: there is no angle to measure")
    first, second = steps[:-1][whole], steps[1:][whole]
    # The half-angle form keeps its digits near 0 and pi, where arccos of a cosine loses half of them.
    angles = 2 * np.arctan2(np.linalg.norm(second - first, axis=1), np.linalg.norm(second + first, axis=1))
    if variant == "paper":
        return float(angles.mean())
    return float(np.minimum(angles, np.pi - angles).sum() / len(whole))
