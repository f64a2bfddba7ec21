"""What a metric says about itself and what it may read: the contracts between metrics and the drivers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import ConfigError

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
End = Literal["min", "max"]


class Direction(NamedTuple):
    """Which end of a curve over layers is picked as the best layer, fixed before any score is seen.

    Attributes:
        theory: the end that the metric's own rationale calls better; None where it names neither.
        study: the end that the study picks (its App. E and the picks published with its results); None where the study
            selected nothing by it.
    """

    theory: End | None
    study: End | None

    def opposite(self) -> "Direction":
        """Return the same picks on a curve that runs the other way."""
        other: dict[End | None, End | None] = {"min": "max", "max": "min", None: None}
        return Direction(other[self.theory], other[self.study])


@dataclass(frozen=True)
class MetricSpec:
    """Facts about one metric.

    Attributes:
        name: as in the config and the registry.
        unit: of the `paper` value.
        needs: out of "pooled" (N, D), "views" (N, V, D) and "tokens" (stored spectra or angles).
        minimum_samples: rows below which pooled and view metrics are undefined (tokens: one sample is enough).
        minimum_views: views below which a view metric is undefined.
        bounds: smallest and largest `paper` value; None where the bound depends on N, D or the data.
        direction: see Direction; on the `paper` curve.
        token_order: the value depends on the order of the tokens, which patches of an image do not have.
        released_runs_opposite: the `released` curve has its minimum where the `paper` curve has its maximum.
        variants: accepted values of `variant`, the default first.
        parameters: the metric's own parameters and their defaults.
        standard_error: "samples" (spread of per-sample values) or "subsamples" (spread over draws of N/2).
        pairs: two views are compared pair by pair, so that breaking the pairs gives a second null.
        recipes: the recipes of its token records, whatever the config asks for; None: those of the config.
        max_samples: the default of this parameter: of more samples a seeded subsample is taken; None: of all. For metrics
            that compare all samples with each other (N x N) or hold all their vectors at once.
    """

    name: str
    unit: str
    needs: tuple[Literal["pooled", "views", "tokens"], ...]
    minimum_samples: int
    minimum_views: int
    bounds: tuple[float | None, float | None]
    direction: Direction
    variants: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    standard_error: Literal["samples", "subsamples"] = "subsamples"
    pairs: bool = False
    released_runs_opposite: bool = False
    token_order: bool = False
    recipes: tuple[str, ...] | None = None
    max_samples: int | None = None

    def directions(self) -> dict[str, dict[str, str | None]]:
        """Return the picks of theory and study for each variant."""
        flipped = self.direction.opposite() if self.released_runs_opposite else self.direction
        return {v: (flipped if v == "released" else self.direction)._asdict() for v in self.variants}


@dataclass(frozen=True)
class Value:
    """One metric value.

    Attributes:
        value: in the unit of the metric.
        normalized: on a scale shared by models of different N and D; None where that scale has no width (log 1).
        standard_error: where the metric is a mean over samples, otherwise None.
        null_broken_pairs: what the metric gives on the same vectors with the pairing of the views broken.
    """

    value: float
    normalized: float | None
    standard_error: float | None = None
    null_broken_pairs: float | None = None


@dataclass(frozen=True)
class Case:
    """One variant with one set of parameters: one record per readout or recipe."""

    variant: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Activations(Protocol):
    """What the drivers read. Layers are 0..n_layers; N samples, V views, width D.

    The statistics of one sample's tokens are NaN where they are undefined (a one-token text).
    """

    @property
    def taps(self) -> Sequence[str]:
        """Where in a block layers were read, "residual" among them."""

    def at(self, tap: str) -> "Activations":
        """The same activations at one tap."""

    @property
    def layers(self) -> range:
        """The layers there are at this tap: 0..n_layers, or 1..n_layers inside the blocks."""

    @property
    def n_layers(self) -> int:
        """L, the number of blocks; there are L + 1 layers."""

    @property
    def width(self) -> int:
        """D."""

    @property
    def n_samples(self) -> int:
        """N."""

    def among(self, samples: Indices) -> "Activations":
        """The same activations of some samples only."""

    @property
    def n_tokens(self) -> NDArray[np.integer[Any]]:
        """(N,) tokens per sample, before `skip_first` drops one."""

    def pooled(self, readout: str, layer: int) -> Array:
        """(N, D) vectors, raw."""

    def views(self, readout: str, layer: int) -> Array:
        """(N, V, D) vectors, raw."""

    def spectra(self, recipe: str, layer: int) -> Array:
        """(N, R) eigenvalues of each sample's prepared tokens, summing to 1, padded with zeros to the longest."""

    def angles(self, recipe: str, layer: int) -> Array:
        """(N, 2) turning angles in radians.

        Column 0 is the mean of the signed-cosine angle over the triples without a zero-length step; column 1 that of
        the absolute-cosine angle over all triples, a zero-length step counting as 0.
        """

    def entropy_clamped(self, layer: int) -> Array:
        """(N,) S_1 of the centred unit tokens' Gram matrix with negative entries set to 0, nats."""

    def token_norms(self, layer: int) -> Array:
        """(N, 3) norm of the first token, median norm of the others, root of the others' sum of squared norms."""

    def token_cosines(self, layer: int) -> Array:
        """(N, 2) mean cosine between different tokens, of all and without the first."""


class Conditioned(Activations, Protocol):
    """Activations of samples whose tokens a transform may have changed."""

    @property
    def conditions(self) -> Sequence[Mapping[str, float]]:
        """Level and draw of every copy of a sample; none without a transform."""

    def under(self, condition: int) -> Activations:
        """The rows of one condition, one per sample."""


def check_variant(spec: MetricSpec, variant: str) -> None:
    """Refuse a variant the metric does not have.

    Raises:
        ConfigError: with the variants it has.
    """
    if variant not in spec.variants:
        raise ConfigError(f"{spec.name}: variant {variant!r} is unknown; write one of {', '.join(spec.variants)}.")
