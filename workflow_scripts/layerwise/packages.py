"""Files inside installed Python packages and fetched archives, located without importing anything."""

import hashlib
import os
import sys
from importlib import metadata
from pathlib import Path

from layerwise.errors import DataError

INSTALL_HINT = "run 'make install', which installs envs/packages.txt"


def package_path(package: str, relative: str) -> Path:
    """Return the path of ``relative`` (from site-packages) that belongs to ``package``.

    Raises:
        DataError: the package is not installed, the path leaves it, or the file is absent.
    """
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        raise DataError(f"package {package!r} is not installed; {INSTALL_HINT}.") from None
    root = Path(str(distribution.locate_file("."))).resolve()
    path = (root / relative).resolve()
    if not path.is_relative_to(root):
        raise DataError(f"{relative!r} leads out of package {package!r}; write a path inside it.")
    if not path.exists():
        raise DataError(f"package {package!r} {distribution.version} holds no {relative!r}; {INSTALL_HINT}.")
    return path


def package_version(package: str) -> str:
    """Return the installed version of ``package``, or raise ``DataError``."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise DataError(f"package {package!r} is not installed; {INSTALL_HINT}.") from None


def archive_path(name: str, sha256: str) -> Path:
    """Return the path of an archive that ``envs/fetch_archives.py`` put into the environment, after checking its sha256.

    Raises:
        DataError: it was not fetched, or its content is not what ``sha256`` says.
    """
    path = Path(sys.prefix) / "share" / "layerwise" / name
    if not path.is_file():
        raise DataError(f"archive {name!r} is not in the environment ({path}); run 'make install', which fetches it.")
    found = file_digest(path)
    if found != sha256:
        raise DataError(f"archive {name!r} has sha256 {found}, the config says {sha256}; delete {path} and 'make install'.")
    return path


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the sha256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_digest(path: Path, patterns: tuple[str, ...] = ("*/*",)) -> str:
    """Return the sha256 of the names, sizes and times of what matches ``patterns`` below ``path``: two levels deep.

    Their content is not read: a folder may hold a million images, and this runs whenever the workflow is read.
    """
    state = hashlib.sha256()
    for file in sorted(file for pattern in patterns for file in path.glob(pattern)):
        facts = file.stat()
        line = f"{file.relative_to(path)}\x1f{facts.st_size}\x1f{facts.st_mtime_ns}\x1e"
        state.update(line.encode("utf-8", "surrogateescape"))
    return state.hexdigest()
