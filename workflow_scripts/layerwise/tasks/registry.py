"""Kinds of tasks: which module prepares and scores which type."""

import importlib
from types import ModuleType

KINDS = {
    "classification": "layerwise.tasks.text_task",
    "clustering": "layerwise.tasks.text_task",
    "pair_classification": "layerwise.tasks.text_task",
    "sts": "layerwise.tasks.text_task",
    "reranking": "layerwise.tasks.mteb_task",
    "retrieval": "layerwise.tasks.mteb_task",
    "mteb": "layerwise.tasks.mteb_task",
    "image_classification": "layerwise.tasks.image_task",
    "attention_probe": "layerwise.tasks.attention_task",
}

# Where the rows of a task come from, by ``TaskEntry.source``.
SOURCES = {
    "dataset": "layerwise.tasks.drawn",
    "table": "layerwise.tasks.table_rows",
    "retrieval": "layerwise.tasks.table_retrieval",
    "mteb": "layerwise.tasks.mteb_task",
}


def load_task_source(source: str) -> ModuleType:
    """Return the module of a source; its ``prepare`` writes the rows of a task."""
    return importlib.import_module(SOURCES[source])


def load_kind(task_type: str) -> ModuleType:
    """Return the module of a type; it has ``load``, ``samples``, ``baselines``, ``gold`` and, if looked up, ``score``.

    Those that are looked up also have ``item_kind`` and ``benchmark``, of what ``load`` gave.
    """
    return importlib.import_module(KINDS[task_type])
