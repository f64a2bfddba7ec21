"""Inputs shared by the metric tests: random and degenerate arrays, the parity cases, a made-up activation file."""

import copy
import functools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.slow import cosines

REPOSITORY = Path(__file__).resolve().parents[3]


def centre_unit(rows):
    """Rows minus their mean, each divided by its norm, independently of the package."""
    rows = np.asarray(rows, dtype=float) / np.abs(rows).max()
    rows = rows - rows.mean(axis=0)
    return rows / np.sqrt((rows**2).sum(axis=-1, keepdims=True))


def gaussian(*shape, seed=0):
    """Standard normal array."""
    return np.random.default_rng([7, seed]).normal(size=shape)


def decaying(n, d, seed=0):
    """Vectors whose spread falls along the dimensions, as those of models do."""
    return gaussian(n, d, seed=seed) / np.sqrt(np.arange(1, d + 1))


def noisy_views(n, v, d, noise=0.5, seed=0):
    """(N, V, D): copies of N decaying vectors with independent noise."""
    return decaying(n, d, seed)[:, None] + noise * gaussian(n, v, d, seed=seed + 1000) / np.sqrt(d)


def rotation(d, seed=0):
    """Random orthogonal (d, d) matrix."""
    return np.linalg.qr(gaussian(d, d, seed=seed + 50))[0]


def with_nan(rows):
    """Copy with one NaN in one row."""
    rows = np.array(rows, dtype=float)
    rows[len(rows) // 2, ..., 0] = np.nan
    return rows


D = 6
DEFINED = {  # hard but defined sets of vectors
    "n=2": gaussian(2, D),
    "n=d-1": gaussian(D - 1, D),
    "n=d": gaussian(D, D),
    "n=d+1": gaussian(D + 1, D),
    "d=1": gaussian(9, 1),
    "one dimension without variance": gaussian(9, D) * [1, 1, 0, 1, 1, 1],
    "outlier dimension": gaussian(9, D) * [1e4, 1, 1, 1, 1, 1],
    "scale 1e-20": gaussian(9, D) * 1e-20,
    "scale 1e20": gaussian(9, D) * 1e20,
    "scale 1e-200": gaussian(9, D) * 1e-200,
    "scale 1e200": gaussian(9, D) * 1e200,
    "rank 2": gaussian(9, 2) @ gaussian(2, D),
    "duplicated rows": np.repeat(gaussian(5, D), 2, axis=0),
}
UNDEFINED = {
    "n=0": np.empty((0, D)),
    "n=1": gaussian(1, D),
    "d=0": np.empty((5, 0)),
    "all zero": np.zeros((9, D)),
    "NaN in one row": with_nan(gaussian(9, D)),
    "infinity": np.where(np.arange(D) == 2, np.inf, gaussian(9, D)),
    "one-dimensional": gaussian(9),
}


@functools.cache
def _parity(folder):
    with np.load(folder / "metric_parity.npz") as inputs:
        arrays = {name: inputs[name] for name in inputs.files}
    return arrays, json.loads((folder / "metric_parity.json").read_text())


def parity():
    """Inputs and outputs of the authors' code; skips where the reference data are not there."""
    root = Path(os.environ.get("LAYERWISE_REFERENCE", REPOSITORY / ".." / "shared" / "reference"))
    folder = root / "metric_parity"
    if not (folder / "metric_parity.npz").is_file():
        pytest.skip(f"no reference data in {folder}; set LAYERWISE_REFERENCE to the folder that holds metric_parity/")
    return _parity(folder)


class FakeActivations:
    """Activations made from raw tokens and views, with statistics computed by plain loops."""

    def __init__(self, n=24, layers=4, width=8, views=3, lengths=None, seed=0):
        rng = np.random.default_rng(seed)
        self.n_layers, self.width, self.n = layers, width, n
        self.taps, self.layers = ["residual"], range(layers + 1)
        self.n_tokens = np.asarray(lengths if lengths is not None else rng.integers(4, 12, size=n))
        base = rng.normal(size=(n, 1, width))
        self.view_arrays = [
            base * np.arange(1, width + 1) ** -(0.3 * layer) + (0.2 + 0.1 * layer) * rng.normal(size=(n, views, width))
            for layer in range(layers + 1)
        ]
        self.tokens = [
            [rng.normal(size=(t, width)) * np.arange(1, width + 1) ** -(0.4 * layer) for t in self.n_tokens]
            for layer in range(layers + 1)
        ]

    @property
    def n_samples(self):
        return self.n

    def at(self, tap):
        return self

    def among(self, samples):
        other = copy.copy(self)
        other.n, other.n_tokens = len(samples), self.n_tokens[samples]
        other.view_arrays = [views[samples] for views in self.view_arrays]
        other.tokens = [[tokens[sample] for sample in samples] for tokens in self.tokens]
        return other

    def pooled(self, readout, layer):
        return self.view_arrays[layer][:, 0] * (1.0 if readout == "mean" else 2.0)

    def views(self, readout, layer):
        return self.view_arrays[layer]

    def prepared(self, recipe, layer):
        for tokens in self.tokens[layer]:
            if recipe.endswith("skip_first") and len(tokens) > 1:
                tokens = tokens[1:]
            if recipe.startswith("centre") and len(tokens) > 1:
                tokens = centre_unit(tokens)
            yield tokens

    def spectra(self, recipe, layer):
        rows = np.zeros((self.n, min(max(self.n_tokens, default=1), self.width)))
        for row, tokens in zip(rows, self.prepared(recipe, layer), strict=True):
            values = np.linalg.svd(tokens, compute_uv=False) ** 2
            row[: len(values)] = values / values.sum() if len(tokens) > 1 else np.nan
            row[:] = row if len(tokens) > 1 else np.nan
        return rows

    def angles(self, recipe, layer):
        rows = np.full((self.n, 2), np.nan)
        for row, tokens in zip(rows, self.prepared(recipe, layer), strict=True):
            if len(tokens) > 2:
                steps = np.diff(tokens, axis=0)
                with np.errstate(invalid="ignore"):  # a step without length gives NaN, as in a file
                    steps = steps / np.linalg.norm(steps, axis=1, keepdims=True)
                cosines = (steps[1:] * steps[:-1]).sum(axis=1)
                row[:] = np.arccos(cosines).mean(), np.arccos(abs(cosines)).mean()
        return rows

    def token_norms(self, layer):
        norms = [np.linalg.norm(tokens, axis=1) for tokens in self.tokens[layer]]
        return np.array(
            [[x[0], sorted(x[1:])[(len(x) - 2) // 2] if len(x) > 1 else np.nan, np.sqrt(sum(x[1:] ** 2))] for x in norms]
        )

    def token_cosines(self, layer):
        return np.array([cosines(tokens) for tokens in self.tokens[layer]]).reshape(self.n, 2)

    def entropy_clamped(self, layer):
        values = np.full(self.n, np.nan)
        for index, tokens in enumerate(self.prepared("centre_unit", layer)):
            if len(tokens) > 1:
                matrix = tokens @ tokens.T if len(tokens) <= self.width else tokens.T @ tokens
                p = np.linalg.eigvalsh(np.clip(matrix, 0, None))
                p = p[p > 0] / p[p > 0].sum()
                values[index] = -(p * np.log(p)).sum()
        return values
