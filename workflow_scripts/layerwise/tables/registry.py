"""Tables: which module builds which file of results/tables from the long tables."""

import importlib
from types import ModuleType

TABLES = {
    "layer_summary": "layerwise.tables.summary",
    "correlations": "layerwise.tables.correlation",
    "layer_selection": "layerwise.tables.selection",
}


def load_table(name: str) -> ModuleType:
    """Return the module whose ``build(metrics, scores, items, options)`` makes the table ``name``."""
    return importlib.import_module(TABLES[name])
