"""Derived datasets: views of the samples of another dataset."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from PIL import Image

from layerwise.data.pictures import write_pictures
from layerwise.errors import DataError
from layerwise.samples import balanced_sample


class Transform(Protocol):
    """What a transform module offers."""

    def view_text(self, row: Mapping[Hashable, Any], view: int, seed: int, columns: list[str]) -> str:
        """Return one view of one sample."""
        ...


class ImageTransform(Protocol):
    """What a transform module of images offers."""

    def view_image(self, path: Path, identifier: str, view: int, seed: int, size: int) -> Image.Image:
        """Return one view of one image."""
        ...


def make_image_views(
    frame: pd.DataFrame,
    transform: ImageTransform,
    folders: tuple[Path, Path],
    views: int,
    seed: int,
    size: int,
    sample: int | None,
) -> pd.DataFrame:
    """Write ``views`` pictures per sample of ``frame`` and return their rows, views of one sample side by side.

    Args:
        frame: samples; only first views are taken.
        transform: makes the picture of a view.
        folders: of the parent dataset and of the new one.
        views: how many.
        seed: of the transform and the draw.
        size: side of a view in pixels.
        sample: at most so many samples, drawn with ``seed``; all of them where None.

    Raises:
        DataError: ``frame`` has no first views, or an image cannot be read.
    """
    sources = first_views(frame)
    if sample is not None:
        sources = balanced_sample(sources, sample, seed)
    cells = [(row, view) for row in sources.to_dict("records") for view in range(views)]
    pictures = (
        (f"sample-{i // views:05d}~{view}", transform.view_image(folders[0] / row["image"], row["id"], view, seed, size))
        for i, (row, view) in enumerate(cells)
    )
    written = write_pictures(folders[1], pictures)
    keys = [
        {"source_id": row["id"], "view": view, "split": row["split"], "id": f"{row['id']}~{view}"} for row, view in cells
    ]
    return pd.DataFrame(keys).assign(image=written["image"], sha256=written["sha256"])


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
    sources = first_views(frame)
    if sample is not None:
        sources = balanced_sample(sources, sample, seed)
    rows = [
        {"id": f"{row['id']}~{view}", "source_id": row["id"], "view": view, "split": row["split"], "text": text}
        for row in sources.to_dict("records")
        for view, text in ((view, transform.view_text(row, view, seed, columns)) for view in range(views))
    ]
    return pd.DataFrame(rows)


def first_views(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with view 0, from which every transform starts.

    Raises:
        DataError: there are none.
    """
    sources = frame[frame["view"] == 0]
    if sources.empty:
        raise DataError("the dataset it is derived from has no rows with view 0.")
    return sources
