"""Rule cost_layers: parameters and operations of every model cut after each of its layers, on the samples of each task."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from layerwise.atomic import atomic_path
from layerwise.costs.layers import COLUMNS, blocks_of, cost_rows
from layerwise.progress import Progress, rule_log
from layerwise.records import read_record

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(output: str, models: dict[str, str], tasks: list[str], loaders: dict[str, str], progress: Progress) -> None:
    """Write layer_costs.csv from the manifest of every model and the JSON of every task."""
    blocks = {}
    for name, manifest in models.items():
        width = read_record(manifest, "hidden_size")["hidden_size"]
        blocks[name] = blocks_of(Path(manifest).parent / "weights", loaders[name], width or 0)
    frames = [pd.DataFrame(columns=[*COLUMNS])]
    for done, path in enumerate(tasks, 1):
        record = read_record(path, "model", "task", "tokens", "readouts")
        frames.append(cost_rows(blocks[record["model"]], record))
        progress(done, len(tasks))
    with atomic_path(output) as temporary:
        pd.concat(frames[1:] or frames).to_csv(temporary, index=False)


if "snakemake" in globals():
    with rule_log(snakemake.log[0], "cost_layers") as report:
        manifests = {Path(path).parent.name: path for path in snakemake.input.models}
        main(snakemake.output[0], manifests, list(snakemake.input.tasks), snakemake.params.loaders, report)
