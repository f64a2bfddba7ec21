"""Dataset entropy: how many directions the pooled vectors of a corpus use, that is, how well it is told apart."""

from collections.abc import Iterable

from layerwise.metrics.matrix_entropy import Spectra, entropy_ceiling, spectra_entropy
from layerwise.metrics.matrix_entropy import matrix_entropy as dataset_entropy
from layerwise.metrics.spec import Array, Case, Direction, MetricSpec, Value
from layerwise.spectrum import checked, second_moment

__all__ = ["SPEC", "accumulate", "dataset_entropy", "evaluate", "summarise"]

SPEC = MetricSpec(
    name="dataset_entropy",
    unit="nats",
    needs=("pooled",),
    minimum_samples=3,  # two centred vectors are opposite whatever they were
    minimum_views=1,
    bounds=(0.0, None),
    direction=Direction(theory="max", study="min"),
    variants=("paper", "released"),
    parameters={"alpha": (1.0,)},
)


def summarise(views: Array) -> Spectra:
    """Gram matrix of the (N, 1, D) prepared vectors.

    Raises:
        UndefinedMetric: fewer than 2 rows, NaN or infinity.
    """
    return Spectra.of(checked(views[:, 0], minimum=2))


def accumulate(shape: tuple[int, int], blocks: Iterable[Array]) -> Spectra:
    """The same for (N, D), N > D, prepared vectors that come in blocks."""
    return Spectra(shape, second_moment(shape[1], blocks))


def evaluate(state: Spectra, case: Case, seed: int) -> Value:
    """S_alpha in nats; normalised by log min(N - 1, D) (`released`: log min(N, D)).

    Raises:
        UndefinedMetric: all rows zero.
    """
    entropy = spectra_entropy(state, case.parameters["alpha"], case.variant)
    ceiling = entropy_ceiling(state.shape[0], state.shape[1], centred=True, variant=case.variant)
    return Value(entropy, entropy / ceiling if ceiling > 0 else None)
