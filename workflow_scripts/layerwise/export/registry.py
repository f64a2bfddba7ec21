"""Loaders of the config -> the module that writes, reads and explains a folder of that library."""

import importlib
from types import ModuleType

FOLDERS = {
    "text": "layerwise.export.text_folder",
    "vision": "layerwise.export.vision_folder",
    "timm": "layerwise.export.timm_folder",
}


def load_folder(loader: str) -> ModuleType:
    """Return the module whose ``write``, ``vectors`` and ``usage`` make, read and explain a folder."""
    return importlib.import_module(FOLDERS[loader])
