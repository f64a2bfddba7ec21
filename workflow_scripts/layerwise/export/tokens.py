"""From the tokens of an image to its vector: the same readout as a function and as the line of Python on the card."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from layerwise.errors import ModelError


def pool(tokens: Tensor, readout: Mapping[str, str], prefix: int) -> NDArray[np.float64]:
    """Return (N, D) float64 of tokens (N, T, D), the first ``prefix`` of which are class and register tokens."""
    values = tokens.double().numpy()
    skipped = _skipped(readout, prefix)
    positions = np.arange(skipped + 1, values.shape[1] + 1, dtype=np.float64)
    values = values[:, skipped:]
    if readout["pool"] == "mean":
        return values.mean(1)
    if readout["pool"] == "weighted_mean":
        return np.einsum("t,ntd->nd", positions / positions.sum(), values)
    return values[:, -1 if readout["pool"] == "last" else 0]


def pool_code(readout: Mapping[str, str], prefix: int) -> str:
    """Return the expression in ``tokens`` that gives the same."""
    skipped = _skipped(readout, prefix)
    part = f"tokens[:, {skipped}:]" if skipped else "tokens"
    if readout["pool"] == "mean":
        return f"{part}.mean(1)"
    if readout["pool"] == "weighted_mean":
        weights = f"torch.arange({skipped + 1}.0, tokens.shape[1] + 1)"
        return f'torch.einsum("t,ntd->nd", {weights} / {weights}.sum(), {part})'
    return "tokens[:, -1]" if readout["pool"] == "last" else f"tokens[:, {skipped}]"


def _skipped(readout: Mapping[str, str], prefix: int) -> int:
    """Of images, ``skip_first`` means the content: the patches."""
    return 0 if readout["tokens"] == "all" else prefix


def name_of(module: nn.Module, part: nn.Module | None) -> str:
    """Return the name of ``part`` inside ``module``; "" for None."""
    return next((name for name, found in module.named_modules() if found is part), "")


def without_norm(model: nn.Module, name: str) -> None:
    """Put the identity in the place of a model's final norm.

    Raises:
        ModelError: it is not there under the name it had before saving.
    """
    parent, _, leaf = name.rpartition(".")
    holder = dict(model.named_modules()).get(parent)
    if holder is None or not isinstance(getattr(holder, leaf, None), nn.Module):
        raise ModelError(
            f"{type(model).__name__} has no {name!r} once it is loaded from its folder; write a 'norm: final' readout."
        )
    setattr(holder, leaf, nn.Identity())
