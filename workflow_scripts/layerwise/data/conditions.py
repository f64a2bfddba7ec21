"""Copies of samples for transforms of tokens: one for every level and draw. The tokens are changed at extraction."""

import pandas as pd

from layerwise.data.views import first_views
from layerwise.samples import balanced_sample


def make_conditions(frame: pd.DataFrame, conditions: list[dict[str, float]], seed: int, sample: int | None) -> pd.DataFrame:
    """Return a row per sample and condition, those of one sample side by side; ``view`` counts the conditions.

    Args:
        frame: samples; only first views are taken.
        conditions: ``level`` and ``draw`` of each copy.
        seed: of the draw of samples.
        sample: at most so many samples; all of them where None.

    Raises:
        DataError: ``frame`` has no first views.
    """
    sources = first_views(frame)
    if sample is not None:
        sources = balanced_sample(sources, sample, seed)
    return pd.DataFrame(
        [
            {"id": f"{row['id']}~{view}", "source_id": row["id"], "view": view, "split": row["split"], "text": row["text"]}
            | {"level": float(condition["level"]), "draw": int(condition["draw"])}
            for row in sources.to_dict("records")
            for view, condition in enumerate(conditions)
        ]
    )
