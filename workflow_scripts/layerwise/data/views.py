"""Derived datasets: views of the samples of another dataset."""

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import pandas as pd

from layerwise.errors import DataError
from layerwise.samples import balanced_sample


class Transform(Protocol):
    """What a transform module offers."""

    def view_text(self, row: Mapping[Hashable, Any], view: int, seed: int, columns: list[str]) -> str:
        """Return one view of one sample."""
        ...


def make_views(
    frame: pd.DataFrame, transform: Transform, views: int, seed: int, columns: list[str], sample: int | None
) -> pd.DataFrame:
    """Return ``views`` rows per sample of ``frame``, views of one sample side by side.

    Args:
        frame: samples; only first views are taken.
        transform: makes the text of a view.
        views: how many.
        seed: of the transform and the draw.
        columns: for transforms that read columns.
        sample: at most so many samples, drawn with ``seed``; all of them where None.

    Raises:
        DataError: ``frame`` has no first views, or the transform cannot serve a sample.
    """
    sources = frame[frame["view"] == 0]
    if sources.empty:
        raise DataError("the dataset it is derived from has no rows with view 0.")
    if sample is not None:
        sources = balanced_sample(sources, sample, seed)
    rows = [
        {"id": f"{row['id']}~{view}", "source_id": row["id"], "view": view, "split": row["split"], "text": text}
        for row in sources.to_dict("records")
        for view, text in ((view, transform.view_text(row, view, seed, columns)) for view in range(views))
    ]
    return pd.DataFrame(rows)
