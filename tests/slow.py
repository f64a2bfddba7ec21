"""Slow references for readouts and token statistics: NumPy, one sample and one token at a time."""

import math

import numpy as np


def vector(tokens, content, norm, chosen, pool, final_norm=None):
    """One readout of one sample: tokens (T, D), content (T,) bool; ``final_norm`` maps (T, D) to (T, D)."""
    tokens = np.asarray(tokens, dtype=np.float64)
    if norm == "final" and final_norm is not None:
        tokens = np.asarray(final_norm(tokens), dtype=np.float64)
    if norm == "rms":
        tokens = np.stack([row / math.sqrt(sum(x * x for x in row) / len(row)) if row.any() else row for row in tokens])
    everything = list(range(len(tokens)))
    kept = {"all": everything, "content": [t for t in everything if content[t]], "skip_first": everything[1:]}[chosen]
    kept = kept or everything
    if pool == "last":
        return tokens[kept[-1]]
    if pool == "first":
        return tokens[kept[0]]
    weights = [t + 1 if pool == "weighted_mean" else 1 for t in kept]
    return sum(w * tokens[t] for w, t in zip(weights, kept, strict=True)) / sum(weights)


def prepared(tokens, recipe):
    """The tokens of one sample as a recipe wants them."""
    tokens = np.asarray(tokens, dtype=np.float64)
    if recipe.endswith("_skip_first"):
        tokens = tokens[1:]
    if recipe.startswith("centre"):
        tokens = tokens - tokens.mean(0) if len(tokens) else tokens
    if recipe == "raw":
        return tokens
    return np.stack([t / np.linalg.norm(t) if np.linalg.norm(t) > 0 else t for t in tokens]) if len(tokens) else tokens


def spectrum(tokens, recipe):
    """Normalised eigenvalues of the T x T Gram matrix, largest first, as many as min(T, D) of the whole sample."""
    ready, size = prepared(tokens, recipe), min(np.shape(tokens))
    if len(ready) < 2 or not ready.any():
        return np.full(size, np.nan)
    values = np.linalg.svd(ready, compute_uv=False) ** 2
    padded = np.zeros(size)
    padded[: min(size, len(values))] = values[:size]
    return padded / padded.sum()


def angles(tokens, recipe):
    """Mean signed and mean absolute turning angle."""
    ready, signed, absolute = prepared(tokens, recipe), [], []
    for k in range(len(ready) - 2):
        before, after = ready[k + 1] - ready[k], ready[k + 2] - ready[k + 1]
        product = np.linalg.norm(before) * np.linalg.norm(after)
        if product == 0:
            absolute.append(0.0)
            continue
        cosine = min(1.0, max(-1.0, before @ after / product))
        signed.append(math.acos(cosine))
        absolute.append(math.acos(abs(cosine)))
    return [np.mean(signed) if signed else np.nan, np.mean(absolute) if absolute else np.nan]


def clamped_entropy(tokens):
    """The authors' prompt entropy: the smaller of Gram and covariance, negative entries set to zero."""
    ready = prepared(tokens, "centre_unit")
    if len(ready) < 2 or not ready.any():
        return np.nan
    matrix = ready @ ready.T if len(ready) <= ready.shape[1] else ready.T @ ready
    values = np.linalg.eigvalsh(np.maximum(matrix, 0))
    values = values[values > 0] / values[values > 0].sum()
    return -sum(p * math.log(p) for p in values)


def norms(tokens):
    """Norm of the first token, median norm of the rest (the lower of two middle ones), root of their sum of squares."""
    found = [np.linalg.norm(np.asarray(token, dtype=np.float64)) for token in tokens]
    rest = sorted(found[1:])
    return [found[0], rest[(len(rest) - 1) // 2] if rest else np.nan, math.sqrt(sum(x * x for x in rest))]


def mean_cosine(tokens):
    """Mean cosine over all pairs of different tokens, one pair at a time."""
    rows = [np.asarray(token, dtype=np.float64) for token in tokens]
    cosines = []
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            length = np.linalg.norm(a) * np.linalg.norm(b)
            cosines.append(a @ b / length if length else 0.0)
    return np.mean(cosines) if cosines else np.nan


def cosines(tokens):
    """Mean cosine of all tokens, and of all but the first."""
    return [mean_cosine(tokens), mean_cosine(tokens[1:])]
