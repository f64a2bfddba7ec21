"""Loaders: which file reads a model folder, by the config's word."""

import importlib
from types import ModuleType

LOADERS = {
    "text": "layerwise.models.text",
    "vision": "layerwise.models.vision",
    "timm": "layerwise.models.timm_vision",
    "open_clip": "layerwise.models.open_clip_vision",
    "aim": "layerwise.models.aim",
}


def load_loader(name: str) -> ModuleType:
    """Return the module whose ``load_entry(folder, entry, device)`` loads a model."""
    return importlib.import_module(LOADERS[name])
