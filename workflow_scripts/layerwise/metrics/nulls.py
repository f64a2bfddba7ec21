"""What a metric gives on Gaussian noise of the same size, sent through the same preparation."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import UndefinedMetric
from layerwise.metrics import blocks, recipes
from layerwise.metrics.entries import preparation
from layerwise.metrics.spec import Array, Case, Value

_STREAM = 3  # keeps these random numbers apart from other uses of the same seed
_MOST_LENGTHS = 24  # distinct token counts that are simulated; more are read off between neighbours

Null = tuple[float | None, float | None]  # value, normalised


class Nulls:
    """Gaussian nulls of one metric. Readouts of one file share their sizes, hence their null: it is computed once."""

    def __init__(self, module: ModuleType, draws: int, seed: int) -> None:
        """Take the metric's module, the number of draws (0: every null is None) and the seed."""
        self.module, self.draws, self.seed = module, draws, seed
        self._pooled: dict[tuple[int, ...], list[Null]] = {}
        self._tokens: dict[tuple[str, int, int], Array] = {}

    def pooled(self, shape: tuple[int, int, int], cases: Sequence[Case]) -> list[Null]:
        """Mean value and mean normalised value per case over draws of (N, V, D), prepared as the metric's vectors are."""
        if shape not in self._pooled:
            draws = [self._pooled_draw(shape, cases, draw) for draw in range(self.draws)]
            self._pooled[shape] = [_mean([values[index] for values in draws]) for index in range(len(cases))]
        return self._pooled[shape]

    def tokens(self, recipe: str, sizes: NDArray[np.int64], width: int, cases: Sequence[Case]) -> list[Null]:
        """Mean over samples of the null at each sample's own number of tokens, per case.

        Up to 24 distinct numbers are simulated one by one. Of more, 24 spread evenly on a log scale are (with those
        around D, where the ceiling bends), and the normalised value, which is nearly flat, is interpolated between
        them.
        """
        return [self._token_case(recipe, sizes, width, cases, index) for index in range(len(cases))]

    def _pooled_draw(self, shape: tuple[int, int, int], cases: Sequence[Case], draw: int) -> list[Value | None]:
        reduced = getattr(self.module, "null_case", None)
        values: list[Value | None] = []
        try:
            state = self._state([self.seed, _STREAM, *shape, draw], shape)
        except UndefinedMetric:
            return [None] * len(cases)
        for case in cases:
            try:
                values.append(self.module.evaluate(state, reduced(case) if reduced else case, self.seed + draw))
            except UndefinedMetric:
                values.append(None)
        return values

    def _state(self, key: list[int], shape: tuple[int, int, int]) -> Any:  # noqa: ANN401 - each metric has its own
        if blocks.in_blocks(self.module, shape[0], shape[2]):
            return blocks.state(self.module, blocks.noise(shape[0], shape[2], key))
        return self.module.summarise(preparation(self.module)(np.random.default_rng(key).standard_normal(shape)))

    def _token_case(self, recipe: str, sizes: NDArray[np.int64], width: int, cases: Sequence[Case], index: int) -> Null:
        ceilings = self.module.sample_ceiling(sizes, width, recipe, cases[index])
        usable = np.isfinite(ceilings)
        if not self.draws or not usable.any():
            return None, None
        nodes = _nodes(sizes[usable], width)
        tops = self.module.sample_ceiling(nodes, width, recipe, cases[index])
        values = np.array([self._node(recipe, int(node), width, cases)[index] for node in nodes])
        shares = np.interp(np.log(sizes[usable]), np.log(nodes), values / tops)
        return float((shares * ceilings[usable]).mean()), float(shares.mean())

    def _node(self, recipe: str, size: int, width: int, cases: Sequence[Case]) -> Array:
        """(cases,) mean over the draws of (size, width) tokens that have a value; NaN where none has."""
        key = (recipe, size, width)
        if key not in self._tokens:
            draws = []
            for draw in range(self.draws):
                rng = np.random.default_rng([self.seed, _STREAM, size, width, draw])
                tokens = recipes.prepare(recipe, rng.standard_normal((size, width)))
                try:
                    draws.append(self.module.sample_null(tokens, list(cases)))
                except UndefinedMetric:
                    continue
            self._tokens[key] = np.mean(draws, axis=0) if draws else np.full(len(cases), np.nan)
        return self._tokens[key]


def _nodes(sizes: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    distinct = np.unique(sizes)
    if len(distinct) <= _MOST_LENGTHS:
        return distinct
    spaced = np.unique(np.rint(np.geomspace(distinct[0], distinct[-1], _MOST_LENGTHS)).astype(np.int64))
    bend = np.arange(width - 1, width + 3)
    return np.union1d(spaced, bend[(bend > distinct[0]) & (bend < distinct[-1])])


def _mean(values: Sequence[Value | None]) -> Null:
    known = [value for value in values if value is not None]
    shares = [value.normalized for value in known if value.normalized is not None]
    return (
        float(np.mean([value.value for value in known])) if known else None,
        float(np.mean(shares)) if shares else None,
    )
