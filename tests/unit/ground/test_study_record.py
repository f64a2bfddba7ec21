"""The record of a study: a config that gives it again, and nothing in it that names a person or a secret."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from layerwise.config import load_study
from layerwise.study_record import commit, machine, packages, runnable, without_home

ROOT = Path(__file__).parents[3]
CONFIGS = [ROOT / "config.yaml", *sorted((ROOT / "configs").glob("*.yaml"))]


def study(path: Path) -> dict[str, Any]:
    whole = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
    return whole if path.parent == ROOT else whole | {"export": []} | yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_config_that_runs_again_is_the_same_study(path: Path) -> None:
    first = load_study(study(path))
    text = yaml.safe_dump(runnable(first), sort_keys=False)
    assert load_study(yaml.safe_load(text)) == first
    assert json.dumps(runnable(load_study(yaml.safe_load(text)))) == json.dumps(runnable(first))  # in the same order too


def test_defaults_are_written_out_where_they_may_be() -> None:
    entry = {"name": "t", "type": "mteb", "task": "STS12"}
    config = {"models": [{"name": "m", "source": {"path": "m"}}], "datasets": [], "tasks": [entry]}
    made = runnable(load_study(config))
    assert (made["models"][0]["max_tokens"], made["storage"], made["headline_readout"]) == (256, "float32", "mean_normed")
    assert made["tasks"][0] == {**entry, "sample": 1000, "seed": 0}  # mteb's protocol takes no other key
    assert [readout["name"] for readout in made["readouts"]] == ["mean", "mean_normed", "mean_skip_first", "weighted_mean"]


def test_the_home_of_a_person_is_a_tilde() -> None:
    home = Path("/home/ada")
    found = without_home({"a": ["/home/ada/m", {"b": "/home/ada"}], "n": 1, "o": "/home/adam/x", "p": None}, home)
    assert found == {"a": ["~/m", {"b": "~"}], "n": 1, "o": "/home/adam/x", "p": None}
    assert without_home("/data/x", Path("/")) == "/data/x"


def test_machine_and_packages_are_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    assert set(machine()) == {"python", "system", "architecture", "processor", "gpus"}
    assert machine()["processor"] not in ("", "unknown") or machine()["system"] != "Linux"
    assert {"torch", "transformers", "snakemake", "layerwise"} <= set(packages())
    assert "hf_canary" not in str((machine(), packages()))
    assert Path("/proc/sys/kernel/hostname").read_text().strip() not in str(machine())


def test_the_commit_is_that_of_the_checkout_and_of_no_folder_around_it(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert commit(tmp_path) is None
    git("init", "-q")
    (tmp_path / "inside").mkdir()
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "first")
    assert commit(tmp_path) == {"commit": git("rev-parse", "HEAD"), "modified": False}
    assert commit(tmp_path / "inside") is None
    (tmp_path / "a").write_text("2")
    assert commit(tmp_path)["modified"] is True
