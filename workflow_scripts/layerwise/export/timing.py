"""How long the whole and the cut model take, in turns, so that a slow moment meets both."""

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext


def in_turns(
    run: Callable[[], object], short: Callable[[], AbstractContextManager[None]], rounds: int = 3
) -> dict[str, float]:
    """Return the median seconds of ``run`` as it is ("before") and inside ``short()`` ("after"), warmed by one short run."""
    seconds: dict[str, list[float]] = {"before": [], "after": []}
    _timed(run, short)
    for _ in range(rounds):
        seconds["before"].append(_timed(run, nullcontext))
        seconds["after"].append(_timed(run, short))
    return {name: statistics.median(values) for name, values in seconds.items()}


def _timed(run: Callable[[], object], inside: Callable[[], AbstractContextManager[None]]) -> float:
    start = time.perf_counter()
    with inside():
        run()
    return time.perf_counter() - start
