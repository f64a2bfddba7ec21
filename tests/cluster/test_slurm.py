"""The workflow on a real Slurm of one node: it ends well, and what a cluster does to jobs does no harm."""

import contextlib
import time
from collections.abc import Callable

import psutil
import pytest
from layerwise.store import Activations

from tests.cluster.runs import METRICS, TARGETS, Started, add_faults, records, start, study
from tests.cluster.slurm import Slurm, wait_until
from tests.workflow.conftest import Workspace, make_workspace

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, slurm: Slurm) -> Workspace:
    """The study as one machine computes it, without the cluster."""
    workspace = make_workspace(tmp_path_factory.mktemp("local") / "study")
    workspace.configure(study())
    run = workspace.snakemake("--", *TARGETS)
    assert run.status == 0, run.output[-3000:]
    return workspace


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory, slurm: Slurm) -> Workspace:
    """The study on the cluster; the first test runs it."""
    workspace = make_workspace(tmp_path_factory.mktemp("remote") / "study")
    workspace.configure(study())
    return workspace


def watched(run: Started, act: Callable[[], None], seconds: float = 280) -> None:
    """Call ``act`` until the run has ended."""
    end = time.monotonic() + seconds
    while run.process.poll() is None:
        assert time.monotonic() < end, run.log.read_text("utf-8")[-3000:]
        act()
        time.sleep(0.3)


def no_leftovers(workspace: Workspace) -> bool:
    """Whether nothing half-written lies under the name of a result: every JSON file can be read, every array is whole."""
    for path in workspace.path("results").rglob("*.h5"):
        with Activations(path):
            pass  # refuses a file that is not complete
    return bool(records(workspace))


def test_a_cluster_gives_what_one_machine_gives(slurm: Slurm, local: Workspace, remote: Workspace) -> None:
    with start(remote, "--resources", "lane=1", "gpu=2") as started:
        run = started.finish()
    assert run.status == 0, run.output[-5000:]
    assert records(remote) == records(local)
    jobs = slurm.jobs().values()
    assert {job["state"] for job in jobs} <= {"COMPLETED", "COMPLETING"}
    ran = [job["comment"] for job in jobs]
    assert sum("extract_activations" in comment for comment in ran) == 2
    assert sum("compute_metric" in comment for comment in ran) == 1, "the metrics were not grouped"
    assert not any("download_model" in comment or "prepare" in comment for comment in ran), "a local rule was submitted"
    metrics = next(job for job in jobs if "compute_metric" in job["comment"])
    assert (metrics["memory"], metrics["cpus"]) == ("900M", "1"), "the group asked for more than its jobs take in turn"
    given = {job["comment"].split("_wildcards_")[0]: job["gpus"] for job in jobs}
    assert given.pop("rule_extract_activations") == "gres:gpu:1"
    assert set(given.values()) == {"N/A"}, "a rule that runs no model asked for a GPU"


def test_a_job_over_memory_or_time_is_tried_again_with_more_and_one_that_is_cancelled_fails(
    slurm: Slurm, local: Workspace, remote: Workspace
) -> None:
    add_faults(remote)
    for fault in ("hungry-prompt_entropy", "stuck-curvature", "stuck-effective_rank"):
        remote.path(fault).touch()
    before = set(slurm.jobs())
    alone = ["--group-components", "metrics=1", "--retries", "1", "--set-resources", "compute_metric:runtime=attempt"]
    cancelled: set[str] = set()

    def act() -> None:
        jobs = slurm.jobs()
        if any(job["state"] == "TIMEOUT" for job in jobs.values()):
            remote.path("stuck-curvature").unlink(missing_ok=True)
        file = remote.path("job-effective_rank")
        job = file.read_text() if file.is_file() else ""
        if job and job not in cancelled and jobs[job]["state"] == "RUNNING":
            slurm.run("scancel", job)
            cancelled.add(job)

    with start(remote, *alone) as run:
        watched(run, act)
        ended = run.finish()
    jobs = {number: job for number, job in slurm.jobs().items() if number not in before}
    states = sorted(job["state"] for job in jobs.values())
    assert ended.status == 1, ended.output[-5000:]
    assert len(cancelled) == 2
    assert states.count("TIMEOUT") == 1
    assert states.count("COMPLETED") == 2, states
    assert len(jobs) == 6
    for words in ("DUE TO TIME LIMIT", "exceeded memory limit", "CANCELLED AT"):
        assert words in ended.output, ended.output[-5000:]
    assert {job["memory"] for job in jobs.values()} == {"900M", "1700M"}
    present = [metric for metric in METRICS if remote.path(f"results/metrics/neox/texts/{metric}.json").is_file()]
    assert present == ["prompt_entropy", "curvature"]
    assert no_leftovers(remote)


def without_code(found: dict) -> dict:
    """Return the records without the digest of the code, which the faults change."""
    return {name: {k: v for k, v in record.items() if k != "provenance"} for name, record in found.items()}


def test_the_next_run_heals_and_a_node_that_dies_costs_time_only(slurm: Slurm, local: Workspace, remote: Workspace) -> None:
    remote.path("hungry-prompt_entropy").unlink()
    for metric in METRICS:
        remote.path(f"stuck-{metric}").touch()
        remote.path(f"job-{metric}").unlink(missing_ok=True)
    with start(remote, "--forcerun", "compute_metric") as run:
        wait_until(lambda: any(remote.folder.glob("job-*")), "a job runs", 90)
        slurm.kill_node(*steps())
        for metric in METRICS:
            remote.path(f"stuck-{metric}").unlink()
        wait_until(lambda: slurm.node_state().startswith("down"), "the node is missed", 60)
        slurm.start_node()
        ended = run.finish()
    assert ended.status == 0, ended.output[-5000:]
    assert without_code(records(remote)) == without_code(records(local))
    assert no_leftovers(remote)


def steps() -> list[int]:
    """Return the processes of the jobs that run now."""
    found: list[int] = []
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.info["name"] == "slurmstepd":
                found += [child.pid for child in process.children(recursive=True)] + [process.pid]
    return found
