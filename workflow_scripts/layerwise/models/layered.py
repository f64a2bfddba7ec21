"""What extraction sees of a model, whatever its modality and library."""

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

OnLayer = Callable[[int, Tensor], None]


@dataclasses.dataclass(frozen=True)
class Batch:
    """Samples of similar length, padded on the right.

    Attributes:
        inputs: keyword arguments of the model's forward.
        mask: (B, T) bool, real tokens.
        content: (B, T) bool, real tokens that are neither special nor prefix tokens.
    """

    inputs: dict[str, Tensor]
    mask: Tensor
    content: Tensor


class Inputs(Protocol):
    """The prepared samples of one dataset."""

    lengths: NDArray[np.int64]

    def batch(self, rows: list[int]) -> Batch:
        """Collate these rows."""
        ...


class LayeredModel(Protocol):
    """A model whose residual stream can be read at every layer."""

    n_layers: int
    width: int
    layer_names: list[str]
    final_norm: nn.Module | None
    device: torch.device

    def prepare(self, samples: pd.DataFrame) -> Inputs:
        """Tokenise or locate the samples."""
        ...

    def run(self, batch: Batch, on_layer: OnLayer) -> None:
        """One forward pass; call ``on_layer(i, states)`` with (B, T, D) for i = 0..L as each layer is reached."""
        ...
