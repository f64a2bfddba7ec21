"""The Python interface: activations and scores of a finished study, typed, with frames, and cheap to import."""

import subprocess
import sys
from pathlib import Path

import layerwise
import numpy as np
import pandas as pd
import pytest
from layerwise import layer_scores, load_activations
from layerwise.api import primary_protocol
from layerwise.errors import FileError
from layerwise.tables import curves
from layerwise.tables.frames import SCORE_COLUMNS

from tests import activation_files

SCRIPTS = Path(__file__).parents[2] / "workflow_scripts"


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Two tasks of two models, three layers, two readouts, two protocols, and a baseline."""
    rows = []
    for model in ("1e3", "NA"):  # pandas would read a number and a missing value
        for task, protocols in (("a", ("mteb", "standardised")), ("b", ("knn", "linear"))):
            for protocol in protocols:
                for readout in ("mean", "mean_normed"):
                    for layer, score in enumerate((0.2, 0.9 if protocol == "standardised" else 0.5, 0.6)):
                        row = {"model": model, "task": task, "type": "t", "protocol": protocol, "readout": readout}
                        rows.append(row | {"layer": layer, "tap": "residual", "depth": layer / 2, "score": score})
    rows.append({"task": "a", "type": "t", "protocol": "mteb", "score": 0.99, "baseline": "tfidf"})
    path = tmp_path / "tables" / "scores.csv"
    path.parent.mkdir()
    pd.DataFrame(rows, columns=[*SCORE_COLUMNS]).to_csv(path, index=False)
    return path


def test_importing_the_package_imports_neither_torch_nor_pandas() -> None:
    code = "import sys, layerwise; print(sorted({'torch', 'pandas', 'h5py', 'pydantic'} & set(sys.modules)))"
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); {code}"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"
    code = "import sys; from layerwise import load_activations; print('torch' in sys.modules, 'snakemake' in sys.modules)"
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); {code}"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "False False"


def test_names_that_are_not_there_are_no_names() -> None:
    assert not hasattr(layerwise, "load_activation")
    assert all(hasattr(layerwise, name) for name in layerwise.__all__)


def test_activations_are_what_the_file_holds(tmp_path: Path) -> None:
    values = activation_files.write_file(tmp_path / "a.h5")
    with load_activations(tmp_path / "a.h5") as found:
        assert (found.model, found.dataset, found.width) == ("m", "d", activation_files.WIDTH)
        assert found.layers == [0, 1, 2]
        assert found.readouts == ["mean", "mean_normed"]
        pooled = found.pooled("mean", 1)
        np.testing.assert_array_equal(pooled, values["readout/mean/001"].astype(float))
        assert pooled.dtype == np.float64
        frame = found.to_frame("mean_normed")
        assert frame.index.names == ["layer", "id"]
        assert frame.shape == (3 * 6, activation_files.WIDTH)
        np.testing.assert_array_equal(frame.loc[2].to_numpy(), values["readout/mean_normed/002"].astype(float))
        assert list(frame.loc[2].index) == found.ids == [f"id-{i}" for i in range(6)]
        assert list(found.to_frame("mean", [2]).index.unique("layer")) == [2]
        assert "m x d: 6 samples, layers 0..2, 4 numbers, readouts mean, mean_normed" in repr(found)


def test_views_are_grouped_by_their_source(tmp_path: Path) -> None:
    views = {"source_ids": ["x", "x", "y", "y", "z", "z"], "views": [0, 1, 0, 1, 0, 1]}
    values = activation_files.write_file(tmp_path / "a.h5", **views)["readout/mean/001"].astype(float)
    with load_activations(tmp_path / "a.h5") as found:
        assert found.ids == ["x", "y", "z"]
        np.testing.assert_array_equal(found.pooled("mean", 1), values[::2])
        np.testing.assert_array_equal(found.views("mean", 1), values.reshape(3, 2, -1))


def test_places_inside_the_blocks(tmp_path: Path) -> None:
    values = activation_files.write_file(tmp_path / "a.h5", taps=["residual", "mlp"])
    with load_activations(tmp_path / "a.h5") as found:
        assert found.taps == ["residual", "mlp"]
        inside = found.at("mlp")
        assert inside.layers == [1, 2]
        np.testing.assert_array_equal(inside.pooled("mean", 2), values["taps/mlp/readout/mean/002"].astype(float))
        np.testing.assert_array_equal(found.pooled("mean", 2), values["readout/mean/002"].astype(float))
        with pytest.raises(FileError, match="holds no layer 0; it has 1 to 2"):
            inside.pooled("mean", 0)
        with pytest.raises(FileError, match="not at 'attention'"):
            found.at("attention")


def test_conditions_of_changed_tokens(tmp_path: Path) -> None:
    views = {"source_ids": ["x", "x", "y", "y", "z", "z"], "views": [0, 1, 0, 1, 0, 1]}
    conditions = [{"level": 0.0, "draw": 0}, {"level": 0.5, "draw": 0}]
    ids = [list(range(count)) for count in (3, 5, 1, 4, 2, 6)]
    transform = {"transform": "repeat_tokens", "seed": 0, "conditions": conditions}
    facts = {**views, "token_transform": transform, "input_ids": ids}
    values = activation_files.write_file(tmp_path / "a.h5", **facts)["readout/mean/001"].astype(float)
    with load_activations(tmp_path / "a.h5") as found:
        assert found.conditions == conditions
        half = found.under(1)
        assert half.ids == found.ids == ["x", "y", "z"]
        np.testing.assert_array_equal(half.pooled("mean", 1), values[1::2])
        assert half.to_frame("mean", [1]).index.get_level_values("id").tolist() == ["x", "y", "z"]
        with pytest.raises(FileError, match="none is number 2"):
            found.under(2)


def test_a_wrong_name_gets_one_sentence(tmp_path: Path) -> None:
    activation_files.write_file(tmp_path / "a.h5")
    with load_activations(tmp_path / "a.h5") as found:
        with pytest.raises(FileError, match=r"holds no readout 'max'; it has mean, mean_normed\.$"):
            found.pooled("max", 1)
        with pytest.raises(FileError, match=r"holds no layer 3; it has 0 to 2\.$"):
            found.views("mean", 3)
    with pytest.raises(FileError, match="not a readable activation file"):
        load_activations(tmp_path / "b.h5")


def test_scores_by_folder_or_file_with_names_kept_as_text(scores: Path) -> None:
    whole = layer_scores(scores.parents[1])
    assert (whole.models, whole.tasks) == (["1e3", "NA"], ["a", "b"])
    frame = whole.to_frame()
    assert len(frame) == 2 * 2 * 2 * 2 * 3  # no baselines
    assert frame["layer"].dtype == "int64"
    assert frame["score"].dtype == "float64"
    one = layer_scores(scores, model="NA", task="a")
    assert (one.models, one.tasks) == (["NA"], ["a"])
    frame["score"] = 0.0
    assert whole.to_frame()["score"].max() == 0.9


def test_the_best_layer_is_of_the_primary_protocol(scores: Path) -> None:
    found = layer_scores(scores, model="NA").best("mean")
    assert [(b.task, b.protocol, b.layer, b.n_layers, b.depth, b.score, b.last) for b in found] == [
        ("a", "standardised", 1, 2, 0.5, 0.9, 0.6),
        ("b", "knn", 2, 2, 1.0, 0.6, 0.6),
    ]
    assert len(layer_scores(scores).best()) == 2 * 2 * 2
    assert list(layer_scores(scores).curve("NA", "a", "mean", "mteb")) == [0.2, 0.5, 0.6]


def test_the_primary_protocol_is_that_of_the_tables() -> None:
    for protocols in (["mteb", "standardised"], ["mteb", "x"], ["knn", "linear"], ["linear"]):
        assert primary_protocol(protocols) == curves.primary_protocol(protocols)


def test_what_is_not_scored_gets_one_sentence(scores: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"has no model 'x'; it has: 1e3, NA\.$"):
        layer_scores(scores, model="x")
    with pytest.raises(FileError, match=r"no scores of readout 'last'; there are: mean, mean_normed\.$"):
        layer_scores(scores).curve("NA", "a", "last")
    with pytest.raises(FileError, match="no scores of task 'a' under protocol 'knn'"):
        layer_scores(scores).curve("NA", "a", "mean", "knn")
    (tmp_path / "empty.csv").write_text("")
    for path in (tmp_path / "absent", tmp_path / "empty.csv"):
        with pytest.raises(FileError, match="is not a readable table of scores"):
            layer_scores(path)
