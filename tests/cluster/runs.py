"""The tiny study on a cluster: fewer models and metrics, the real profile, and faults that tests switch on."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from tests.workflow import tiny
from tests.workflow.conftest import Run, Workspace

METRICS = ("prompt_entropy", "curvature", "effective_rank")
TARGETS = [*(f"results/metrics/neox/texts/{metric}.json" for metric in METRICS), "results/tasks/neox/topic.json"]
PROFILE = ["--workflow-profile", "profiles/slurm", "--latency-wait", "10"]
STATUS = ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "3"]

# A metric job says which Slurm job it is; it waits while a file says so, or takes much memory.
FAULTS = """
def _fault(metric):
    import os, time
    from pathlib import Path

    Path(f"job-{metric}").write_text(os.environ.get("SLURM_JOB_ID", ""))
    if Path(f"hungry-{metric}").exists():
        held = bytearray(os.urandom(2**20)) * 1000
        time.sleep(8)
    while Path(f"stuck-{metric}").exists():
        time.sleep(0.2)


if "snakemake" in globals():
    _fault(snakemake.wildcards.metric)
"""


def study() -> dict[str, Any]:
    """Return the configuration: one model, one dataset, three metrics, one task."""
    study = tiny.study()
    study["models"] = study["models"][:1]
    study["datasets"][0]["derive"] = []
    study["metrics"] = [{"name": name, "subsamples": 4, "null_draws": 4} for name in METRICS]
    return study | {"task_metrics": []}


def add_faults(workspace: Workspace) -> None:
    """Put the faults into the adapter of the metric jobs of this copy."""
    adapter = workspace.path("workflow_scripts/compute_metric.py")
    text, marker = adapter.read_text("utf-8"), '\nif "snakemake" in globals():'
    assert text.count(marker) == 1
    adapter.write_text(text.replace(marker, FAULTS + marker), "utf-8")


@dataclasses.dataclass
class Started:
    """A run that goes on while the test does something to it."""

    process: subprocess.Popen[str]
    log: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()  # no effect on one that has ended

    def finish(self, seconds: float = 300) -> Run:
        """Wait for its end."""
        status = self.process.wait(timeout=seconds)
        return Run(status, self.log.read_text("utf-8"))


def start(workspace: Workspace, *options: str) -> Started:
    """Start the targets on the cluster."""
    log = workspace.path("run.txt")
    command = [sys.executable, "-m", "snakemake", *PROFILE, *STATUS, *options, "--", *TARGETS]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with log.open("w") as opened:
        process = subprocess.Popen(command, cwd=workspace.folder, stdout=opened, stderr=opened, env=environment, text=True)
    return Started(process, log)


def records(workspace: Workspace) -> dict[str, Any]:
    """Return every JSON value below results, by path."""
    results = workspace.path("results")
    return {str(path.relative_to(results)): json.loads(path.read_text("utf-8")) for path in results.rglob("*.json")}
