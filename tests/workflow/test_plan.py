"""`make plan` against what the finished tiny study used; resources as Snakemake sees them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from tests.workflow.conftest import Workspace
from tools import plan


@pytest.fixture
def fresh(finished: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same study in a folder where nothing has run."""
    shutil.copy(finished.path("config.yaml"), tmp_path)
    shutil.copytree(finished.path("input"), tmp_path / "input")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(folder: Path) -> list[plan.Cell]:
    study = plan.load_study(plan.read_config([]))
    drafts = plan.Drafts(study, plan.dataset_plans(study), folder / "drafts")
    return list(plan.cells(study, drafts, plan.known_models(study)))


def test_the_plan_comes_true(finished: Workspace, fresh: Path) -> None:
    found = planned(fresh)
    files = sorted(finished.path("results/activations").glob("*/*.h5"))
    assert sorted((cell.model, cell.dataset) for cell in found) == [(file.parent.name, file.stem) for file in files]
    for cell in found:
        path = finished.path(f"results/activations/{cell.model}/{cell.dataset}.h5")
        with h5py.File(path) as file:
            lengths = file["n_tokens"][:]
        assert cell.tokens.rows == len(lengths)
        assert cell.tokens.total == pytest.approx(lengths.sum(), rel=0.2)
        assert cell.tokens.longest == pytest.approx(lengths.max(), rel=0.3)
        assert cell.disk == pytest.approx(path.stat().st_size, rel=0.2)
    cell = next(cell for cell in found if (cell.model, cell.dataset) == ("neox", "texts"))
    assert cell.mib == pytest.approx(peak_mib(finished, "neox", "texts"), rel=0.2)


def peak_mib(workspace: Workspace, model: str, dataset: str) -> float:
    """Return the peak memory of an extraction in MiB, which the benchmarks of short jobs miss: they sample it.

    `ru_maxrss` would not do: Linux carries it over fork and exec, so that it starts at the peak of pytest itself.
    """
    code = f"""
import re, sys
from pathlib import Path
sys.path.insert(0, "workflow_scripts")
import extract_activations
from layerwise.config import load_study
from tools.plan import read_config
study = load_study(read_config([]))
entry = next(entry for entry in study.models if entry.name == {model!r}).model_dump()
readouts = [readout.model_dump() for readout in study.readouts]
collect = {{"readouts": readouts, "recipes": list(study.recipes), "taps": ["residual"], "storage": "float32",
           "compression": None, "token_transform": {{}}, "template": "", "code": ""}}
data = "results/data/{dataset}"
inputs = {{"model": "results/models/{model}/manifest.json", "samples": data + "/samples.parquet",
          "dataset": data + "/manifest.json"}}
extract_activations.main(sys.argv[1], inputs, entry, collect, lambda done, total: None)
print(int(re.search("VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""
    output = workspace.path("peak.h5")
    command = [sys.executable, "-c", code, str(output)]
    environment = {**os.environ, "PYTHONPATH": str(workspace.folder)}
    try:
        done = subprocess.run(
            command, cwd=workspace.folder, capture_output=True, text=True, check=True, env=environment, timeout=200
        )
    finally:
        output.unlink(missing_ok=True)
    return float(done.stdout.split()[-1])


def test_the_plan_is_printed_and_what_is_there_is_not_needed_again(
    finished: Workspace, fresh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan.main([]) == 0
    first = capsys.readouterr().out
    for word in ("neox", "texts~views", "topic~sample", "TFLOP", "where there is one: extract_activations;"):
        assert word in first
    monkeypatch.chdir(finished.folder)
    assert plan.main([]) == 0
    assert "Disk: 0 MB more are needed" in capsys.readouterr().out


def test_a_disk_that_cannot_hold_it_is_refused(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**6, 10**6, 1000))
    assert plan.main([]) == 1
    assert "and 0 MB are free; free some space" in capsys.readouterr().err


def test_a_hub_model_is_unknown_until_it_is_downloaded(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = Path("config.yaml").read_text("utf-8")
    Path("config.yaml").write_text(config.replace("path: input/neox", "hub: nobody/nothing"), "utf-8")
    assert plan.main([]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"neox +texts +unknown until downloaded", printed)
    assert "Disk: at least" in printed


def test_a_wrong_config_is_one_sentence(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("more.yaml").write_text("metrcs: []\n", "utf-8")
    assert plan.main(["more.yaml"]) == 1
    assert "metrcs" in capsys.readouterr().err


def test_only_rules_that_run_a_model_ask_for_gpus_and_only_where_some_are_offered(
    finished: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    asked = {}
    for options in ([], ["--resources", "gpu=1"]):
        run = finished.snakemake("-n", "--forceall", *options)
        assert run.status == 0, run.output[-2000:]
        blocks = re.findall(r"^rule (\w+):\n((?: .*\n)+)", run.output, re.M)
        asked[bool(options)] = {rule for rule, text in blocks if re.search(r"gpu=[1-9]", text)}
    assert asked == {False: set(), True: {"extract_activations"}}
