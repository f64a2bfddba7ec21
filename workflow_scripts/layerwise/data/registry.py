"""Kinds of sources and transforms: which file serves which word of the config."""

import importlib
from types import ModuleType

SOURCES = {kind: f"layerwise.data.{kind}" for kind in ("table", "hub_table", "bible", "lee", "reviews")}
IMAGE_SOURCES = {kind: f"layerwise.data.{kind}" for kind in ("digits", "glyphs", "image_folder")}
TRANSFORMS = {name: f"layerwise.data.{name}" for name in ("surface_noise", "columns", "simclr")}


def load_source(kind: str) -> ModuleType:
    """Return the module whose ``read(**entry)`` reads a source of texts of this kind."""
    return importlib.import_module(SOURCES[kind])


def load_image_source(kind: str) -> ModuleType:
    """Return the module whose ``read(folder, **entry)`` makes or links the images of a source below ``folder``."""
    return importlib.import_module(IMAGE_SOURCES[kind])


def load_transform(name: str) -> ModuleType:
    """Return the module whose ``view_text`` or ``view_image`` makes one view of one sample."""
    return importlib.import_module(TRANSFORMS[name])
