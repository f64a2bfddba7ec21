"""Export goes through Snakemake, and the worked example of docs/python.md runs on a finished study."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from sentence_transformers import SentenceTransformer

from tests.workflow.conftest import REPOSITORY, Workspace

EXPORTS = [
    {"model": "neox", "layer": "best:topic"},
    {"model": "bert", "layer": 2, "readout": "weighted_mean", "name": "bert-2"},
    {"model": "neox", "layer": "label-free:dime", "name": "neox-dime", "readout": "mean"},
]


def configure(workspace: Workspace, *exports: dict) -> str:
    path = workspace.path("export.yaml")
    path.write_text(yaml.safe_dump({"export": [*exports]}), "utf-8")
    return "export.yaml"


def test_an_export_follows_from_the_tables_and_loads(finished: Workspace) -> None:
    target = "results/export/{}/manifest.json"
    extra = configure(finished, *EXPORTS)
    wanted = ["--configfile", extra, "--", target.format("neox"), target.format("bert-2")]
    try:
        assert finished.pending(*wanted, target.format("neox-dime")) == {"export_model": 3}
        run = finished.snakemake(*wanted)
        assert run.status == 0, run.output[-3000:]
        assert run.jobs() == {"export_model": 2}  # nothing else is done anew
        for name in ("neox", "bert-2"):
            manifest = json.loads(finished.path(target.format(name)).read_text("utf-8"))
            assert manifest["verified"]["difference"] <= 1e-5
            folder = finished.path(f"results/export/{name}/model")
            model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            assert model.encode(["river stone"]).shape == (1, 32)
            assert "| topic |" in (folder / "README.md").read_text("utf-8")
        assert finished.pending(*wanted) == {}
    finally:
        shutil.rmtree(finished.path("results/export"), ignore_errors=True)
        finished.path(extra).unlink()


def test_an_export_of_an_unscored_task_is_refused_before_any_job(finished: Workspace) -> None:
    extra = configure(finished, {"model": "neox", "layer": "best:nothing"})
    run = finished.snakemake("-n", "--configfile", extra)
    finished.path(extra).unlink()
    assert run.status != 0
    assert "export 'neox': 'layer: best:nothing' names 'nothing', which is not in the config; known: topic" in run.output


def test_the_worked_example_runs(
    finished: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    text = Path(REPOSITORY / "docs" / "python.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    monkeypatch.chdir(finished.folder)
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), scope)
    printed = capsys.readouterr().out
    assert "neox x texts: 60 samples, layers 0..3, 32 numbers" in printed
    assert re.search(r"Spearman of entropy and score over 4 layers: -?\d\.\d\d|nan", printed)
    assert scope["frame"].shape == (4 * 60, 32)
