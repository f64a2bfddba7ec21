"""Fetch the source archives of archives.txt into the environment, check their sha256, and run nothing in them."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main(listing: Path, folder: Path) -> None:
    """Fetch every archive of ``listing`` that ``folder`` does not hold yet.

    Raises:
        SystemExit: an archive cannot be had, or is not the one that was pinned.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for line in listing.read_text("utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        requirement, expected = line.split()
        if any(_digest(file) == expected for file in folder.iterdir() if file.is_file()):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            fetched = _fetch(requirement, scratch)
            found = _digest(fetched)
            if found != expected:
                raise SystemExit(f"{requirement}: the archive has sha256 {found}, {listing} pins {expected}.")
            os.replace(fetched, folder / fetched.name)


def _fetch(requirement: str, folder: str) -> Path:
    """Download without unpacking or building, which pip cannot: it runs the setup of a source archive to read it."""
    index = os.environ.get("PIP_INDEX_URL")
    options = ["--index-url", index] if index else []
    command = [sys.executable, "-m", "unearth", requirement, "--no-binary", "--download", folder, *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{requirement}: no source archive could be fetched ({result.stderr.strip()[-300:]}).")
    return Path(json.loads(result.stdout)["local_path"])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(Path(__file__).with_name("archives.txt"), Path(sys.prefix) / "share" / "layerwise")
