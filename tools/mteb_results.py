"""Write task records in mteb's own result format, which mteb.ResultCache and mteb's leaderboard tools read.

Usage: python tools/mteb_results.py [--output results/mteb] results/tasks/MODEL ...

One file per layer, readout and task: OUTPUT/results/layerwise__MODEL/REVISION/experiments/layer_L__readout_READOUT/TASK.json
with model_meta.json beside it, where ``mteb.ResultCache(OUTPUT).load_results(load_experiments="match_name")`` finds them.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from layerwise.errors import LayerwiseError
from layerwise.records import read_record
from mteb.models.model_meta import ModelMeta

FIELDS = ("model", "task", "readouts", "provenance", "data_revision")


def main(arguments: list[str]) -> int:
    """Write the results of the models whose record folders are named; return 1 where there is nothing to write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=Path("results/mteb"))
    options = parser.parse_args(arguments)
    try:
        written = sum(
            write_record(file, options.output) for folder in options.folders for file in sorted(folder.glob("*.json"))
        )
    except LayerwiseError as error:
        print(f"mteb_results: {error}", file=sys.stderr)
        return 1
    if not written:
        print(
            f"mteb_results: {', '.join(map(str, options.folders))} hold no record of a task that mteb scored.",
            file=sys.stderr,
        )
        return 1
    print(f"{written} result files in {options.output}")
    return 0


def write_record(path: Path, output: Path) -> int:
    """Write one file per readout and layer of the record at ``path``; return their number (0: mteb did not score it)."""
    record = read_record(path, *FIELDS)
    facts = record.get("benchmark")
    if not facts:
        return 0
    revision = safe(record.get("model_revision") or "no_revision_available")
    base = output / "results" / f"layerwise__{safe(record['model'])}" / revision / "experiments"
    count = 0
    for readout, layers in record["readouts"].items():
        for layer in layers:
            described, experiment = model_meta(record["model"], revision, readout, layer["layer"])
            folder = base / experiment
            folder.mkdir(parents=True, exist_ok=True)
            dump(folder / f"{facts['task']}.json", task_result(record, facts, layer))
            dump(folder / "model_meta.json", described)
            count += 1
    return count


def task_result(record: dict[str, Any], facts: dict[str, Any], layer: dict[str, Any]) -> dict[str, Any]:
    """Return what mteb writes about a task: all scores of every subset. Undefined scores are NaN, as in mteb's files."""
    scores = [
        {**undefined(result), "hf_subset": subset, "languages": facts["languages"][subset]}
        for subset, result in layer["results"].items()
    ]
    return {
        "dataset_revision": facts["revision"],
        "task_name": facts["task"],
        "mteb_version": record["provenance"]["versions"]["mteb"],
        "scores": {facts["split"]: scores},
        "evaluation_time": None,
        "kg_co2_emissions": None,
    }


def model_meta(model: str, revision: str, readout: str, layer: int) -> tuple[dict[str, Any], str]:
    """Return mteb's description of a model, readout and layer being the arguments of an experiment, and its folder."""
    update = {"name": f"layerwise/{model}", "revision": revision, "experiment_kwargs": {"readout": readout, "layer": layer}}
    meta = ModelMeta.create_empty().model_copy(update=update)
    return meta.to_dict(), str(meta.experiment_name)


def undefined(value: Any) -> Any:  # noqa: ANN401 - a part of a result
    """Return a result with NaN where the record has none."""
    if isinstance(value, dict):
        return {key: undefined(part) for key, part in value.items()}
    if isinstance(value, list):
        return [undefined(part) for part in value]
    return float("nan") if value is None else value


def safe(name: str) -> str:
    """Return a name as one part of a path."""
    return re.sub(r"[^A-Za-z0-9._@-]", "_", name)


def dump(path: Path, content: dict[str, Any]) -> None:
    """Write JSON."""
    path.write_text(json.dumps(content, indent=2, default=str, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
