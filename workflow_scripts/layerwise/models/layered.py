"""What extraction sees of a model, whatever its modality and library."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

OnLayer = Callable[[int, Tensor], None]
NO_TAPS: Mapping[str, OnLayer] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Batch:
    """Samples of similar length, padded on the right.

    Attributes:
        inputs: keyword arguments of the model's forward.
        masks: (B, T) bool by name: "all", real tokens; "content", those that are neither special nor prefix tokens;
            "skip_first", those after the first (text), or the content (images, whose first tokens are CLS and registers).
    """

    inputs: dict[str, Tensor]
    masks: dict[str, Tensor]


class Inputs(Protocol):
    """The prepared samples of one dataset."""

    lengths: NDArray[np.int64]

    def batch(self, rows: list[int]) -> Batch:
        """Collate these rows."""
        ...


@runtime_checkable
class TokenInputs(Protocol):
    """Inputs that are token ids, which a transform can change."""

    lengths: NDArray[np.int64]
    ids: list[list[int]]
    special: list[list[int]]

    def batch(self, rows: list[int]) -> Batch:
        """Collate these rows."""
        ...

    def with_tokens(self, ids: list[list[int]], special: list[list[int]]) -> "TokenInputs":
        """Return the same inputs with other tokens."""
        ...


@runtime_checkable
class TokenModel(Protocol):
    """What transforms of tokens ask of a model."""

    max_tokens: int

    @property
    def ordinary_tokens(self) -> NDArray[np.int64]:
        """The ids that are not special."""
        ...

    @property
    def causal(self) -> bool:
        """Whether the states of a token depend on that token and those before it only."""
        ...


class LayeredModel(Protocol):
    """A model whose residual stream can be read at every layer."""

    n_layers: int
    width: int
    layer_names: list[str]
    final_norm: nn.Module | None
    device: torch.device

    @property
    def facts(self) -> dict[str, Any]:
        """What is recorded of how samples are turned into input."""
        ...

    def prepare(self, samples: pd.DataFrame, folder: Path) -> Inputs:
        """Tokenise the samples, or locate them relative to ``folder``."""
        ...

    def run(self, batch: Batch, on_layer: OnLayer, taps: Mapping[str, OnLayer] = NO_TAPS) -> None:
        """One forward pass; call ``on_layer(i, states)`` with (B, T, D) for i = 0..L as each layer is reached.

        ``taps`` holds one such function for each further place inside the blocks, called for i = 1..L; see
        ``models.taps``.
        """
        ...
