"""Many tests at once: the share of false findings among those one would call found."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """Benjamini-Hochberg q-values of a family of p-values (n,); NaN entries are no tests and stay NaN.

    Calling found what has q <= .05 keeps the expected share of false ones among them at 5 % if the tests are
    independent or positively dependent (Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001). The same test listed
    twice changes nothing when all are.
    """
    values = np.asarray(p, dtype=np.float64)
    q = np.full(values.shape, np.nan)
    tests = np.flatnonzero(np.isfinite(values))
    order = tests[np.argsort(values[tests], kind="stable")]
    scaled = values[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return q


def q_values(table: pd.DataFrame, p: str, family: Sequence[str]) -> pd.Series:
    """Return q-values of the column ``p``, a family being the rows that agree in the columns ``family``."""
    values = table[p].astype("float64")
    q = pd.Series(np.nan, index=table.index, dtype="float64")
    for _, rows in table.groupby([*family], dropna=False, sort=False):
        q[rows.index] = benjamini_hochberg(values[rows.index])
    return q
