"""The gain of the best layer over the last one, free of the luck of having picked it on the items it is scored on.

Of 31 equal layers the best beats the last by 2 points on 700 items. So the layer is chosen on one half of the items and
scored on the other, against the last layer on the same half, over many splits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layerwise.tables.curves import best_share
from layerwise.tables.outcomes import TaskItems
from layerwise.tables.resampling import generator, resamples, subsets

Array = NDArray[np.float64]

SPLITS = 200
RESAMPLES = 150
SPLITS_PER_RESAMPLE = 3
MIN_ITEMS = 8

_NORMAL_95 = 1.959964


@dataclass(frozen=True)
class HalfScores:
    """Scores of every layer on both halves of many splits; averaging two objects averages two tasks.

    Attributes:
        splits: (2, SPLITS, L + 1) scores on the first and second half of each split of the items.
        resampled: (2, RESAMPLES, SPLITS_PER_RESAMPLE, L + 1) the same for splits of resamples of the items.
    """

    splits: Array
    resampled: Array


def half_scores(items: TaskItems, readout: str, seed: int, task: str) -> HalfScores | None:
    """Score every layer on the halves; the halves depend on seed, task and number of items only.

    In a resample all copies of an item fall into the same half: a copy in the other half would tell the choice of layer
    what it is scored on.

    Returns:
        None if ``readout`` keeps no outcomes or there are fewer than 8 items.
    """
    n = items.n
    if readout not in items.readouts or n < MIN_ITEMS:
        return None
    rng = generator(seed, task)
    first = subsets(n, n // 2, SPLITS, rng)
    copies = np.repeat(resamples(n, RESAMPLES, rng), SPLITS_PER_RESAMPLE, axis=0)
    half = subsets(n, n // 2, len(copies), rng)
    splits = np.stack([items.scores(readout, first), items.scores(readout, 1.0 - first)])
    resampled = np.stack([items.scores(readout, copies * half), items.scores(readout, copies * (1.0 - half))])
    return HalfScores(splits, resampled.reshape(2, RESAMPLES, SPLITS_PER_RESAMPLE, -1))


def mean_half_scores(parts: Sequence[HalfScores]) -> HalfScores:
    """The half scores of the mean over tasks: one layer is then chosen for all of them."""
    return HalfScores(np.mean([part.splits for part in parts], axis=0), np.mean([part.resampled for part in parts], axis=0))


def split_gains(halves: Array) -> Array:
    """Gain over the last layer of the layer chosen on the other half, averaged over both directions.

    Args:
        halves: (2, ..., L + 1) scores on two halves; NaN layers are not chosen, ties share the choice.

    Returns:
        (...) gains; NaN where a half has no score at its chosen or last layer.
    """
    gains = []
    for chosen_on, scored_on in (halves, halves[::-1]):
        share = best_share(chosen_on)
        gain = np.where(share > 0, share * (scored_on - scored_on[..., -1:]), 0.0).sum(axis=-1)
        gains.append(np.where(np.isnan(chosen_on).all(axis=-1), np.nan, gain))
    return np.mean(gains, axis=0)


def cross_fitted_gain(halves: HalfScores) -> tuple[float, float, float]:
    """Mean gain over all splits and its 95 % interval, in the unit of the score.

    The target is the expected gain, on new items, of a layer chosen on half as many items. The interval is the normal one,
    with the standard error from resamples of the items, widened to the percentile interval where that reaches further:
    where only some splits find the one good layer, the gain is skewed and the normal interval alone covers 92 %, the two
    together 94.5 to 98 %. A resample averages only 3 splits, so its gain varies a little more than the estimate (200
    splits); that surplus is kept, because it is large just where the choice is unstable.

    Returns:
        (gain, low, high); NaN where there is no score.
    """
    per_split = split_gains(halves.splits)
    drawn = split_gains(halves.resampled)
    if np.isnan(per_split).all() or np.isfinite(drawn).any(axis=1).sum() < 2:
        return float("nan"), float("nan"), float("nan")
    gain = float(np.nanmean(per_split))
    with np.errstate(invalid="ignore"):
        means = np.nanmean(drawn[np.isfinite(drawn).any(axis=1)], axis=1)
    width = _NORMAL_95 * float(means.std(ddof=1))
    low, high = np.quantile(means, [0.025, 0.975])
    return gain, min(gain - width, float(low)), max(gain + width, float(high))
