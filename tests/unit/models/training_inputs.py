"""What miniatures are trained on in tests: verses of few words, and pictures of squares."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from layerwise.config_training import OBJECTIVES, TrainSource
from layerwise.models.training.run import Run, train
from PIL import Image

WORDS = "in the beginning was word and light shineth darkness it not".split()
NEEDED = {"supervised": {"label": "colour"}, "clip": {"caption": ["corner", "colour"]}}
TINY = {"steps": 3, "checkpoints": [0, 1, 3], "batch": 8, "blocks": 8, "width": 16}


def texts(n: int = 40) -> pd.DataFrame:
    """Sentences in which every word but the last follows from the one before."""
    rng = np.random.default_rng(0)
    starts = rng.integers(0, len(WORDS), n)
    rows = [" ".join(WORDS[(start + i) % len(WORDS)] for i in range(6)) for start in starts]
    return pd.DataFrame({"id": [f"t{i}" for i in range(n)], "text": rows})


def pictures(folder: Path, n: int = 40, side: int = 16) -> pd.DataFrame:
    """A bright square in one of four corners, in one of two colours, on noise."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        values = rng.integers(0, 60, (side, side, 3), dtype=np.uint8)
        corner, colour = i % 4, i // 4 % 2
        half = side // 2
        rows_, columns = (slice(half * part, half * part + half) for part in divmod(corner, 2))
        values[rows_, columns] = (230, 40, 40) if colour else (40, 40, 230)
        Image.fromarray(values).save(folder / f"{i}.png")
        rows.append({"id": f"p{i}", "image": f"{i}.png", "corner": "abcd"[corner], "colour": ("blue", "red")[colour]})
    return pd.DataFrame(rows)


def options(objective: str, **changes: Any) -> dict[str, Any]:
    """The checked entry of a tiny run."""
    image = OBJECTIVES[objective][0] == "image"
    own = {"image_size": 16, "patch": 4} if image else {"tokens": 16, "vocabulary": 270}
    entry = {"objective": objective, "dataset": "d", **TINY, **own, **NEEDED.get(objective, {}), **changes}
    return TrainSource.model_validate(entry).model_dump(exclude_none=True)


def run(folder: Path, objective: str, name: str = "mini", n: int = 40, **changes: Any) -> Path:
    """Train in ``folder``; return training.json."""
    folder.mkdir(exist_ok=True, parents=True)
    image = OBJECTIVES[objective][0] == "image"
    samples = pictures(folder, n) if image else texts(n)
    record = folder / name / "training.json"
    train(record, Run(name, options(objective, **changes), "digest", {"code": "0"}), samples, folder)
    return record
