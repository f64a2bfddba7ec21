"""Choosing a layer with a few labelled items: what 16 to 128 labels buy."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from layerwise.tables.curves import PRIMARY, ScoreKey, best_share
from layerwise.tables.outcomes import TaskItems
from layerwise.tables.resampling import generator, subsets

Array = NDArray[np.float64]

DRAWS = 100


class LabelledSamples:
    """Layers chosen on small labelled samples, by model, task and readout; every task file is read once."""

    def __init__(
        self,
        items: Mapping[tuple[str, str], TaskItems],
        primary: Mapping[str, str],
        sizes: Sequence[int],
        seed: int,
    ) -> None:
        """Remember the outcomes, the primary protocol of each task, the sample sizes, and the seed of the draws."""
        self.items, self.primary, self.sizes, self.seed = items, primary, tuple(sizes), seed
        self._known: dict[tuple[str, str], tuple[str, dict[tuple[str, int], tuple[Array, float]]]] = {}

    def of(self, key: ScoreKey, task: str, size: int) -> tuple[Array, float] | None:
        """Choose on ``size`` random items, score on the rest.

        Returns:
            The share of each layer (L + 1,) among the picks and the mean score of the picks on the rest, over 100
            draws; None where the task keeps no outcomes of this readout and protocol, or fewer than 2 * ``size`` items.
        """
        place = (key.model, task)
        if place not in self._known:
            self._known[place] = self._compute(place)
        protocol, results = self._known[place]
        wanted = self.primary[task] if key.protocol == PRIMARY else key.protocol
        return results.get((key.readout, size)) if protocol == wanted else None

    def _compute(self, place: tuple[str, str]) -> tuple[str, dict[tuple[str, int], tuple[Array, float]]]:
        items = self.items.get(place)
        if items is None:
            return "", {}
        results = {}
        for size in self.sizes:
            if items.n < 2 * size:
                continue
            weights = subsets(items.n, size, DRAWS, generator(self.seed, place[1], str(size)))
            for readout in items.readouts:
                share = best_share(items.scores(readout, weights))
                rest = items.scores(readout, 1.0 - weights)
                scored = np.where(share > 0, share * rest, 0.0).sum(axis=1)
                if np.isfinite(scored).any():
                    results[readout, size] = (share.mean(axis=0), float(np.nanmean(scored)))
        return items.protocol, results
