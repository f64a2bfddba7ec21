"""An activation file of two layers with known values."""

from pathlib import Path
from typing import Any

import numpy as np
from layerwise.store import Header, Writer

LAYERS, WIDTH = 2, 4
READOUTS, RECIPES = ["mean", "mean_normed"], ["raw", "centre_unit"]


def arrays(n_tokens: np.ndarray, seed: int = 0, first: int = 0) -> dict[str, np.ndarray]:
    """Values of every array of one tap of a file, each different, first row of the angles undefined."""
    rng, n, result = np.random.default_rng(seed), len(n_tokens), {}
    for layer in range(first, LAYERS + 1):
        for readout in READOUTS:
            result[f"readout/{readout}/{layer:03d}"] = rng.standard_normal((n, WIDTH))
        for recipe in RECIPES:
            spectra = [rng.random(min(t, WIDTH)) if t > 1 else np.full(1, np.nan) for t in n_tokens]
            result[f"tokens/{recipe}/spectrum/{layer:03d}"] = np.concatenate(spectra)
            result[f"tokens/{recipe}/turning_angle/{layer:03d}"] = np.where(
                n_tokens[:, None] > 2, rng.random((n, 2)), np.nan
            )
        result[f"tokens/centre_unit/entropy_clamped/{layer:03d}"] = rng.random(n)
        result[f"tokens/norm/{layer:03d}"] = rng.random((n, 3))
        result[f"tokens/cosine/{layer:03d}"] = rng.random((n, 2))
    return {name: values.astype(np.float32) for name, values in result.items()}


def write_file(path: Path, **changes: Any) -> dict[str, np.ndarray]:
    """Write a file of six rows (or of ``n_tokens``) and return what was written."""
    n_tokens = np.array(changes.pop("n_tokens", [3, 5, 1, 4, 2, 6]))
    ids = changes.pop("ids", [f"id-{i}" for i in range(len(n_tokens))])
    source_ids = changes.pop("source_ids", ids)
    views = np.array(changes.pop("views", [0] * len(ids)))
    options = {key: changes.pop(key) for key in ("storage", "compression", "input_ids") if key in changes}
    facts = {
        "model": "m",
        "model_revision": "r",
        "dtype": "float32",
        "dataset": "d",
        "dataset_digest": "abc",
        "n_samples": len(set(source_ids)),
        "n_layers": LAYERS,
        "width": WIDTH,
        "layer_names": ["input of h.0", "h.0", "h.1"],
        "taps": ["residual"],
        "final_norm": True,
        "readouts": [{"name": name, "norm": "none"} for name in READOUTS],
        "recipes": RECIPES,
        "provenance": {"code": "0123", "seed": None},
    }
    values = arrays(n_tokens)
    for seed, tap in enumerate(changes.get("taps", ["residual"])[1:], 1):
        values |= {f"taps/{tap}/{name}": rows for name, rows in arrays(n_tokens, seed, first=1).items()}
    values |= changes.pop("values", {})
    with Writer(path, Header(**{**facts, **changes}), ids, source_ids, views, n_tokens, **options) as writer:
        writer.write(0, values)
    return values
