"""Bad input at the door: one sentence, and nothing half-written."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.workflow import tiny
from tests.workflow.conftest import Workspace


def changed(**updates: Any) -> dict[str, Any]:
    return {**tiny.study(), **updates}


def with_model(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return changed(models=[{"name": "neox", "source": source, "max_tokens": 32, **more}])


CONFIGS = {
    "unknown key": (changed(modls=[]), "modls is an unknown key; did you mean 'models'?"),
    "unknown metric": (changed(metrics=[{"name": "dine"}], task_metrics=[]), "did you mean dime?"),
    "bad name": (changed(models=[{"name": "../x", "source": {"path": "y"}}]), "'../x' is not a usable name"),
    "two of one name": (
        changed(models=[{"name": n, "source": {"path": "input/neox"}} for n in ("a", "A")]),
        "would share one file",
    ),
    "unknown dataset": (changed(tasks=[{**tiny.study()["tasks"][0], "dataset": "txts"}]), "'txts', which is not in"),
    "two sources": (with_model({"path": "a", "package": "b"}), "write exactly one of"),
    "wrong dtype": (with_model({"path": "input/neox"}, dtype="float8"), "'float32', 'bfloat16' or 'float16'"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_wrong_config_stops_before_any_job(finished: Workspace, case: str) -> None:
    config, sentence = CONFIGS[case]
    finished.configure(config)
    try:
        run = finished.snakemake("-n")
    finally:
        finished.configure(tiny.study())
    assert run.status != 0
    assert sentence in run.output
    assert "Traceback" not in run.output


def test_a_config_that_runs_code_is_refused(finished: Workspace) -> None:
    path = finished.path("config.yaml")
    path.write_text("__use_yte__: true\n" + path.read_text("utf-8"), "utf-8")
    try:
        run = finished.snakemake("-n")
    finally:
        finished.configure(tiny.study())
    assert run.status != 0
    assert "write plain YAML instead" in run.output


def missing_column(workspace: Workspace) -> tuple[dict[str, Any], str]:
    return changed(tasks=[{**tiny.study()["tasks"][0], "label": "tpoic"}]), "no column 'tpoic'"


def empty_text(workspace: Workspace) -> tuple[dict[str, Any], str]:
    with workspace.path("input/texts.csv").open("a") as file:
        file.write(" ,a,g1\n")
    return tiny.study(), "the text of sample 'row-60' is empty"


def duplicate_ids(workspace: Workspace) -> tuple[dict[str, Any], str]:
    config = tiny.study()
    config["datasets"][0]["source"]["table"]["id"] = "group"
    return config, "id 'g0' occurs more than once"


def no_package(workspace: Workspace) -> tuple[dict[str, Any], str]:
    return with_model({"package": "no-such-package", "file": "a.gguf"}), "package 'no-such-package' is not installed"


def no_file_in_package(workspace: Workspace) -> tuple[dict[str, Any], str]:
    return with_model({"package": "numpy", "file": "numpy/model.gguf"}), "holds no 'numpy/model.gguf'"


def not_gguf(workspace: Workspace) -> tuple[dict[str, Any], str]:
    return with_model({"package": "numpy", "file": "numpy/__init__.py"}), "is not a GGUF file"


def pickled(workspace: Workspace) -> tuple[dict[str, Any], str]:
    folder = workspace.path("input/neox")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    return tiny.study(), "pickled weights only"


def corrupt(workspace: Workspace) -> tuple[dict[str, Any], str]:
    weights = workspace.path("input/neox/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    return tiny.study(), "cannot be loaded from"


def remote_code(workspace: Workspace) -> tuple[dict[str, Any], str]:
    path = workspace.path("input/neox/config.json")
    path.write_text(path.read_text().replace("{", '{"auto_map": {"AutoModel": "canary.Model"},', 1))
    path.with_name("canary.py").write_text("raise SystemExit('the canary ran')\n")
    return tiny.study(), "asks to run code of its own ('auto_map')"


def too_long(workspace: Workspace) -> tuple[dict[str, Any], str]:
    return with_model({"path": "input/neox"}, **{}) | {
        "models": [{"name": "neox", "source": {"path": "input/neox"}, "max_tokens": 65}]
    }, "write 'max_tokens: 64' or fewer"


CASES = (
    missing_column,
    empty_text,
    duplicate_ids,
    no_package,
    no_file_in_package,
    not_gguf,
    pickled,
    corrupt,
    remote_code,
    too_long,
)


@pytest.mark.parametrize("case", CASES)
def test_a_rule_says_one_sentence_and_leaves_nothing_half_written(workspace: Workspace, case: Any) -> None:
    config, sentence = case(workspace)
    workspace.configure(config)
    goal = "results/tasks/neox/topic.json" if case is missing_column else "results/activations/neox/texts.h5"
    run = workspace.snakemake(goal)
    assert run.status != 0
    said = [line for line in run.output.splitlines() if sentence in line]
    assert said, run.output[-3000:]
    assert "the canary ran" not in run.output
    assert not workspace.path(goal).exists()
    assert not list(workspace.path("results").rglob("*.tmp"))
    assert any(sentence in log.read_text() for log in workspace.path("results/logs").rglob("*.log"))


def test_a_metric_with_too_few_samples_is_recorded_as_undefined(workspace: Workspace) -> None:
    config = copy.deepcopy(tiny.study())
    config["datasets"][0] |= {"sample": {"n": 2}, "derive": []}
    config |= {"tasks": [], "task_metrics": [], "metrics": [{"name": "dataset_entropy"}], "models": config["models"][:1]}
    config["datasets"].append({"name": "more", "source": {"table": {"path": "input/texts.csv"}}, "metrics": []})
    workspace.configure(config)
    run = workspace.snakemake("results/tables/missing.csv")
    assert run.status == 0, run.output[-3000:]
    missing = workspace.path("results/tables/missing.csv").read_text()
    assert "dataset_entropy" in missing
    assert "2 samples" in missing


def test_a_truncated_activation_file_is_refused(finished: Workspace, tmp_path: Path) -> None:
    from layerwise.errors import FileError
    from layerwise.store import Activations

    whole = finished.path("results/activations/neox/texts.h5").read_bytes()
    cut = tmp_path / "texts.h5"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="delete it and run again"):
        Activations(cut)
