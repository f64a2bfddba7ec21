"""Your own images: a folder of class folders; the name of the class folder is the label."""

from pathlib import Path

import pandas as pd

from layerwise.data.pictures import FOLDER, clear_pictures
from layerwise.data.source import Source
from layerwise.errors import DataError
from layerwise.images import open_image
from layerwise.packages import file_digest

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm")


def read(folder: Path, path: str) -> Source:
    """List the images below ``path`` in the order of their names, after opening each once; nothing is copied.

    Args:
        folder: results/data/{dataset}, which gets a link ``images`` to ``path``.
        path: holds one folder per class.

    Returns:
        Columns id (class/file), image, sha256 of the file and label.

    Raises:
        DataError: no such folder, no class folders, a class with one image, an image that cannot be used.
    """
    root = Path(path).expanduser().resolve()
    if not root.is_dir():
        raise DataError(f"image folder {path!r} does not exist (looked in {Path.cwd()}).")
    found = [f for f in sorted(root.glob("[!.]*/[!.]*")) if f.suffix.lower() in ENDINGS]
    files = [_nameable(file, path) for file in found]
    if not files:
        raise DataError(f"image folder {path!r} holds no class folders with images ({', '.join(ENDINGS)}).")
    frame = pd.DataFrame({"file": files, "label": [file.parent.name for file in files]})
    counts = frame["label"].value_counts()
    if counts.min() < 2:
        raise DataError(f"image folder {path!r}: class {counts.idxmin()!r} has one image; two are needed to train and test.")
    for file in files:
        open_image(file)
    folder.mkdir(parents=True, exist_ok=True)
    clear_pictures(folder)
    (folder / FOLDER).symlink_to(root)
    names = [str(file.relative_to(root)) for file in files]
    samples = pd.DataFrame({"id": names, "image": [f"{FOLDER}/{n}" for n in names], "sha256": map(file_digest, files)})
    return Source(samples.assign(label=frame["label"]), "unknown", f"folder {root.name}, {len(files)} images")


def _nameable(file: Path, path: str) -> Path:
    try:
        str(file).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"image folder {path!r}: the name {str(file)!r} is not valid UTF-8; rename it.") from None
    return file
