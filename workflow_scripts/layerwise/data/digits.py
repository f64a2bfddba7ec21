"""scikit-learn's handwritten digits: 1,797 images of 8 x 8, ten classes, scaled up to be seen."""

from pathlib import Path

import numpy as np
from PIL import Image

from layerwise.data.pictures import write_pictures
from layerwise.data.source import Source
from layerwise.samples import balanced_sample


def read(folder: Path, n: int, seed: int = 0, size: int = 112) -> Source:
    """Draw ``n`` digits, evenly over the classes, and write them at ``size`` x ``size`` pixels below ``folder``.

    Returns:
        Columns id, image, sha256 and digit.
    """
    import pandas as pd
    from sklearn import __version__
    from sklearn.datasets import load_digits

    bunch = load_digits()
    frame = pd.DataFrame({"id": [f"digit-{i:04d}" for i in range(len(bunch.target))], "digit": bunch.target.astype(str)})
    frame["row"] = range(len(frame))
    drawn = balanced_sample(frame, n, seed, "digit")

    def picture(row: int) -> Image.Image:
        grey = Image.fromarray(np.rint(bunch.images[row] * 255 / 16).astype(np.uint8))
        return grey.resize((size, size), Image.Resampling.BICUBIC).convert("RGB")

    written = write_pictures(folder, ((i, picture(row)) for i, row in zip(drawn["id"], drawn["row"], strict=True)))
    samples = written.merge(drawn[["id", "digit"]], on="id", validate="one_to_one")
    return Source(samples, "CC BY 4.0 (UCI, via scikit-learn)", f"scikit-learn {__version__} digits")
