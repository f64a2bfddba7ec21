"""Where a result came from: versions, seeds, and a digest of exactly the code that made it."""

import ast
import functools
import hashlib
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
_UNHASHED = {"__init__.py", "registry.py"}  # re-exports and name lists: the entries behind them are hashed by name


def provenance(code: str, seed: int | None, *distributions: str) -> dict[str, Any]:
    """Return what every record carries: code digest, seed, Python and the versions of ``distributions``."""
    versions = {name: metadata.version(name) for name in distributions}
    return {"code": code, "seed": seed, "python": platform.python_version(), "versions": versions}


def code_digest(*entries: str | Path) -> str:
    """Hash the code that ``entries`` run: their syntax trees and, recursively, what they import inside ``layerwise``.

    Comments, docstrings and layout do not count, so that only a change of behaviour re-runs a rule.

    Args:
        entries: paths of Python files, or module paths relative to the package such as ``metrics/dime.py``.

    Returns:
        16 hexadecimal digits.

    Raises:
        FileNotFoundError: an entry does not exist.
    """
    files: dict[str, str] = {}
    waiting = [_locate(entry) for entry in entries]
    while waiting:
        path = waiting.pop()
        if path.name in _UNHASHED or str(path) in files:
            continue
        content, imported = _code(path, path.stat().st_mtime_ns)
        files[str(path)] = content
        waiting.extend(imported)
    return hashlib.sha256("".join(sorted(files.values())).encode()).hexdigest()[:16]


def _locate(entry: str | Path) -> Path:
    path = Path(entry)
    return path if path.is_absolute() else PACKAGE / path


@functools.cache
def _code(path: Path, _modified: int) -> tuple[str, tuple[Path, ...]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(_imports(tree))


def _imports(tree: ast.Module) -> list[Path]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    inside = [PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in names if name.startswith("layerwise.")]
    return [path for path in inside if path.is_file()]
