"""Prompt entropy: how many directions the tokens of one prompt use, as a mean over prompts."""

import numpy as np
from numpy.typing import NDArray

from layerwise.metrics.matrix_entropy import Spectra, spectra_entropy
from layerwise.metrics.matrix_entropy import matrix_entropy as prompt_entropy
from layerwise.metrics.recipes import is_centred
from layerwise.metrics.spec import Activations, Array, Case, Direction, MetricSpec
from layerwise.spectrum import renyi_entropy

__all__ = ["SPEC", "prompt_entropy", "sample_ceiling", "sample_null", "sample_values", "supports"]

SPEC = MetricSpec(
    name="prompt_entropy",
    unit="nats",
    needs=("tokens",),
    minimum_samples=1,
    minimum_views=1,
    bounds=(0.0, None),
    direction=Direction(theory=None, study="min"),  # diverse or compressed tokens: the study argues for both
    variants=("paper", "released"),
    parameters={"alpha": (1.0,)},
    standard_error="samples",
)


def supports(case: Case, source: str) -> bool:
    """The authors' clamped entropy is stored for their own recipe and alpha = 1 alone (spectra cannot give it)."""
    return case.variant == "paper" or (source == "centre_unit" and case.parameters["alpha"] == 1.0)


def sample_values(activations: Activations, recipe: str, layer: int, cases: list[Case]) -> list[Array]:
    """(N,) entropies in nats for every case, NaN where undefined."""
    paper = any(case.variant == "paper" for case in cases)
    spectra = activations.spectra(recipe, layer) if paper else np.empty((0, 0))
    return [
        renyi_entropy(spectra, case.parameters["alpha"])
        if case.variant == "paper"
        else np.asarray(activations.entropy_clamped(layer), dtype=np.float64)
        for case in cases
    ]


def sample_ceiling(sizes: NDArray[np.int64], width: int, recipe: str, case: Case) -> Array:
    """(N,) log min(T - 1, D) for centred tokens (uncentred and `released`: T), NaN where one direction is left."""
    lost = int(is_centred(recipe))
    directions = np.minimum(sizes - lost, width)
    normaliser = directions if case.variant == "paper" else np.minimum(sizes, width)
    return np.where(directions > 1, np.log(np.maximum(normaliser, 1)), np.nan)


def sample_null(tokens: Array, cases: list[Case]) -> list[float]:
    """Entropy of one prepared (T, D) draw for every case, nats."""
    spectra = Spectra.of(tokens)
    return [spectra_entropy(spectra, case.parameters["alpha"], case.variant) for case in cases]
