"""Published files that are damaged, doubled or malicious are refused in one sentence that names them."""

import collections
import io
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.tables.published_files import read_published
from layerwise.tables.safe_pickle import MOST_BYTES, read_curves
from published_inputs import small_metrics, small_scores, write_csv, write_tree

SCORES = {"STS12": [0.1, 0.5, 0.4], "SICK-R": [0.2, 0.1, 0.6]}
METRIC = {"STS12": [3.0, 1.0, 2.0], "SICK-R": [2.0, 3.0, 4.0]}
RESULT = Path("Pythia/410m/main/mteb/layer_1/STS12.json")
PICKLE = Path("Pythia/410m/main/metrics/mteb/sts12-sts/test/dime.pkl")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "results", small_scores(SCORES), small_metrics(METRIC))


def test_folders_around_and_below_do_not_matter(tree: Path) -> None:
    wanted = read_published(tree)
    assert (len(wanted.scores), len(wanted.metrics), wanted.notes) == (6, 6, [])
    assert set(wanted.metrics["task"]) == {"STS12", "SICK-R"}
    for path in [*tree.rglob("STS12.json")]:  # as mteb's own folders would lie
        deeper = path.parent / "no_model_name_available" / "no_revision_available"
        deeper.mkdir(parents=True)
        path.rename(deeper / path.name)
    for folder in (tree.parent, tree, tree / "Pythia", tree / "Pythia" / "410m" / "main"):
        found = read_published(folder)
        assert found.notes == []
        columns = ["family", "size", "revision", "layer", "task"]
        pd.testing.assert_frame_equal(
            found.scores.sort_values(columns, ignore_index=True), wanted.scores.sort_values(columns, ignore_index=True)
        )
        pd.testing.assert_frame_equal(found.metrics, wanted.metrics)


def test_files_elsewhere_are_counted(tree: Path) -> None:
    for place in ("notes/a.json", "baseline-llama/layer-0/STS12.json", "old/entropy.pkl"):
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        (tree / place).write_text("not read")
    assert read_published(tree).notes == ["3 JSON files and pickles lie elsewhere than results do; passed over."]


def test_older_places_of_metrics(tree: Path) -> None:
    path = tree / "Pythia/410m/main/metrics/wikitext/prompt-entropy.pkl"
    path.parent.mkdir(parents=True)
    path.write_bytes(pickle.dumps({"raw": [1.0, 2.0, 3.0]}))
    rows = read_published(tree).metrics
    row = rows[rows["dataset"] == "wikitext"].iloc[0]
    assert (row["task"], row["split"], row["metric"]) == ("", "", "prompt_entropy")


@pytest.mark.parametrize("content", [None, "", "metrics"])
def test_a_folder_of_neither_form(tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "results"
    if content is not None:
        folder.mkdir()
    if content:
        small_metrics(METRIC).to_csv(folder / "metrics.csv", index=False)
    with pytest.raises(FileError, match=r"holds no published scores: give a folder with mteb_scores.csv, or one with"):
        read_published(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"task_name": "STS12", "scores": {"te', "truncated or no JSON"),
        ("[" * 100_000, "truncated or no JSON"),
        ("[]", "no result of mteb 1.14"),
        ('{"task_name": "STS12", "scores": {"validation": []}}', "no result of mteb 1.14"),
        ('{"task_name": "STS12", "scores": {"test": [{"main_score": "0.5"}]}}', "main_score '0.5' in subset 0"),
        ('{"task_name": "STS12", "scores": {"test": [1]}}', "scores.test is not a list of objects"),
    ],
)
def test_damaged_results(tree: Path, text: str, message: str) -> None:
    (tree / RESULT).write_text(text)
    with pytest.raises(FileError, match=message) as error:
        read_published(tree)
    assert str(tree / RESULT) in str(error.value)


def test_results_that_are_no_utf8(tree: Path) -> None:
    (tree / RESULT).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="truncated or no JSON"):
        read_published(tree)


def test_a_score_that_is_no_number_is_missing(tree: Path) -> None:
    (tree / RESULT).write_text(
        '{"task_name": "STS12", "dataset_revision": "abc", "scores": {"test": [{"main_score": NaN}]}}'
    )
    assert read_published(tree).scores["main_score"].isna().sum() == 1


def test_two_dataset_revisions_are_refused_by_name(tree: Path, tmp_path: Path) -> None:
    (tree / RESULT).write_text((tree / RESULT).read_text().replace("abc", "def"))
    with pytest.raises(FileError, match=r"scores of STS12 on 2 dataset revisions, abc .* and def .*layer_1/STS12.json"):
        read_published(tree)
    scores = small_scores(SCORES)
    scores.loc[scores["layer"] == 2, "dataset_revision"] = "def"
    with pytest.raises(FileError, match="scores of SICK-R on 2 dataset revisions"):
        read_published(write_csv(tmp_path / "csv", scores))


def test_rows_twice_are_refused(tree: Path, tmp_path: Path) -> None:
    twin = tree / RESULT.parent / "again" / RESULT.name
    twin.parent.mkdir()
    twin.write_text((tree / RESULT).read_text())
    with pytest.raises(FileError, match=r"2 rows for one cell \(family Pythia.*layer 1, task STS12.*again/STS12.json"):
        read_published(tree)
    scores, metrics = small_scores(SCORES), small_metrics(METRIC)
    with pytest.raises(FileError, match=r"2 rows for one cell .*main, layer 0, task SICK-R"):
        read_published(write_csv(tmp_path / "a", pd.concat([scores, scores.iloc[3:4]])))
    with pytest.raises(FileError, match=r"2 rows for one cell .*metric dime, normalization raw, layer 2"):
        read_published(write_csv(tmp_path / "b", scores, pd.concat([metrics, metrics.iloc[2:3]])))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("layer", "1.5", "line 3: layer is '1.5', a whole number from 0 to 9999 expected"),
        ("layer", "-1", "layer is '-1'"),
        ("layer", "", "layer is ''"),
        ("layer", "1e12", "layer is '1e12'"),
        ("main_score", "high", "main_score is 'high', a number expected"),
    ],
)
def test_cells_that_are_no_numbers(tmp_path: Path, column: str, value: str, message: str) -> None:
    scores = small_scores(SCORES).astype({column: str})
    scores.loc[1, column] = value
    with pytest.raises(FileError, match=message):
        read_published(write_csv(tmp_path, scores))


def test_tables_that_are_none(tmp_path: Path) -> None:
    write_csv(tmp_path, small_scores(SCORES).drop(columns=["task", "subset"]))
    with pytest.raises(FileError, match=r"mteb_scores.csv lacks the columns task, subset"):
        read_published(tmp_path)
    (tmp_path / "mteb_scores.csv").write_text("")
    with pytest.raises(FileError, match="not a readable table"):
        read_published(tmp_path)


class Canary:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self.function, self.arguments


def by_name(module: str, name: str, argument: str) -> bytes:
    """A pickle that calls module.name(argument), for modules that are not here."""
    return f"c{module}\n{name}\n(V{argument}\ntR.".encode()


@pytest.mark.parametrize("protocol", range(6))
def test_a_canary_is_refused_and_not_run(tree: Path, tmp_path: Path, protocol: int) -> None:
    dead = tmp_path / "dead"
    for name, canary in {
        "system": Canary(os.system, f"touch {dead}"),
        "eval": Canary(eval, f"open({str(dead)!r}, 'w')"),
        "exec": Canary(exec, f"open({str(dead)!r}, 'w')"),
        "getattr": Canary(getattr, "a", "upper"),
        "open": Canary(io.open, str(dead), "w"),
        "load": Canary(np.load, str(dead)),
        "frombuffer": Canary(np.frombuffer, b"12345678"),
    }.items():
        (tree / PICKLE).write_bytes(pickle.dumps({"raw": canary}, protocol=protocol))
        with pytest.raises(FileError, match=rf"dime.pkl asks for '[\w.]*{name}', which .* it was not run") as error:
            read_published(tree)
        assert "\n" not in str(error.value)
    assert not dead.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch.storage", "_load_from_bytes"),
        ("numpy.f2py", "compile"),
        ("numpy.testing._private.utils", "runstring"),
        ("numpy", "ndarray.tofile"),
        ("numpy", "memmap"),
        ("builtins", "dict.fromkeys"),
        ("__builtin__", "eval"),
        ("builtins", "bytearray"),
        ("types", "FunctionType"),
        ("functools", "partial"),
        ("collections", "defaultdict"),
        ("layerwise.tables.safe_pickle", "read_curves"),
    ],
)
def test_names_that_are_not_on_the_list(tmp_path: Path, module: str, name: str) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(by_name(module, name, "x"))
    with pytest.raises(FileError, match=re.escape(f"asks for '{module}.{name}'")):
        read_curves(path)


def test_persistent_names_and_changes_of_numpy_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    for content in (b"Pstorage\n.", b"cnumpy\ndtype\n}b.", b"cnumpy\nndarray\n(tR.", b"cnumpy\nndarray\n(N}VX\nV1\nstb."):
        path.write_bytes(content)
        with pytest.raises(FileError):
            read_curves(path)
    assert np.dtype("f8").itemsize == 8
    assert not hasattr(np.ndarray, "X")


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, None], dtype=object),
        np.array(["a", "b"]),
        np.array(["2020"], dtype="M8[D]"),
        np.zeros(2, dtype=[("a", "f8")]),
        np.ma.masked_array([1.0, 2.0]),
        np.zeros((2, 2)),
        np.array([]),
        "abc",
        [1.0, "a"],
        [[1.0], [2.0]],
        [True],
        1.0,
        None,
    ],
)
def test_values_that_are_no_curve(tmp_path: Path, values: object) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"raw": values}))
    with pytest.raises(FileError, match=r"asks for an array of|one number per layer|asks for 'numpy.ma"):
        read_curves(path)


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("module", ["numpy._core", "numpy.core"])
def test_arrays_and_plain_containers_are_read(tmp_path: Path, protocol: int, module: str) -> None:
    values = np.array([1.0, -2.5, np.nan])
    path = tmp_path / "a.pkl"
    for same in (
        values,
        values.astype("f4"),
        values.astype(">f8"),
        np.repeat(values, 2)[::2],
        list(values),
        tuple(values.tolist()),
        [np.float32(value) for value in values],
        [np.array(value) for value in values],
        [np.array([value]) for value in values],
    ):
        dumped = pickle.dumps(collections.OrderedDict(raw=same), protocol=protocol)
        if protocol == 3:  # names are lines there, so their length may change
            dumped = dumped.replace(b"numpy._core", module.encode())
        path.write_bytes(dumped)
        np.testing.assert_array_equal(read_curves(path)["raw"], values)


def test_damaged_pickles(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    whole = pickle.dumps({"raw": np.arange(3.0)})
    for content in (b"", whole[:-10], whole[:30], b"garbage", b"\x80\x04]\x94."):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"damaged pickle|no mapping"):
            read_curves(path)
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(FileError, match="more than"):
        read_curves(path)
