"""Objectives: which file trains what, by the config's word."""

import importlib
from types import ModuleType

OBJECTIVES = {
    "causal_lm": "layerwise.models.training.causal_lm",
    "masked_lm": "layerwise.models.training.masked_lm",
    "state_space": "layerwise.models.training.state_space",
    "supervised": "layerwise.models.training.supervised",
    "mae": "layerwise.models.training.mae",
    "clip": "layerwise.models.training.clip",
    "aim": "layerwise.models.training.aim_prefix",
}


def load_objective(name: str) -> ModuleType:
    """Return the module whose ``build(samples, folder, options)`` makes an ``Objective``."""
    return importlib.import_module(OBJECTIVES[name])
