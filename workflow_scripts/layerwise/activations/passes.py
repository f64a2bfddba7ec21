"""Which rows share one forward pass: the prefixes of a text, in a model whose tokens see only what comes before them."""

import dataclasses
from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Masks = dict[str, Tensor]


class Passes:
    """Rows and the rows that carry them: the states of a row are those of the first tokens of its carrier."""

    def __init__(self, lengths: NDArray[np.int64], carrier: NDArray[np.int64] | None = None) -> None:
        """Keep (N,) ``lengths`` in tokens and (N,) ``carrier``, row numbers; without it every row is its own."""
        self.lengths = lengths
        self.carrier = np.arange(len(lengths)) if carrier is None else carrier
        self._carried: dict[int, list[int]] = {}
        for row, other in enumerate(self.carrier.tolist()):
            self._carried.setdefault(other, []).append(row)

    def needed(self, rows: Iterable[int]) -> list[int]:
        """Return the rows that must be run to read ``rows``, each once."""
        return list(dict.fromkeys(int(self.carrier[row]) for row in rows))

    def carried(self, rows: Iterable[int]) -> int:
        """Return how many rows are read when ``rows`` are run."""
        return sum(len(self._carried[row]) for row in rows)

    def parts(self, rows: list[int], masks: Masks) -> list["Part"]:
        """Return what is read from the pass over ``rows``, each of which has at most one row in each part.

        Args:
            rows: in the order of the batch.
            masks: (B, T) bool each, of the batch.
        """
        found = []
        for turn in range(max(len(self._carried[row]) for row in rows)):
            places = [place for place, row in enumerate(rows) if turn < len(self._carried[row])]
            members = [self._carried[rows[place]][turn] for place in places]
            if members == rows:
                found.append(Part(rows, masks))
                continue
            lengths = torch.from_numpy(self.lengths[members])
            inside = torch.arange(int(lengths.max())) < lengths[:, None]
            cut = {name: mask[places, : inside.shape[1]] & inside.to(mask.device) for name, mask in masks.items()}
            found.append(Part(members, cut, places))
        return found


@dataclasses.dataclass(frozen=True)
class Part:
    """Rows read from one batch: ``places`` of it (all where None), their tokens cut to the ``masks`` (B, T')."""

    rows: list[int]
    masks: Masks
    places: list[int] | None = None

    def of(self, states: Tensor) -> Tensor:
        """Return the states (B', T', D) of these rows out of those of the batch (B, T, D)."""
        return states if self.places is None else states[self.places, : self.masks["all"].shape[1]]


def prefix_carriers(ids: list[list[int]], sources: list[str]) -> NDArray[np.int64]:
    """Return (N,) for every row the longest row of its source that begins with its tokens."""
    by_source: dict[str, list[int]] = {}
    for row, source in enumerate(sources):
        by_source.setdefault(source, []).append(row)
    carrier = np.arange(len(ids))
    for rows in by_source.values():
        longest = max(rows, key=lambda row: len(ids[row]))
        for row in rows:
            if ids[longest][: len(ids[row])] == ids[row]:
                carrier[row] = longest
    return carrier
