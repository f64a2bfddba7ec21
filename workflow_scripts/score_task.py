"""Rule score_task: scores of every layer and readout of a model on one task, looked up, not encoded again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise.progress import Progress, rule_log
from layerwise.provenance import provenance
from layerwise.records import read_record, write_record
from layerwise.store import Activations
from layerwise.tasks.registry import load_kind

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, activations: str, spec: str, code: str, seed: int, progress: Progress) -> None:
    """Score the layers in an activation file on the task whose spec.json is ``spec``."""
    kind = load_kind(read_record(spec, "options")["options"]["type"])
    files = kind.load(Path(spec).parent)
    origin = provenance(code, seed, *kind.VERSIONS)
    layers: dict[str, list[dict[str, Any]]] = {}
    items: dict[str, list[list[float]]] = {}
    with Activations(activations) as store:
        rows = {identifier: row for row, identifier in enumerate(store.ids)}
        cells = [(readout, layer) for readout in store.readouts for layer in range(store.n_layers + 1)]
        for done, (readout, layer) in enumerate(cells, 1):
            scored = kind.score(files, rows, store.rows(readout, layer))
            layers.setdefault(readout, []).append(
                {
                    "layer": layer,
                    "depth": layer / store.n_layers,
                    "main_score": next(iter(scored.scores.values())),
                    "scores": scored.scores,
                    "n_not_converged": scored.n_not_converged,
                }
            )
            items.setdefault(readout, []).append(scored.items)
            protocol = list(scored.scores)[-1]
            progress(done, len(cells))
        header = store.header
    outcome = {"protocol": protocol, "kind": kind.ITEM_KINDS[files.type], "gold": kind.gold(files), "readouts": items}
    record = {"model": header.model, "task": files.name, "type": files.type, "main_score": files.main_score}
    data = {"dataset_digest": header.dataset_digest, "data_revision": files.spec["digest"]}
    write_record(output, record | data | {"provenance": origin, "readouts": layers, "items": outcome})


if "snakemake" in globals():
    with rule_log(snakemake.log[0], f"score_task {snakemake.wildcards.task} of {snakemake.wildcards.model}") as report:
        main(
            snakemake.output[0],
            snakemake.input.activations,
            snakemake.input.spec,
            snakemake.params.code,
            snakemake.params.seed,
            report,
        )
