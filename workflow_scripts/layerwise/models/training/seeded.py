"""Initial weights from a seed, without touching the random state of the process."""

from collections.abc import Callable
from typing import Any

import torch


def seeded(seed: int, build: Callable[[], Any]) -> Any:  # noqa: ANN401 - a module of any library
    """Return what ``build`` makes when the random state begins at ``seed``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()
