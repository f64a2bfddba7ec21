"""Rule record_study: what the study was made of, as one file for a supplement, and a config that runs it again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise.atomic import write_text
from layerwise.packages import file_digest
from layerwise.progress import Progress, rule_log
from layerwise.provenance import PACKAGE
from layerwise.records import read_record, write_record
from layerwise.study_record import as_yaml, commit, machine, packages, without_home

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(
    outputs: dict[str, str], inputs: dict[str, list[str]], study: dict[str, Any], code: str, progress: Progress
) -> None:
    """Write both files; ``study`` holds ``resolved`` and ``runnable`` configs and the ``templates`` by dataset."""
    home, total = Path.home(), sum(map(len, inputs.values()))
    data = [read_record(path, "name") for path in inputs["data"]]
    tables = {}
    for done, path in enumerate(inputs["tables"], total - len(inputs["tables"]) + 1):
        tables[path] = file_digest(path)
        progress(done, total)
    record = {
        "title": study["resolved"]["title"],
        "seed": study["resolved"]["seed"],
        "code": {"digest": code, "git": commit(PACKAGE.parents[1])},
        "config": study["resolved"],
        "models": [read_record(path, "name", "digest") for path in inputs["models"]],
        "data": [entry | {"template": study["templates"].get(entry["name"], "")} for entry in data],
        "tables": tables,
        "machine": machine(),
        "packages": packages(),
    }
    write_text(outputs["config"], as_yaml(without_home(study["runnable"], home)))
    write_record(outputs["study"], without_home(record, home))


if "snakemake" in globals():
    with rule_log(snakemake.log[0], "record_study") as report:
        files = {name: list(snakemake.input.get(name, [])) for name in ("models", "data", "tables")}
        main(dict(snakemake.output.items()), files, snakemake.params.study, snakemake.params.code, report)
