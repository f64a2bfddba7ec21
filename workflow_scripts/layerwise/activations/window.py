"""The results of a window of contiguous rows, kept in arrays of their final shape until they are written at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


class Window:
    """Arrays of one window, filled batch by batch in any order.

    Each array is allocated once for the whole window: results that are kept one by one between the large temporaries of a
    forward pass would pin the heap and grow it to several times their size.
    """

    def __init__(self, rows: range, kept: NDArray[np.int64]) -> None:
        """Hold results of ``rows``; ``kept`` (N,) is the number of eigenvalues of every row of the dataset."""
        self.start, self.n_rows = rows.start, len(rows)
        self.kept = kept[rows.start : rows.stop]
        self.offsets = np.concatenate([[0], np.cumsum(self.kept)])
        self.arrays: dict[str, Array] = {}

    def put(self, name: str, rows: list[int], values: NDArray[Any]) -> None:
        """Store ``values`` (B, ...) of dataset rows ``rows``; a spectrum is cut to each row's own number of eigenvalues."""
        places = [row - self.start for row in rows]
        if "/spectrum/" not in name:
            if name not in self.arrays:
                self.arrays[name] = np.empty((self.n_rows, *values.shape[1:]), dtype=np.float32)
            self.arrays[name][places] = values
            return
        if name not in self.arrays:
            self.arrays[name] = np.empty(self.offsets[-1], dtype=np.float32)
        for place, spectrum in zip(places, values, strict=True):
            self.arrays[name][self.offsets[place] : self.offsets[place + 1]] = spectrum[: self.kept[place]]
