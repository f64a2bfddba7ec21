"""What the hub does not give: one sentence from the rule, nothing half-written, and the rest of the study goes on."""

from typing import Any

from tests import builders
from tests.hub_server import Hub, serve
from tests.workflow.conftest import Workspace

GATED = "datasets/org/gated is gated: accept its conditions at https://huggingface.co/datasets/org/gated and set HF_TOKEN"
ABSENT = "org/neox has no revision 'step9'; https://huggingface.co/org/neox/commits/main lists its commits"


def study(commit: str) -> dict[str, Any]:
    table = {"repository": "org/gated", "revision": commit, "files": ["texts.csv"]}
    return {
        "title": "refused",
        "models": [{"name": "neox", "source": {"hub": "org/neox"}, "revisions": ["step1", "step9"], "max_tokens": 32}],
        "datasets": [{"name": "texts", "source": {"hub_table": table}}],
        "headline_dataset": "texts",
        "metrics": [{"name": "dataset_entropy"}],
    }


def test_an_absent_checkpoint_and_a_gated_dataset_stop_what_needs_them(workspace: Workspace) -> None:
    hub = Hub()
    builders.save(workspace.path("input/tiny"), "neox")
    hub.add("org/neox", workspace.path("input/tiny"), "step1")
    commit = hub.add("org/gated", {"texts.csv": b"text\none text\nanother text\n"})
    hub.fail.append(("datasets/org/gated", 401, "GatedRepo"))
    workspace.configure(study(commit))
    with serve(hub):
        home = {"HF_HOME": str(workspace.path("home")), "HF_TOKEN": ""}
        run = workspace.snakemake("--keep-going", HF_HUB_OFFLINE="0", HF_ENDPOINT=hub.url, **home)
    assert run.status != 0
    for sentence in (f"prepare_dataset texts: {GATED}", f"download_model neox@step9: {ABSENT}"):
        assert sentence in run.output, run.output[-4000:]
    results = workspace.path("results")
    assert (results / "models/neox@step1/manifest.json").is_file()
    assert not (results / "models/neox@step9").exists() or not list((results / "models/neox@step9").iterdir())
    assert not list((results / "data").rglob("*.*"))
    assert not list(results.rglob("*.tmp"))
