"""Metric name -> module path. A metric is a file of this folder that defines ``SPEC``; no list has to name it.

Files are looked at and not imported, so that one metric's job imports, and depends on, that metric alone.
"""

import difflib
import importlib
import re
from pathlib import Path
from types import ModuleType

from layerwise.errors import ConfigError

_FACTS = re.compile(r"^SPEC\b.*=", re.M)
METRICS = {
    file.stem: f"layerwise.metrics.{file.stem}"
    for file in sorted(Path(__file__).parent.glob("*.py"))
    if file.name != "registry.py" and _FACTS.search(file.read_text("utf-8"))
}


def load_metric(name: str) -> ModuleType:
    """Import the module of one metric; its facts are in ``SPEC``.

    Every module has ``SPEC``, the public function, and the hooks of its level. Pooled and view metrics:
    ``summarise(views (N, V, D)) -> state`` and ``evaluate(state, case, seed) -> Value``. Token metrics:
    ``sample_values(activations, recipe, layer, cases)``, ``sample_ceiling(sizes, width, recipe, case)`` and
    ``sample_null(tokens, cases)``. Optional: ``supports(case, source)`` (is there such a record), ``prepare(views)`` (in
    place of centring and unit norm), ``parts`` and ``merge`` (states that add up over samples), ``accumulate((N, D), blocks)
    -> state`` (of pooled vectors that come in blocks, for corpora too large to hold), ``companions`` and ``annotate``
    (further keys of a record), ``null_case``.

    Raises:
        ConfigError: no metric has this name (the message lists those that exist), or its SPEC has another one.
    """
    if name not in METRICS:
        close = difflib.get_close_matches(str(name).lower(), METRICS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(f"metric {name!r} is unknown; {hint}Known metrics: {', '.join(METRICS)}.")
    module = importlib.import_module(METRICS[name])
    if module.SPEC.name != name:
        raise ConfigError(
            f"metric {name!r}: SPEC of layerwise/metrics/{name}.py has the name {module.SPEC.name!r}; write {name!r} there."
        )
    return module
