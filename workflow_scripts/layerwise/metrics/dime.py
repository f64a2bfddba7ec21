"""DiME: how much the joint entropy of two views drops because the right pairs are put together."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from layerwise.errors import ConfigError, UndefinedMetric
from layerwise.metrics.spec import Array, Case, Direction, Indices, MetricSpec, Value, check_variant
from layerwise.spectrum import checked, gram_spectrum, normalised_eigenvalues, renyi_entropy, scaled

SPEC = MetricSpec(
    name="dime",
    unit="nats",
    needs=("views",),
    minimum_samples=3,
    minimum_views=2,
    bounds=(None, None),
    direction=Direction(theory="max", study="min"),
    variants=("paper", "released"),
    parameters={"permutations": 10},
    pairs=True,
    max_samples=4_000,
)

_STREAM = 4  # keeps these random numbers apart from other uses of the same seed
_BATCH_ENTRIES = 2**20  # small matrices share an eigenvalue call; larger stacks only cost memory


class Pair(NamedTuple):
    """Two prepared views (N, D) of the same samples."""

    a: Array
    b: Array


class Entropies(NamedTuple):
    """Joint entropy in nats of the right pairs, and (permutations,) of permuted ones."""

    matched: float
    permuted: Array


@lru_cache(maxsize=32)
def permutation_set(seed: int, n: int, count: int) -> Indices:
    """Return the (count, n) permutations that every layer, readout and model with n samples shares (read-only).

    A larger set starts with the smaller one, so more permutations refine an estimate instead of replacing it.
    """
    rng = np.random.default_rng([seed, _STREAM, n])
    rows = np.stack([rng.permutation(n) for _ in range(count)])
    rows.flags.writeable = False
    return rows


def dime(A: Array, B: Array, permutations: int = 10, seed: int = 0, variant: str = "paper") -> float:
    """Difference of matrix-based entropies: E_P[S_1(K_A o P K_B P^T)] - S_1(K_A o K_B), o the entry-wise product.

    K are the N x N linear-kernel Gram matrices (Skean et al. 2023, arXiv 2301.08164; Skean et al. 2025, section 3).
    They stay N x N however small D is, since P exchanges samples. `released`, as the authors' code, takes D x D
    second-moment matrices when N > D, whose product and permutation then run over features.

    Args:
        A: (N, D) first view, prepared: centred over the corpus, unit norm. N >= 2. Any scale.
        B: (N, D') second view, prepared, rows in the order of A (`released`: D' = D).
        permutations: size of the permutation set, >= 1. The spread of the result over sets falls with its root.
        seed: of the permutation set, which depends on it and N alone.
        variant: "paper" or "released".

    Returns:
        Nats; about 0 for unrelated views (slightly below 0 is possible), at most the entropy of the poorer view.
        Invariant to rotation and scale of each view; to a common row order only up to the choice of permutations.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity, unequal N, or a view all zero.
        ConfigError: unknown variant, or permutations below 1.
    """
    check_variant(SPEC, variant)
    if int(permutations) != permutations or permutations < 1:
        raise ConfigError(f"dime: permutations must be a positive whole number, got {permutations!r}.")
    return _difference(_compute(_prepare(A, B), int(permutations), seed, variant))


def summarise(views: Array) -> Pair:
    """First two of the (N, V, D) prepared views.

    Raises:
        UndefinedMetric: as ``dime``.
    """
    return _prepare(views[:, 0], views[:, 1])


def evaluate(state: Pair, case: Case, seed: int) -> Value:
    """DiME; normalised by S_1 of the view with the lower dataset entropy, which bounds it from above.

    The broken-pairs null is the root mean square of the DiME one gets by declaring each permuted pairing the right one
    and the rest the reference: its mean is 0 by construction, so its size is the noise that a real DiME must exceed.

    Raises:
        UndefinedMetric: a view all zero.
    """
    entropies = _compute(state, int(case.parameters["permutations"]), seed, case.variant)
    value, count = _difference(entropies), len(entropies.permuted)
    poorer = min(float(renyi_entropy(gram_spectrum(view))) for view in state)
    broken = float(entropies.permuted.std() * count / (count - 1)) if count > 1 else None
    return Value(value, value / poorer if poorer > 0 else None, null_broken_pairs=broken)


def null_case(case: Case) -> Case:
    """One permutation per Gaussian draw: the mean over draws is as unbiased as with ten, at a fifth of the cost."""
    return Case(case.variant, {**case.parameters, "permutations": 1})


def _prepare(A: Array, B: Array) -> Pair:
    pair = Pair(scaled(checked(A, minimum=2)), scaled(checked(B, minimum=2)))
    if len(pair.a) != len(pair.b):
        raise UndefinedMetric(f"the two views have {len(pair.a)} and {len(pair.b)} samples, they must be equal")
    return pair


def _compute(pair: Pair, permutations: int, seed: int, variant: str) -> Entropies:
    if variant == "released" and len(pair.a) > pair.a.shape[1]:
        if pair.a.shape != pair.b.shape:
            raise UndefinedMetric(f"released DiME needs views of one width, got {pair.a.shape[1]} and {pair.b.shape[1]}")
        kernels = pair.a.T @ pair.a, pair.b.T @ pair.b
    else:
        kernels = pair.a @ pair.a.T, pair.b @ pair.b.T
    side = len(kernels[0])
    orders = np.concatenate([np.arange(side)[None], permutation_set(seed, side, permutations)])
    per_call = max(1, _BATCH_ENTRIES // side**2)
    entropies = np.concatenate(
        [_joint_entropies(*kernels, orders[start : start + per_call]) for start in range(0, len(orders), per_call)]
    )
    return Entropies(float(entropies[0]), entropies[1:])


def _joint_entropies(kernel_a: Array, kernel_b: Array, orders: Indices) -> Array:
    """(P,) S_1 of the entry-wise products of K_A with K_B in each of the (P, n) orders."""
    products = np.stack([kernel_b[np.ix_(order, order)] for order in orders])
    products *= kernel_a
    return renyi_entropy(normalised_eigenvalues(products))


def _difference(entropies: Entropies) -> float:
    return float(entropies.permuted.mean() - entropies.matched)
