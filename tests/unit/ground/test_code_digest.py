"""The digest that decides what runs again: behaviour counts, words do not."""

import ast
import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = Path(__file__).parents[3] / "workflow_scripts" / "layerwise"


class Copy:
    """A copy of the package, with the copy's own ``code_digest``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "layerwise"
        shutil.copytree(PACKAGE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        spec = importlib.util.spec_from_file_location(f"provenance_{id(self)}", self.folder / "provenance.py")
        self.module: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def digest(self, *entries: str) -> str:
        return self.module.code_digest(*entries)

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text("utf-8")
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new), "utf-8")
        os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


ENTRY = "metrics/dataset_entropy.py"


def test_the_digest_is_short_stable_and_independent_of_the_folder(copy: Copy, tmp_path: Path) -> None:
    digest = copy.digest(ENTRY)
    assert len(digest) == 16
    int(digest, 16)
    assert digest == copy.digest(ENTRY) == copy.digest(ENTRY, ENTRY) == Copy(tmp_path / "elsewhere").digest(ENTRY)
    assert copy.digest(ENTRY, "metrics/lidar.py") == copy.digest("metrics/lidar.py", ENTRY) != digest


def test_words_and_layout_do_not_count(copy: Copy) -> None:
    before = copy.digest("atomic.py")
    copy.edit(
        "atomic.py", '"""Files that are either whole or absent', '"""Other words: files that are either whole or absent'
    )
    copy.edit("atomic.py", '    """Write ``text`` as UTF-8', '    """Write the ``text`` as UTF-8')
    copy.edit(
        "atomic.py", "_HOST = socket.gethostname()", "# A comment.\n\n_HOST = (\n    socket.gethostname()\n)  # another"
    )
    copy.edit("errors.py", '"""A dataset, label or text', '"""A dataset, a label or a text')
    assert copy.digest("atomic.py") == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("spectrum.py", "1e-140", "1e-141"),  # a constant, in a module that is imported
        ("errors.py", "class DataError(LayerwiseError)", "class DataError(ConfigError)"),  # two imports away
        (ENTRY, "from layerwise.", "import os\nfrom layerwise."),
    ],
)
def test_behaviour_counts_however_far_away(copy: Copy, file: str, old: str, new: str) -> None:
    before = copy.digest(ENTRY)
    text = (copy.folder / file).read_text("utf-8")
    copy.edit(file, text, text.replace(old, new, 1))
    assert text != text.replace(old, new, 1)
    assert copy.digest(ENTRY) != before


def test_a_docstring_that_is_data_counts(copy: Copy) -> None:
    """Only the first string of a body is documentation."""
    (copy.folder / "a.py").write_text('X = """text"""\n')
    before = copy.digest("a.py")
    (copy.folder / "a.py").write_text('X = """other"""\n')
    os.utime(copy.folder / "a.py", ns=(1, 1))
    assert copy.digest("a.py") != before


@pytest.mark.parametrize(
    "statement",
    [
        "from layerwise.inner.deep import x",
        "from layerwise.inner import deep",
        "import layerwise.inner.deep",
        "import layerwise.inner.deep as other",
        "def f():\n    from layerwise.inner.deep import x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from layerwise.inner.deep import x",
    ],
)
def test_every_form_of_import_is_followed(copy: Copy, statement: str) -> None:
    deep = copy.folder / "inner" / "deep.py"
    deep.parent.mkdir()
    (deep.parent / "__init__.py").write_text("")
    (copy.folder / "entry.py").write_text(statement + "\n")
    deep.write_text("x = 1\n")
    before = copy.digest("entry.py")
    deep.write_text("x = 2\n")
    os.utime(deep, ns=(1, 1))
    assert copy.digest("entry.py") != before


def test_modules_that_import_each_other_come_to_an_end(copy: Copy) -> None:
    (copy.folder / "a.py").write_text("import layerwise.b\n")
    (copy.folder / "b.py").write_text("import layerwise.a\n")
    assert copy.digest("a.py") == copy.digest("b.py")


def test_name_lists_and_other_packages_do_not_count(copy: Copy) -> None:
    before = copy.digest(ENTRY), copy.digest("data/prepare.py")
    copy.edit("metrics/registry.py", "METRICS = {", 'METRICS = {\n    "new": "layerwise.metrics.dime",')
    copy.edit("data/registry.py", "TRANSFORMS = {", "OTHER = 1\nTRANSFORMS = {")
    copy.edit("metrics/lidar.py", "import numpy as np", "import numpy as np\nOTHER = 1")
    assert (copy.digest(ENTRY), copy.digest("data/prepare.py")) == before


def test_an_absolute_entry_is_followed_into_the_package(copy: Copy, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text("from layerwise.records import read_record\n")
    before = copy.digest(adapter)
    copy.edit("records.py", "SCHEMA_VERSION = 1", "SCHEMA_VERSION = 2")
    assert copy.digest(adapter) != before


def test_a_missing_entry_is_an_error(copy: Copy) -> None:
    with pytest.raises(FileNotFoundError):
        copy.digest("metrics/no_such_metric.py")


def test_the_package_imports_in_no_way_that_the_digest_does_not_follow() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path} imports relatively"
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "import_module"
            assert not named or path.name == "registry.py", f"{path} imports by name"


def test_provenance_names_versions() -> None:
    from layerwise.provenance import provenance

    found = provenance("0123", 7, "numpy", "h5py")
    assert (found["code"], found["seed"], set(found["versions"])) == ("0123", 7, {"numpy", "h5py"})
    assert found["versions"]["numpy"] == __import__("numpy").__version__
