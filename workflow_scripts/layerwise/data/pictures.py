"""Writing pictures that this program makes: PNG files beside samples.parquet, with the digest of their pixels."""

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from PIL import Image

from layerwise.atomic import room_for

FOLDER = "images"


def write_pictures(folder: Path, pictures: Iterable[tuple[str, Image.Image]]) -> pd.DataFrame:
    """Write each (id, picture) as ``images/{id}.png`` below ``folder``.

    Returns:
        Columns id, image (path relative to ``folder``) and sha256 of the RGB pixels, which is independent of the encoder.

    Raises:
        FileError: the disk is full.
    """
    clear_pictures(folder)
    (folder / FOLDER).mkdir(parents=True)
    rows = []
    for identifier, picture in pictures:
        name = f"{FOLDER}/{identifier}.png"
        temporary = folder / FOLDER / f".{identifier}.tmp"
        with room_for(folder / name):
            picture.save(temporary, format="PNG", compress_level=1)
        os.replace(temporary, folder / name)
        rows.append({"id": identifier, "image": name, "sha256": hashlib.sha256(picture.tobytes()).hexdigest()})
    return pd.DataFrame(rows)


def clear_pictures(folder: Path) -> None:
    """Remove the pictures of an earlier run below ``folder``, or its link to a user's folder, never what is in that."""
    pictures = folder / FOLDER
    if pictures.is_symlink():
        pictures.unlink()
    elif pictures.exists():
        shutil.rmtree(pictures)
