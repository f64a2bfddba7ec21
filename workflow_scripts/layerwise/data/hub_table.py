"""A table of a Hugging Face hub dataset, at one commit: Parquet, CSV, TSV or JSONL files, read as a table of your own is."""

import hashlib
from pathlib import Path

import pandas as pd
from huggingface_hub import hf_hub_download

from layerwise.data import table
from layerwise.data.source import Source
from layerwise.errors import DataError
from layerwise.hub_errors import sentence
from layerwise.packages import file_digest


def read(
    repository: str,
    revision: str,
    files: list[str],
    text: str = "text",
    id: str | None = None,
    first: int | None = None,
    minimum_characters: int = 0,
    drop_headings: bool = False,
) -> Source:
    """Return the rows of ``files`` in their order; a file that the user's cache holds is read without any request.

    Args:
        repository: ORG/NAME of the dataset.
        revision: a commit, 40 hexadecimal digits.
        files: paths inside the repository.
        text: the column that holds the text.
        id: the column that holds unique ids; row numbers where it is not given.
        first: only so many rows, counted before anything is dropped.
        minimum_characters: shorter texts are dropped.
        drop_headings: drop texts that begin and end with "=", as WikiText writes its headings.

    Raises:
        DataError: not reachable, gated, altered in the cache, or not a table.
    """
    read_files = [table.read(str(_fetch(repository, revision, name)), text, id) for name in files]
    frame = pd.concat([source.samples for source in read_files], ignore_index=True)
    if id is None:
        frame["id"] = [f"row-{i}" for i in range(len(frame))]
    if first is not None:
        frame = frame.iloc[:first]
    stripped = frame["text"].astype(str).str.strip()
    kept = stripped.str.len() >= max(minimum_characters, 1)
    if drop_headings:
        kept &= ~(stripped.str.startswith("=") & stripped.str.endswith("="))
    if not kept.any():
        raise DataError(f"dataset {repository}: no row of {', '.join(files)} is left; lower 'minimum_characters'.")
    return Source(
        frame[kept].reset_index(drop=True), f"see https://huggingface.co/datasets/{repository}", f"{repository} {revision}"
    )


def _fetch(repository: str, revision: str, name: str) -> Path:
    """The path of one file in the cache, checked against the hash it is stored under."""

    def get(local: bool) -> Path:
        return Path(hf_hub_download(repository, name, revision=revision, repo_type="dataset", local_files_only=local))

    try:
        path = get(local=True)
    except Exception:  # whatever keeps the cache from answering, the hub is asked
        try:
            path = get(local=False)
        except Exception as error:
            raise sentence(error, f"datasets/{repository}", revision, name, DataError) from None
    stored = path.resolve()
    expected = stored.name
    found = file_digest(stored) if len(expected) == 64 else _git_digest(stored) if len(expected) == 40 else expected
    if found != expected:
        raise DataError(f"{name} of dataset {repository} is altered in the cache; delete {stored} and run again.")
    return path


def _git_digest(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
