"""Figures: which module draws which file of ``results/figures``."""

import importlib
from types import ModuleType

from layerwise.errors import ConfigError

FIGURES = {
    name: f"layerwise.figures.{name}"
    for name in (
        "scores",
        "depth_profile",
        "best_layers",
        "gains",
        "score_vs_cost",
        "metric",
        "metric_vs_score",
        "correlations",
        "correlation_matrix",
        "selection",
        "valley",
        "sink",
        "released",
        "model_scores",
        "model_metrics",
        "dynamics",
        "levels",
        "compared",
        "taps",
    )
}
PREFIX = "metric_"
SEPARATOR = "~"  # in no name of a model, so that no model's figure can be taken for another figure
# figures of one subject: the module, and the option that the name of the subject is
OF_ONE = {
    "scores": ("model_scores", "model"),
    "metrics": ("model_metrics", "model"),
    "dynamics": ("dynamics", "model"),
    "levels": ("levels", "dataset"),
    "compared": ("compared", "label"),
}
OF_ALL_MODELS = [name for name in FIGURES if name not in ("metric", *(figure for figure, _ in OF_ONE.values()))]


def resolve(name: str) -> tuple[str, dict[str, str]]:
    """Return the figure and the options that a file name stands for.

    ``metric_dime`` is ``metric`` of ``dime``, ``scores~minilm-l6`` is ``model_scores`` of ``minilm-l6``,
    ``levels~verses~repeated`` is ``levels`` of the dataset ``verses~repeated``.

    Raises:
        ConfigError: no figure has this name.
    """
    kind, _, subject = name.partition(SEPARATOR)
    if subject and kind in OF_ONE:
        figure, option = OF_ONE[kind]
        return figure, {option: subject}
    if name in OF_ALL_MODELS:
        return name, {}
    metric = name.removeprefix(PREFIX)
    if metric not in ("", name) and SEPARATOR not in name:
        return "metric", {"metric": metric}
    known = ", ".join(OF_ALL_MODELS)
    raise ConfigError(
        f"there is no figure {name!r}; write one of {known}, or metric_NAME for one metric, "
        "or scores~NAME, metrics~NAME or dynamics~NAME for one model, levels~NAME for one dataset, or compared~NAME "
        "for one label."
    )


def load_figure(name: str) -> ModuleType:
    """Return the module whose ``draw(tables, **options)`` makes the figure ``name`` of ``FIGURES``."""
    return importlib.import_module(FIGURES[name])
