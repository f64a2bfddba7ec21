"""Kinds of tasks: which module prepares and scores which type."""

import importlib
from types import ModuleType

KINDS = {
    "classification": "layerwise.tasks.text_task",
    "clustering": "layerwise.tasks.text_task",
    "pair_classification": "layerwise.tasks.text_task",
    "sts": "layerwise.tasks.text_task",
    "image_classification": "layerwise.tasks.image_task",
    "attention_probe": "layerwise.tasks.attention_task",
}


def load_kind(task_type: str) -> ModuleType:
    """Return the module of a type; it has ``load``, ``samples``, ``baselines``, ``gold`` and, if looked up, ``score``."""
    return importlib.import_module(KINDS[task_type])
