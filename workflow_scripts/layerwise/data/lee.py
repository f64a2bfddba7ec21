"""The Lee documents: 50 news texts with human similarity judgements of all pairs (Lee, Pincombe and Welsh, 2005)."""

import numpy as np
import pandas as pd

from layerwise.data.source import Source
from layerwise.errors import DataError
from layerwise.packages import package_path, package_version


def read(package: str = "gensim") -> Source:
    """Return the 50 documents and the 1,225 judged pairs (score 0..1) from a package's test data.

    Raises:
        DataError: the package or a file is missing, or documents and judgements do not fit.
    """
    folder = package_path(package, "gensim/test/test_data")
    lines = (folder / "lee.cor").read_text("latin-1").splitlines()
    scores = np.loadtxt(folder / "similarities0-1.txt", dtype=np.float64)
    texts = [line.strip() for line in lines if line.strip()]
    if scores.shape != (len(texts), len(texts)):
        raise DataError(f"{folder}: {len(texts)} documents but judgements of shape {scores.shape}; reinstall {package!r}.")
    samples = pd.DataFrame({"id": [f"lee-{i:02d}" for i in range(len(texts))], "text": texts})
    rows, columns = np.triu_indices(len(texts), 1)
    ids = samples["id"].to_numpy()
    pairs = pd.DataFrame({"id_a": ids[rows], "id_b": ids[columns], "score": scores[rows, columns]})
    return Source(samples, "own terms of the data set", f"{package} {package_version(package)}", pairs)
