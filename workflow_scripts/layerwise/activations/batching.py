"""Which samples share a forward pass: windows of contiguous rows, sorted by length inside, cut by a token budget."""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray


def windows(n_rows: int, row_bytes: int, budget: int = 128 * 2**20, together: int = 1) -> Iterator[range]:
    """Cut ``n_rows`` rows into contiguous windows whose results fit into ``budget`` bytes.

    Args:
        n_rows: how many rows there are.
        row_bytes: what one row's results occupy until its window is written.
        budget: bytes held at a time.
        together: rows that a window never parts; every window but the last holds a multiple of it.
    """
    size = max(1, budget // max(row_bytes * together, 1)) * together
    for start in range(0, n_rows, size):
        yield range(start, min(start + size, n_rows))


@dataclasses.dataclass
class TokenBudget:
    """Most padded tokens (rows times the longest of them) in a batch; lowered where memory does not suffice."""

    tokens: int

    def lower(self, failed: int) -> None:
        """Allow half of the ``failed`` padded tokens from now on."""
        self.tokens = max(1, min(self.tokens, failed) // 2)


def batches(rows: Iterable[int], lengths: NDArray[np.int64], budget: TokenBudget) -> Iterator[list[int]]:
    """Cut ``rows`` into batches of similar length, longest first.

    Longest first, so that a batch that does not fit into memory shows at the start.

    Args:
        rows: row numbers.
        lengths: (N,) tokens of every row.
        budget: read anew for every batch; a row longer than it is alone in its own.
    """
    batch: list[int] = []
    longest = 0
    for row in sorted(rows, key=lambda row: (-lengths[row], row)):
        if batch and (len(batch) + 1) * longest > budget.tokens:
            yield batch
            batch = []
        if not batch:
            longest = int(lengths[row])
        batch.append(row)
    if batch:
        yield batch
