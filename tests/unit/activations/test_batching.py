"""Batches: every row once, contiguous windows, a budget that is kept."""

import numpy as np
import pytest
from layerwise.activations.batching import TokenBudget, batches, windows


@pytest.mark.parametrize(
    ("n_rows", "row_bytes", "budget"), [(10, 3, 10), (10, 10, 10), (10, 11, 10), (1, 1, 1), (7, 0, 5), (64, 1, 64)]
)
def test_windows_are_contiguous_and_within_their_budget(n_rows: int, row_bytes: int, budget: int) -> None:
    found = list(windows(n_rows, row_bytes, budget))
    assert [row for window in found for row in window] == list(range(n_rows))
    assert all(len(window) * row_bytes <= budget or len(window) == 1 for window in found)
    assert all(len(window) == len(found[0]) for window in found[:-1])


def test_no_rows_make_no_window() -> None:
    assert list(windows(0, 10)) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [1, 7, 64, 10_000])
def test_batches_hold_every_row_once_and_keep_the_budget(seed: int, budget: int) -> None:
    lengths = np.random.default_rng(seed).integers(1, 50, 80)
    window = range(13, 71)
    found = list(batches(window, lengths, TokenBudget(budget)))
    assert sorted(row for batch in found for row in batch) == list(window)
    for batch in found:
        assert len(batch) * lengths[batch].max() <= budget or len(batch) == 1
    flat = [lengths[row] for batch in found for row in batch]
    assert flat == sorted(flat, reverse=True)  # longest first: what does not fit into memory shows at the start


def test_batches_are_as_full_as_they_can_be() -> None:
    lengths = np.full(10, 4)
    assert [len(batch) for batch in batches(range(10), lengths, TokenBudget(16))] == [4, 4, 2]


def test_equal_lengths_keep_their_order() -> None:
    assert list(batches(range(5), np.full(5, 3), TokenBudget(100))) == [[0, 1, 2, 3, 4]]


def test_an_empty_window_makes_no_batch() -> None:
    assert list(batches(range(0), np.array([], dtype=int), TokenBudget(8))) == []
