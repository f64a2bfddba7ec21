"""Every readout and layer of an activation file, scored on one task."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from layerwise.store import Activations
from layerwise.tasks.outcome import Score


def scored_layers(kind: ModuleType, files: Any, store: Activations, progress: Callable[[int, int], None]) -> dict[str, Any]:  # noqa: ANN401
    """Return ``readouts`` and ``items`` of a task record.

    Args:
        kind: module of the task's type. files: what it loaded.
        store: an open activation file.
        progress: hears (done, total) after every layer.

    Returns:
        ``readouts``: by readout, a list over layers with layer, depth, main_score, scores by protocol, n_not_converged, and
        for tasks scored by mteb ``subsets`` (main score by subset) and ``results`` (all that mteb reports, by subset).
        ``items``: protocol, kind, gold and the outcomes by readout; None where the score does not come from items.
    """
    rows = {identifier: row for row, identifier in enumerate(store.ids)}
    cells = [(readout, layer) for readout in store.readouts for layer in range(store.n_layers + 1)]
    layers: dict[str, list[dict[str, Any]]] = {}
    items: dict[str, list[list[float]]] = {}
    protocol = ""
    for done, (readout, layer) in enumerate(cells, 1):
        scored = kind.score(files, rows, store.rows(readout, layer))
        layers.setdefault(readout, []).append({"layer": layer, "depth": layer / store.n_layers} | _entry(scored))
        items.setdefault(readout, []).append(scored.items)
        protocol = list(scored.scores)[-1]
        progress(done, len(cells))
    what = kind.item_kind(files)
    outcome = None if what is None else {"protocol": protocol, "kind": what, "gold": kind.gold(files), "readouts": items}
    return {"readouts": layers, "items": outcome}


def _entry(scored: Score) -> dict[str, Any]:
    entry = {
        "main_score": next(iter(scored.scores.values())),
        "scores": scored.scores,
        "n_not_converged": scored.n_not_converged,
    }
    if not scored.results:
        return entry
    subsets = {subset: result["main_score"] for subset, result in scored.results.items()}
    return entry | {"subsets": subsets, "results": scored.results}
