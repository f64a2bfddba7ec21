"""layerwise: every layer's representation of a text or vision model, measured and scored.

From Python: ``from layerwise import load_activations, layer_scores`` (docs/python.md); importing the package costs nothing,
a name is imported when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layerwise.api import BestLayer, LayerActivations, LayerScores, layer_scores, load_activations

__all__ = ["BestLayer", "LayerActivations", "LayerScores", "layer_scores", "load_activations"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'layerwise' has no attribute {name!r}")
    from layerwise import api

    return getattr(api, name)
