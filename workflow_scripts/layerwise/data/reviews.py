"""Amazon review snippets with mean human sentiment from -4 to 4 (Hutto and Gilbert, ICWSM 2014)."""

import csv
import io
import tarfile

import pandas as pd

from layerwise.data.source import Source
from layerwise.errors import DataError
from layerwise.packages import archive_path

_INNER = "additional_resources/hutto_ICWSM_2014.tar.gz"
_FILE = "amazonReviewSnippets_GroundTruth.txt"


def read(archive: str, sha256: str, minimum_intensity: float = 0.0) -> Source:
    """Return the snippets; the archive is read in memory, nothing in it is run.

    Args:
        archive: file name of the fetched archive.
        sha256: its expected digest.
        minimum_intensity: snippets whose absolute score is not above this are left out.

    Returns:
        Columns id, text, score (-4..4) and sentiment ("positive" above zero, "negative" below).

    Raises:
        DataError: the archive is missing, altered, or lacks the snippets.
    """
    path = archive_path(archive, sha256)
    try:
        with tarfile.open(path) as outer:
            inner = _member(outer, _INNER)
        with tarfile.open(fileobj=io.BytesIO(inner)) as nested:
            content = _member(nested, _FILE).decode("utf-8")
    except (tarfile.TarError, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{path} does not hold {_FILE} ({error}); run 'make install' again.") from error
    rows = list(csv.reader(io.StringIO(content), delimiter="\t", quoting=csv.QUOTE_NONE))
    frame = pd.DataFrame(rows, columns=["id", "score", "text"]).astype({"score": "float64"})
    frame["id"], frame["text"] = "snippet-" + frame["id"], frame["text"].str.strip()
    frame = frame[(frame["score"].abs() > minimum_intensity) & (frame["text"] != "")].drop_duplicates("text")
    frame["sentiment"] = frame["score"].gt(0).map({True: "positive", False: "negative"})
    return Source(frame[["id", "text", "score", "sentiment"]], "MIT (vaderSentiment)", f"{archive} sha256 {sha256}")


def _member(archive: tarfile.TarFile, suffix: str) -> bytes:
    for member in archive:
        file = archive.extractfile(member) if member.isfile() and member.name.endswith(suffix) else None
        if file is not None:
            return file.read()
    raise KeyError(suffix)
