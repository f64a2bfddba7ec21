"""Which layer an entry means, what is refused before any job, and that a killed export leaves nothing that looks whole."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from layerwise.api import layer_scores
from layerwise.config import load_study
from layerwise.errors import ConfigError, FileError, ModelError
from layerwise.export import run
from layerwise.export.choose import chosen_layer, scores_at
from layerwise.export.form import form, tolerance
from layerwise.tables.frames import SCORE_COLUMNS
from layerwise.tables.selection import COLUMNS

from tests.unit.export.conftest import READOUTS, Bench

ENTRY = {"model": "m", "layer": 2, "readout": "mean"}
STUDY: dict[str, Any] = {
    "models": [
        {"name": "m", "source": {"path": "f"}},
        {"name": "v", "source": {"path": "f"}, "loader": "vision"},
        {"name": "c", "source": {"path": "f"}, "loader": "open_clip"},
    ],
    "datasets": [{"name": "d", "source": {"table": {"path": "a.csv"}}}],
    "tasks": [{"name": "t", "type": "classification", "dataset": "d", "label": "l", "train": 50}],
    "metrics": [{"name": "dime"}],
    "readouts": [
        {"name": "mean"},
        {"name": "mean_normed", "norm": "final"},
        {"name": "mean_skip_first", "tokens": "skip_first"},
        {"name": "wm", "pool": "weighted_mean"},
        {"name": "unit", "norm": "rms"},
    ],
}


def study(*entries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return copy.deepcopy(STUDY) | {"export": list(entries)} | changes


def test_an_entry_is_named_after_its_model_and_reads_the_normed_mean() -> None:
    entries = load_study(study({"model": "m", "layer": 3}, {"model": "m", "layer": "best:t", "name": "x"})).export
    assert [(e.name, e.layer, e.readout, e.chosen_by) for e in entries] == [
        ("m", 3, "mean_normed", ("", "")),
        ("x", "best:t", "mean_normed", ("best", "t")),
    ]
    assert load_study(study({"model": "v", "layer": "label-free:dime"})).export[0].chosen_by == ("label-free", "dime")


BAD = {
    "two of one name": ([{"model": "m", "layer": 1}, {"model": "m", "layer": 2}], "would share one file; rename one"),
    "unknown model": ([{"model": "x", "layer": 1}], "'model' names 'x', which is not in the config; known: m, v, c"),
    "unknown readout": ([{"model": "m", "layer": 1, "readout": "max"}], "'readout' names 'max'"),
    "unknown task": ([{"model": "m", "layer": "best:u"}], "'layer: best:u' names 'u', which is not in the config; known: t"),
    "unknown metric": ([{"model": "m", "layer": "label-free:u"}], "names 'u', which is not in the config; known: dime"),
    "layer 0": ([{"model": "m", "layer": 0}], "export: 0: layer: 0 is no layer; write a number from 1"),
    "yes": ([{"model": "m", "layer": True}], "True is no layer"),
    "a word": (
        [{"model": "m", "layer": "last"}],
        "'last' is no layer; write a number from 1, 'best:TASK' or 'label-free:METRIC'",
    ),
    "a key": ([{"model": "m", "layer": 1, "task": "t"}], "unknown key"),
    "open_clip": ([{"model": "c", "layer": 1}], "loader 'open_clip' has no standard folder of its own"),
    "skip first": (
        [{"model": "m", "layer": 1, "readout": "mean_skip_first"}],
        "readout 'mean_skip_first' leaves tokens out, which no standard pooling does; 'wm', a standard pooling, recovers",
    ),
    "rms": ([{"model": "v", "layer": 1, "readout": "unit"}], "readout 'unit' divides by the root mean square"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_exported_is_refused_in_one_sentence(case: str) -> None:
    entries, sentence = BAD[case]
    with pytest.raises(ConfigError) as caught:
        load_study(study(*entries))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_images_may_leave_their_class_token_out() -> None:
    assert load_study(study({"model": "v", "layer": 1, "readout": "mean_skip_first"})).export[0].name == "v"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, str]:
    common = {"model": "m", "type": "t", "protocol": "mteb", "readout": "mean", "tap": "residual"}
    curves = {"t": (0.1, 0.7, 0.9, 0.8), "u": (0.1, 0.2, 0.3, 0.4), "v": (0.9, 0.1, 0.2, 0.3)}
    rows = [
        common | {"task": task, "layer": layer, "score": score}
        for task, curve in curves.items()
        for layer, score in enumerate(curve)
    ]
    pd.DataFrame(rows, columns=[*SCORE_COLUMNS]).to_csv(tmp_path / "scores.csv", index=False)
    picks = []
    for metric, recipe, direction, layer, undefined in (
        ("dime", "", "theory", 3, ""),
        ("dime", "", "study", 1, ""),
        ("prompt_entropy", "raw", "study", 1, ""),
        ("prompt_entropy", "centre_unit_skip_first", "theory", 2, ""),
        ("lidar", "", "study", None, "constant on lee"),
    ):
        row = {
            "model": "m",
            "readout": "mean",
            "protocol": "primary",
            "variant": "paper",
            "n_tasks": 2,
            "metric_text": "own",
        }
        row |= {"metric": metric, "recipe": recipe, "direction": direction, "picked_layer": layer, "undefined": undefined}
        picks.append(row | {"selector": f"min_{metric}"})
    pd.DataFrame(picks, columns=[*COLUMNS]).to_csv(tmp_path / "layer_selection.csv", index=False)
    return {name: str(tmp_path / f"{name}.csv") for name in ("scores", "layer_selection")}


def test_the_layer_comes_from_the_entry_or_from_the_tables(tables: dict[str, str]) -> None:
    assert chosen_layer(ENTRY, ("", ""), {}) == (2, "given in the configuration")
    assert chosen_layer(ENTRY, ("best", "t"), tables)[0] == 2
    layer, how = chosen_layer(ENTRY, ("label-free", "dime"), tables)
    assert layer == 1
    assert "min_dime (direction of the study" in how
    assert chosen_layer(ENTRY, ("label-free", "prompt_entropy"), tables)[0] == 2  # the control recipe before raw
    with pytest.raises(ModelError, match=r"'lidar' picks no layer of model 'm' by readout 'mean' \(constant on lee\)"):
        chosen_layer(ENTRY, ("label-free", "lidar"), tables)
    with pytest.raises(ModelError, match=r"\(it is not in layer_selection\.csv\)"):
        chosen_layer(ENTRY, ("label-free", "curvature"), tables)
    layer, how = chosen_layer(ENTRY, ("best", "v"), tables)
    assert layer == 3  # layer 0 is no model
    assert "layer 0, the embeddings alone, scores higher" in how
    with pytest.raises(FileError, match="there are no scores of task 'x'"):
        chosen_layer(ENTRY, ("best", "x"), tables)
    Path(tables["layer_selection"]).write_text("model\nm\n")
    with pytest.raises(FileError, match=r"not a readable layer_selection\.csv"):
        chosen_layer(ENTRY, ("label-free", "dime"), tables)


def test_scores_of_the_card_are_of_every_task(tables: dict[str, str]) -> None:
    found = scores_at(layer_scores(tables["scores"]), "m", "mean", 2)
    assert found == {"t": {"layer": 0.9, "last": 0.8}, "u": {"layer": 0.3, "last": 0.4}, "v": {"layer": 0.2, "last": 0.3}}
    assert scores_at(layer_scores(tables["scores"]), "m", "mean_normed", 2) == {}


def test_forms_and_tolerances() -> None:
    assert form(2, 3, READOUTS["mean"], True, "text").kept == 3
    assert form(2, 3, READOUTS["mean"], True, "image").kept == 2
    assert form(3, 3, READOUTS["mean"], False, "text").kept == 3
    for layer, sentence in ((0, "a table of embeddings"), (4, "the model has layers 0 to 3")):
        with pytest.raises(ModelError, match=sentence):
            form(layer, 3, READOUTS["mean_normed"], True, "text")
    assert tolerance("float32", False) == 1e-5
    assert tolerance("float32", True) > 1e-4


def test_killed_at_any_moment_it_leaves_no_manifest(
    text_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = text_bench("bert")
    first = bench.export(1, "mean_normed")
    manifest = bench.target / "manifest.json"
    for name in ("_seconds", "_verified", "card", "file_digest", "write_record"):

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(run, name, killed)
            with pytest.raises(KeyboardInterrupt):
                bench.export(2, "mean_normed")
        assert not manifest.exists(), name
    (bench.target / ".model.building").mkdir()  # what a kill -9 leaves
    (bench.target / ".model.building" / "half").write_text("")
    again = bench.export(1, "mean_normed")
    assert again["files"]["model.safetensors"] == first["files"]["model.safetensors"]
    assert sorted(path.name for path in bench.target.iterdir()) == ["manifest.json", "model"]
