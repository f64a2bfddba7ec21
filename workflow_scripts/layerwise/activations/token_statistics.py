"""Token statistics: what every token-level metric needs, without keeping the tokens.

For each sample, layer and recipe: the normalised eigenvalues of the Gram matrix of its prepared tokens, its mean
turning angles, and for the authors' variant the entropy of the clamped Gram matrix; and for each sample and layer the norms
of its tokens and the mean cosine between them. All in float64.
"""

import math

import torch
from torch import Tensor

Statistics = dict[str, Tensor]
Masks = dict[str, Tensor]
ROUNDING = 1e-4  # one token repeated 64 times differs by 8e-6 of its norm after 30 blocks of SmolLM2 in float32


def prepare(states: Tensor, masks: Masks, recipe: str) -> tuple[Tensor, Tensor]:
    """Prepare the tokens of each sample as ``recipe`` says.

    Args:
        states: (B, T, D). masks: (B, T) bool, "all" and "skip_first".
        recipe: "raw"; "centre_unit" (minus the sample's mean token, then unit norm); "unit"; each of the last two also
            with "_skip_first", which drops the first token before anything else.

    Returns:
        tokens (B, T, D) float64, zero where masked, and their mask. ``skip_first`` moves the first token out of the mask.
        NaN or infinity in a token of the mask stays visible as NaN. Tokens that differ by the model's rounding alone, as
        those of one token repeated do, are made equal: centred and unit, that rounding would pass for a rich spectrum.
    """
    mask = masks["skip_first" if recipe.endswith("_skip_first") else "all"]
    left_out = ~mask[..., None]
    tokens = states.to(torch.float64, copy=True).masked_fill_(left_out, 0.0)  # one copy, changed in place from here on
    tolerance = max(ROUNDING, 2 * torch.finfo(states.dtype).eps)
    for sample in _perhaps_the_same(tokens, mask, tolerance):
        if _all_the_same(tokens[sample][mask[sample]], tolerance):
            first = tokens[sample, mask[sample].int().argmax()].clone()
            tokens[sample, mask[sample]] = first
    if recipe.startswith("centre"):
        count = mask.sum(1).clamp_min(1)[:, None, None]
        tokens.sub_(tokens.sum(1, keepdim=True) / count).masked_fill_(left_out, 0.0)
    if recipe != "raw":
        norms = torch.linalg.vector_norm(tokens, dim=-1, keepdim=True)
        tokens.div_(torch.where(norms == 0, 1.0, norms))
    return tokens, mask


def _perhaps_the_same(tokens: Tensor, mask: Tensor, tolerance: float) -> list[int]:
    """Samples whose first two tokens of the mask lie as close as tokens that are all the same do: almost never one."""
    first = mask.int().argmax(1)
    second = (first + 1).clamp_max(mask.shape[1] - 1)  # the tokens of a mask are contiguous
    samples = torch.arange(len(tokens), device=tokens.device)
    pair = tokens[samples, first], tokens[samples, second]
    norms = [torch.linalg.vector_norm(one, dim=1) for one in (pair[0] - pair[1], *pair)]
    close = norms[0] <= 2 * tolerance * (norms[1] + norms[2])  # twice: both lie within the tolerance of one mean
    return [int(sample) for sample in (close & mask[samples, first] & mask[samples, second]).nonzero()]


def _all_the_same(tokens: Tensor, tolerance: float) -> bool:
    """Whether tokens (T, D) all lie within ``tolerance`` of their mean, relative to their norm."""
    distances = torch.linalg.vector_norm(tokens - tokens.mean(0), dim=1)
    return bool((distances <= tolerance * torch.linalg.vector_norm(tokens, dim=1)).all())


def gram(tokens: Tensor) -> Tensor:
    """Return the smaller of the two second-moment matrices of each sample: (B, T, T) or (B, D, D).

    A sample with NaN or infinity gets zeros, that is, an undefined spectrum; the eigenvalue solver would stop at it.
    """
    scale = torch.maximum(tokens.amax((1, 2), keepdim=True), -tokens.amin((1, 2), keepdim=True))
    usable = (scale > 0) & scale.isfinite()
    tokens = tokens / torch.where(usable, scale, 1.0)
    matrix = tokens @ tokens.mT if tokens.shape[1] <= tokens.shape[2] else tokens.mT @ tokens
    return torch.where(usable, matrix, 0.0)


def spectrum(matrix: Tensor, count: Tensor) -> Tensor:
    """Return normalised eigenvalues, largest first; NaN for samples of fewer than two tokens or without any spread.

    Args:
        matrix: (B, n, n) symmetric, positive semi-definite.
        count: (B,) tokens of each sample under its recipe.

    Returns:
        (B, n) float64, each row non-negative with sum 1; padding tokens add zeros at the end.
    """
    values = torch.linalg.eigvalsh(matrix).clamp_min(0.0).flip(-1)
    total = values.sum(-1, keepdim=True)
    defined = (count[:, None] >= 2) & (total > 0)
    return torch.where(defined, values / torch.where(defined, total, 1.0), math.nan)


def entropy_clamped(matrix: Tensor, count: Tensor) -> Tensor:
    """Return the authors' prompt entropy (B,) in nats: negative entries set to 0 before the eigenvalues are taken.

    Clamping is not in the paper and breaks positive semi-definiteness; negative eigenvalues are left out and the rest
    is rescaled to sum 1. A variant to compare with, not a definition.
    """
    clamped = matrix.clamp_min(0.0)
    trace = clamped.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None]
    values = torch.linalg.eigvalsh(clamped) / torch.where(trace > 0, trace, 1.0)
    values = torch.where(values > 0, values, 0.0)
    total = values.sum(-1, keepdim=True)
    probabilities = values / torch.where(total > 0, total, 1.0)
    entropy = -torch.special.xlogy(probabilities, probabilities).sum(-1)
    return torch.where((count >= 2) & (total[:, 0] > 0), entropy, math.nan)


def turning_angles(tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean angle between successive steps v_k = z_{k+1} - z_k of each sample, signed and absolute, in radians.

    Signed: arccos of the cosine, over triples whose two steps are not zero (Hosseini and Fedorenko, 2023). Absolute:
    the authors' form, arccos of the cosine's absolute value, with 0 for a zero step.

    Args:
        tokens: (B, T, D) float64. mask: (B, T) bool; a sample needs three tokens, else NaN.

    Returns:
        signed (B,) in [0, pi] and absolute (B,) in [0, pi / 2].
    """
    steps = tokens[:, 1:] - tokens[:, :-1]
    lengths = torch.linalg.vector_norm(steps, dim=-1)
    product = lengths[:, 1:] * lengths[:, :-1]
    parts = steps.chunk(4, dim=-1)  # the products of all columns at once would be as large as the steps
    cosine = sum((part[:, 1:] * part[:, :-1]).sum(-1) for part in parts) / torch.where(product == 0, 1.0, product)
    cosine = cosine.clamp(-1.0, 1.0)
    triple = mask[:, 2:] & mask[:, 1:-1] & mask[:, :-2]
    moving = triple & (product != 0)
    signed = _masked_mean(torch.acos(cosine), moving)
    absolute = _masked_mean(torch.where(product == 0, 0.0, torch.acos(cosine.abs())), triple)
    return signed, absolute


def token_norms(states: Tensor, masks: Masks) -> Tensor:
    """Return the norms of each sample's tokens, reduced.

    Args:
        states: (B, T, D). masks: (B, T) bool, "all" and "skip_first".

    Returns:
        (B, 3): norm of the first token; median norm of those of "skip_first" (NaN where there are none); root of the sum of
        squared norms of all tokens but the first, the part of the second moment that the first does not carry.
    """
    norms = torch.linalg.vector_norm(states.double(), dim=-1)
    others = torch.where(masks["skip_first"], norms, math.nan)
    rest = torch.where(masks["all"], norms, 0.0)[:, 1:]
    return torch.stack([norms[:, 0], others.nanmedian(1).values, torch.linalg.vector_norm(rest, dim=1)], dim=1)


def token_cosines(states: Tensor, masks: Masks) -> Tensor:
    """Return (B, 2): the mean cosine between different tokens of a sample, of all of them and of those of "skip_first".

    From the sum s of the n unit vectors, (|s|^2 - n) / (n (n - 1)); a zero token has cosine 0 with every other. In
    [-1 / (n - 1), 1]; NaN below two tokens.
    """
    units, _ = prepare(states, masks, "unit")
    kept = torch.stack([masks["all"], masks["skip_first"]], dim=1).double()
    n = kept.sum(2)
    own = kept @ torch.linalg.vector_norm(units, dim=-1, keepdim=True).square()  # zero tokens have no length to count
    total = torch.linalg.vector_norm(kept @ units, dim=-1).square() - own[..., 0]
    return torch.where(n >= 2, total / (n * (n - 1)).clamp_min(1), math.nan)


def statistics(states: Tensor, masks: Masks, recipes: list[str], clamped_recipe: str) -> Statistics:
    """Return all token statistics of one layer, keyed as in the activation file (without the layer)."""
    result: Statistics = {"tokens/norm": token_norms(states, masks), "tokens/cosine": token_cosines(states, masks)}
    for recipe in recipes:
        tokens, kept = prepare(states, masks, recipe)
        matrix, count = gram(tokens), kept.sum(1)
        result[f"tokens/{recipe}/spectrum"] = spectrum(matrix, count)
        result[f"tokens/{recipe}/turning_angle"] = torch.stack(turning_angles(tokens, kept), dim=1)
        if recipe == clamped_recipe:
            # Clamping sees which matrix it is: each sample's own length decides, not the longest of its batch.
            width = tokens.shape[2]
            longer = tokens.shape[1] > width
            own = torch.where((count <= width)[:, None, None], gram(tokens[:, :width]), matrix) if longer else matrix
            result[f"tokens/{recipe}/entropy_clamped"] = entropy_clamped(own, count)
    return result


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    count = mask.sum(1)
    mean = torch.where(mask, values, 0.0).sum(1) / count.clamp_min(1)
    return torch.where(count > 0, mean, math.nan)
