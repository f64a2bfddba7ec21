"""Figures: which module draws which file of ``results/figures``."""

import importlib
from types import ModuleType

from layerwise.errors import ConfigError

FIGURES = {
    name: f"layerwise.figures.{name}"
    for name in (
        "scores",
        "gains",
        "metric",
        "metric_vs_score",
        "correlations",
        "selection",
        "valley",
        "released",
    )
}
PREFIX = "metric_"


def resolve(name: str) -> tuple[str, dict[str, str]]:
    """Return the figure and the options that a file name stands for: ``metric_dime`` is ``metric`` of ``dime``.

    Raises:
        ConfigError: no figure has this name.
    """
    if name in FIGURES and name != "metric":
        return name, {}
    if name.startswith(PREFIX) and name != PREFIX:
        return "metric", {"metric": name.removeprefix(PREFIX)}
    known = ", ".join(figure for figure in FIGURES if figure != "metric")
    raise ConfigError(f"there is no figure {name!r}; write one of {known}, or metric_NAME for one metric.")


def load_figure(name: str) -> ModuleType:
    """Return the module whose ``draw(tables, **options)`` makes the figure ``name`` of ``FIGURES``."""
    return importlib.import_module(FIGURES[name])
