"""How layers change: against the layer before, and against the same layer of the last checkpoint of a training run."""

from collections.abc import Callable, Sequence
from typing import Any

from layerwise.errors import UndefinedMetric
from layerwise.metrics.linear_cka import linear_cka
from layerwise.metrics.resampling import draw_subset
from layerwise.metrics.spec import Activations, Array

BIASED, DEBIASED = "", "_debiased"
MOST_COMPARED = 10_000  # samples; of more a subsample is compared, whose vectors fit into memory three times


def similarity_records(
    own: Activations,
    final: Activations,
    readouts: Sequence[str],
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Compare every layer of a model, on the first view of every sample.

    Args:
        own: of the model.
        final: of the last checkpoint of its run, on the same samples in the same order.
        readouts: names.
        seed: of the subsample that is compared where there are more samples.
        progress: called with (done, total) layers.

    Returns:
        One record per readout: readout, n_available (N), n_samples (at most ``MOST_COMPARED``), layers. Each layer has
        layer, depth (= layer / L), ``stability`` (linear CKA to the same layer of ``final``) and ``layer_change`` (1 -
        linear CKA to the layer before; None at layer 0), each also ``_debiased``, and ``undefined`` (the reason) where one
        has no value.
    """
    available = own.n_samples
    chosen = draw_subset(available, MOST_COMPARED, seed)
    if chosen is not None:
        own, final = own.among(chosen), final.among(chosen)
    total, done = len(readouts) * (own.n_layers + 1), 0
    records = []
    for readout in readouts:
        layers: list[dict[str, Any]] = []
        before: Array | None = None
        samples = 0
        for layer in range(own.n_layers + 1):
            rows = own.pooled(readout, layer)
            samples = len(rows)
            entry = {"layer": layer, "depth": layer / own.n_layers}
            layers.append(entry | _compared(rows, final.pooled(readout, layer), before))
            before, done = rows, done + 1
            if progress is not None:
                progress(done, total)
        records.append({"readout": readout, "n_available": available, "n_samples": samples, "layers": layers})
    return records


def _compared(rows: Array, last: Array, before: Array | None) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for suffix in (BIASED, DEBIASED):
        entry |= _value(f"stability{suffix}", rows, last, suffix == DEBIASED)
        change = f"layer_change{suffix}"
        found = {change: None} if before is None else _value(change, rows, before, suffix == DEBIASED)
        entry |= {key: 1.0 - value if isinstance(value, float) else value for key, value in found.items()}
    return entry


def _value(name: str, rows: Array, other: Array, debiased: bool) -> dict[str, Any]:
    try:
        return {name: linear_cka(rows, other, debiased)}
    except UndefinedMetric as error:
        return {name: None, "undefined": str(error)}
