"""What the training loop sees of a model and its objective."""

from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn


class Objective(Protocol):
    """A model, the samples it learns from, and its loss on some of them.

    Attributes:
        module: the model with its head, on the CPU, in float32.
        rows: how many samples there are.
    """

    module: nn.Module
    rows: int

    def loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss (nats, or squared units for pixels), a scalar with a gradient.

        Args:
            rows: (B,) int64 row numbers of samples.
            generator: the only source of chance: which tokens are masked, where a prefix ends.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write the model as its library does, safetensors only, with all that its loader needs."""
        ...
