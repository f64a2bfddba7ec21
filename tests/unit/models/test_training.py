"""Miniatures: every objective trains, saves what its loader reads, gives the same bytes again; a bad run leaves nothing."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from layerwise.config_training import OBJECTIVES
from layerwise.errors import DataError, LayerwiseError, ModelError
from layerwise.models.manifest import verified_weights
from layerwise.models.registry import load_loader
from layerwise.models.snapshot import download
from layerwise.models.training.run import Run, train
from torch import Tensor
from training_inputs import options, pictures, run, texts


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """training.json of a tiny run of every objective."""
    root = tmp_path_factory.mktemp("runs")
    return {objective: run(root / objective, objective) for objective in OBJECTIVES}


def fetched(record: Path, step: int, **changes: Any) -> Path:
    """Make the model of one checkpoint as the rule does; return its manifest."""
    facts = json.loads(record.read_text())
    name = f"{facts['name']}@step{step}"
    manifest = record.parent.parent / name / "manifest.json"
    source = {"train": facts["options"], "step": step, **changes}
    download(manifest, name, source, record, OBJECTIVES[facts["objective"]][1])
    return manifest


def states(manifest: Path, objective: str) -> list[Tensor]:
    """Every layer of the first samples, through the ordinary loader."""
    weights, record = verified_weights(manifest)
    modality, loader = OBJECTIVES[objective]
    entry = {"name": record["name"], "dtype": "float32", "max_tokens": 16, "attention": "model"}
    model = load_loader(loader).load_entry(weights, entry | {"preprocessing": "model", "image_size": None}, "cpu")
    folder = manifest.parent.parent
    samples = texts() if modality == "text" else pictures(folder)
    found: list[Tensor] = []
    model.run(model.prepare(samples, folder).batch([0, 1, 2]), lambda _i, states, *_tap: found.append(states.clone()))
    return found


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_checkpoint_is_an_ordinary_model(trained: dict[str, Path], objective: str) -> None:
    record = json.loads(trained[objective].read_text())
    assert [point["step"] for point in record["checkpoints"]] == [0, 1, 3]
    assert (record["name"], record["objective"], record["n_train"], record["n_heldout"]) == ("mini", objective, 36, 4)
    layers = {}
    for step in (0, 3):
        manifest = fetched(trained[objective], step)
        facts = json.loads(manifest.read_text())
        point = next(point for point in record["checkpoints"] if point["step"] == step)
        made = {key: facts["conversion"][key] for key in ("from", "run", "step", "seed", "train_loss", "heldout_loss")}
        losses = {key: point[key] for key in ("train_loss", "heldout_loss")}
        assert made == {"from": "training", "run": "mini", "step": step, "seed": 0, **losses}
        assert facts["revision"].startswith("training:")
        layers[step] = states(manifest, objective)
    assert len(layers[0]) == 9
    assert all(torch.isfinite(layer).all() for layer in layers[3])
    assert all(layer.shape == layers[3][0].shape and layer.shape[-1] == 16 for layer in layers[3])
    assert not any(torch.equal(a, b) for a, b in zip(layers[0][1:], layers[3][1:], strict=True))
    assert {file.suffix for file in (manifest.parent / "weights").iterdir()} <= {".json", ".safetensors", ".txt"}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_run_is_reproducible_and_depends_on_its_seed(trained: dict[str, Path], objective: str, tmp_path: Path) -> None:
    torch.manual_seed(99)  # the state of the process plays no part
    again, other = run(tmp_path / "again", objective), run(tmp_path / "other", objective, seed=1)
    assert again.read_bytes() == trained[objective].read_bytes()
    sums = [json.loads(path.read_text())["checkpoints"][-1]["files"]["model.safetensors"] for path in (again, other)]
    assert sums[0] != sums[1]


@pytest.mark.parametrize("objective", ["causal_lm", "supervised"])
def test_a_short_run_beats_its_random_start_on_held_out_samples(objective: str, tmp_path: Path) -> None:
    changes = {"steps": 60, "checkpoints": [0, 60], "batch": 32, "blocks": 2, "width": 32, "learning_rate": 0.003}
    first, last = json.loads(run(tmp_path, objective, n=200, **changes).read_text())["checkpoints"]
    assert last["heldout_loss"] < 0.6 * first["heldout_loss"]
    assert last["train_loss"] < 0.6 * first["train_loss"]


def refused(folder: Path, objective: str, sentence: str, error: type[LayerwiseError], **changes: Any) -> None:
    with pytest.raises(error, match=sentence) as caught:
        run(folder, objective, **changes)
    assert "\n" not in str(caught.value)
    assert list((folder / "mini").iterdir()) == []  # neither a record nor a checkpoint that could pass as whole


@pytest.mark.parametrize("objective", ["causal_lm", "supervised", "aim"])
def test_a_run_that_diverges_stops_with_its_step_and_loss(objective: str, tmp_path: Path) -> None:
    run(tmp_path, objective)  # what an earlier run left is not taken for this one's
    (tmp_path / "mini" / "training.json").unlink()
    sentence = rf"{objective} on 'd': training diverged at step \d+ of 40 with loss \S+ \(the first was .*'learning_rate'"
    refused(tmp_path, objective, sentence, ModelError, steps=40, checkpoints=[0, 1, 40], learning_rate=1e6, blocks=2)


def test_a_loss_that_is_no_number_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from layerwise.models.training.next_token import NextToken

    plain, calls = NextToken.loss, []

    def breaking(self: NextToken, rows: Tensor, generator: torch.Generator) -> Tensor:
        calls.append(1)
        return plain(self, rows, generator) * (float("nan") if self.module.training and len(calls) > 6 else 1.0)

    monkeypatch.setattr(NextToken, "loss", breaking)
    refused(tmp_path, "causal_lm", r"diverged at step \d+ of 20 with loss nan", ModelError, steps=20, checkpoints=[0, 20])


def test_labels_that_are_not_there_are_named(tmp_path: Path) -> None:
    refused(tmp_path, "supervised", "there is no column 'digit' to learn; columns: id, image", DataError, label="digit")
    refused(tmp_path, "clip", "there is no column 'font' to write captions of", DataError, caption=["corner", "font"])


def test_too_few_samples_are_refused(tmp_path: Path) -> None:
    few: pd.DataFrame = texts(19)
    with pytest.raises(ModelError, match="the dataset has 19 samples to train on, 20 are needed"):
        train(tmp_path / "m" / "training.json", Run("m", options("causal_lm"), "x", {}), few, tmp_path)


def test_one_class_is_nothing_to_learn(tmp_path: Path) -> None:
    samples = pictures(tmp_path).assign(colour="red")
    with pytest.raises(DataError, match="column 'colour' has one class, 'red'"):
        train(tmp_path / "m" / "training.json", Run("m", options("supervised"), "x", {}), samples, tmp_path)


def test_an_altered_checkpoint_is_refused(trained: dict[str, Path], tmp_path: Path) -> None:
    record = run(tmp_path, "causal_lm")
    place = record.parent / "checkpoints" / "step1"
    (place / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"step1 config.json is missing or altered; delete .*training.json and run again"):
        fetched(record, 1)
    with pytest.raises(ModelError, match="of step 2 is missing"):
        fetched(record, 2)
    assert not list((tmp_path / "mini@step1").glob("*"))
