"""The table of faults names tests that exist."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
LINES = 26


def names_in(file: Path) -> set[str]:
    """The functions of a file that pytest runs."""
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_fault_has_its_test() -> None:
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| (.+) \|$", Path(__file__).with_name("README.md").read_text("utf-8"), re.M)
    assert [int(line) for line, _ in rows] == list(range(1, LINES + 1))
    named = {line: re.findall(r"`([\w/]+\.py)::(test_\w+)`", cells) for line, cells in rows}
    assert all(named.values())
    absent = [f"{file}::{test}" for found in named.values() for file, test in found if test not in names_in(TESTS / file)]
    assert absent == []


def test_every_test_here_is_in_the_table() -> None:
    table = Path(__file__).with_name("README.md").read_text("utf-8")
    own = {"test_table.py": set(), "test_damage.py": {"test_the_canary_would_sing"}}
    for file in Path(__file__).parent.glob("test_*.py"):
        unnamed = {test for test in names_in(file) if f"faults/{file.name}::{test}" not in table}
        assert file.name == "test_table.py" or unnamed == own.get(file.name, set()), file.name
