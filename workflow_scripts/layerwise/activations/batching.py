"""Which samples share a forward pass: windows of contiguous rows, sorted by length inside, cut by a token budget."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def windows(n_rows: int, row_bytes: int, budget: int = 128 * 2**20) -> Iterator[range]:
    """Cut ``n_rows`` rows into contiguous windows whose results fit into ``budget`` bytes.

    Args:
        n_rows: how many rows there are.
        row_bytes: what one row's results occupy until its window is written.
        budget: bytes held at a time.
    """
    size = max(1, budget // max(row_bytes, 1))
    for start in range(0, n_rows, size):
        yield range(start, min(start + size, n_rows))


def batches(window: range, lengths: NDArray[np.int64], batch_tokens: int) -> Iterator[list[int]]:
    """Cut the rows of ``window`` into batches of similar length, longest first.

    Longest first, so that a batch that does not fit into memory shows at the start.

    Args:
        window: row numbers.
        lengths: (N,) tokens of every row.
        batch_tokens: most padded tokens (rows times the longest of them) in a batch; a longer row is alone in its own.
    """
    batch: list[int] = []
    longest = 0
    for row in sorted(window, key=lambda row: (-lengths[row], row)):
        if batch and (len(batch) + 1) * longest > batch_tokens:
            yield batch
            batch = []
        if not batch:
            longest = int(lengths[row])
        batch.append(row)
    if batch:
        yield batch
