"""Kinds of sources and transforms: which file serves which word of the config."""

import importlib
from types import ModuleType

SOURCES = {kind: f"layerwise.data.{kind}" for kind in ("table", "bible", "lee", "reviews")}
TRANSFORMS = {"surface_noise": "layerwise.data.surface_noise", "columns": "layerwise.data.columns"}


def load_source(kind: str) -> ModuleType:
    """Return the module whose ``read(**entry)`` reads a source of this kind."""
    return importlib.import_module(SOURCES[kind])


def load_transform(name: str) -> ModuleType:
    """Return the module whose ``view_text(row, view, seed)`` makes one view of one sample."""
    return importlib.import_module(TRANSFORMS[name])
