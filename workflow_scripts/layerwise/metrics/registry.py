"""Metric name -> module path. Paths are strings so that one metric's job imports, and depends on, that metric alone."""

import difflib
import importlib
from types import ModuleType

from layerwise.errors import ConfigError

METRICS = {
    "prompt_entropy": "layerwise.metrics.prompt_entropy",
    "dataset_entropy": "layerwise.metrics.dataset_entropy",
    "effective_rank": "layerwise.metrics.effective_rank",
    "curvature": "layerwise.metrics.curvature",
    "infonce": "layerwise.metrics.infonce",
    "lidar": "layerwise.metrics.lidar",
    "dime": "layerwise.metrics.dime",
    "sink_norm_ratio": "layerwise.metrics.sink_norm_ratio",
    "sink_variance_share": "layerwise.metrics.sink_variance_share",
    "top_eigenvalue_share": "layerwise.metrics.top_eigenvalue_share",
    "anisotropy": "layerwise.metrics.anisotropy",
    "intrinsic_dimension": "layerwise.metrics.intrinsic_dimension",
}


def load_metric(name: str) -> ModuleType:
    """Import the module of one metric; its facts are in ``SPEC``.

    Every module has ``SPEC``, the public function, and the hooks of its level. Pooled and view metrics:
    ``summarise(views (N, V, D)) -> state`` and ``evaluate(state, case, seed) -> Value``. Token metrics:
    ``sample_values(activations, recipe, layer, cases)``, ``sample_ceiling(sizes, width, recipe, case)`` and
    ``sample_null(tokens, cases)``. Optional: ``supports(case, source)`` (is there such a record), ``prepare(views)`` (in
    place of centring and unit norm), ``parts`` and ``merge`` (states that add up over samples), ``companions`` and
    ``annotate`` (further keys of a record), ``null_case``.

    Raises:
        ConfigError: no metric has this name; the message lists those that exist.
    """
    if name not in METRICS:
        close = difflib.get_close_matches(str(name).lower(), METRICS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(f"metric {name!r} is unknown; {hint}Known metrics: {', '.join(METRICS)}.")
    return importlib.import_module(METRICS[name])
