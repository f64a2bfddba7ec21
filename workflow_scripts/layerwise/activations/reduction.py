"""From the states of one layer to what is kept of them: pooled vectors and token statistics."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from layerwise.activations import readout, token_statistics
from layerwise.activations.passes import Part
from layerwise.store import CLAMPED_RECIPE


class Reduction:
    """The readouts and recipes of one part of a batch; token weights are made once for all layers."""

    def __init__(self, part: Part, readouts: list[dict[str, str]], recipes: list[str], device: torch.device) -> None:
        """Keep ``part``, the ``readouts`` and ``recipes`` of the request, and the ``device`` that sums and solves."""
        self.part, self.readouts, self.recipes, self.device = part, readouts, recipes, device
        self.masks = {name: mask.to(device) for name, mask in part.masks.items()}
        self.weights = {
            entry["name"]: readout.token_weights(entry["tokens"], entry["pool"], self.masks) for entry in readouts
        }

    def of(self, states: Tensor, final_norm: nn.Module | None) -> Iterator[tuple[str, Tensor]]:
        """Yield name and values (B', ...) of everything that is kept of one layer's states (B, T, D)."""
        states = self.part.of(states)
        normed: dict[str, Tensor] = {}
        for entry in self.readouts:
            norm = entry["norm"]
            if norm not in normed:
                normed[norm] = readout.normed(states, norm, final_norm).to(self.device)
            yield f"readout/{entry['name']}", readout.pool(normed[norm], self.weights[entry["name"]])
        if self.recipes:
            tokens = states.to(self.device)
            yield from token_statistics.statistics(tokens, self.masks, self.recipes, CLAMPED_RECIPE).items()
