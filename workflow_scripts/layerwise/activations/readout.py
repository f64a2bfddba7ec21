"""Readouts: how the tokens of one sample become one vector."""

import torch
from torch import Tensor, nn


def normed(states: Tensor, norm: str, final_norm: nn.Module | None) -> Tensor:
    """Apply a readout's norm to every token.

    Args:
        states: (B, T, D).
        norm: "none"; "final", the model's own final norm (the identity where it has none); "rms", division by the root
            mean square over D, without gain.
        final_norm: the module, applied in the dtype of the model.

    Returns:
        (B, T, D) float32.
    """
    if norm == "final" and final_norm is not None:
        return final_norm(states).float()
    states = states.float()
    if norm == "rms":
        return states * torch.rsqrt(states.square().mean(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny))
    return states


def token_weights(tokens: str, pool: str, masks: dict[str, Tensor]) -> Tensor:
    """Return the weight of every token in a readout; each row sums to 1.

    Args:
        tokens: "all", "content" (no special or prefix tokens) or "skip_first"; where nothing is left, all tokens.
        pool: "mean", "weighted_mean" (weight 1, 2, 3, ... by position, as in sentence-transformers), "last" or "first".
        masks: (B, T) bool each, by the words of ``tokens``.

    Returns:
        (B, T) float64.
    """
    mask, kept = masks["all"], masks[tokens]
    kept = torch.where(kept.any(1, keepdim=True), kept, mask)
    position = torch.arange(1, mask.shape[1] + 1, device=mask.device).expand(mask.shape)
    if pool == "mean":
        weights = kept.double()
    elif pool == "weighted_mean":
        weights = kept * position.double()
    else:
        end = (position * kept).amax(1) if pool == "last" else position.masked_fill(~kept, mask.shape[1] + 1).amin(1)
        weights = (position == end[:, None]).double()
    return weights / weights.sum(1, keepdim=True)


def pool(states: Tensor, weights: Tensor) -> Tensor:
    """Return sum_t w_t x_t: (B, T, D) and (B, T) to (B, D) float32; padded tokens, of weight 0, cannot leak in as NaN."""
    weights = weights.to(states.dtype)
    return torch.einsum("bt,btd->bd", weights, torch.where(weights[..., None] > 0, states, 0.0))
