"""The names of token recipes: how tokens are prepared before a token-level metric."""

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import ConfigError
from layerwise.metrics.spec import Array
from layerwise.spectrum import centre_unit, unit

RECIPES = ("raw", "unit", "unit_skip_first", "centre_unit", "centre_unit_skip_first")


def check_recipe(recipe: str) -> None:
    """Refuse an unknown recipe name.

    Raises:
        ConfigError: with the known names.
    """
    if recipe not in RECIPES:
        raise ConfigError(f"recipe {recipe!r} is unknown; write one of {', '.join(RECIPES)}.")


def is_centred(recipe: str) -> bool:
    """Whether the recipe subtracts the mean token, which costs one direction."""
    return recipe.startswith("centre")


def sizes(recipe: str, n_tokens: NDArray[np.integer]) -> NDArray[np.int64]:
    """(N,) tokens each sample keeps: one fewer with `skip_first`, which leaves a lone token where it is."""
    kept = np.asarray(n_tokens, dtype=np.int64)
    return np.maximum(kept - 1, np.minimum(kept, 1)) if recipe.endswith("skip_first") else kept


def prepare(recipe: str, tokens: Array) -> Array:
    """Apply the recipe's centring and scaling to (T, D) tokens (dropping the first is the caller's)."""
    if is_centred(recipe):
        return centre_unit(tokens)
    return tokens if recipe.startswith("raw") else unit(tokens)
