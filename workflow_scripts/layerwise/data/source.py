"""What every kind of source returns."""

import dataclasses

import pandas as pd


@dataclasses.dataclass(frozen=True)
class Source:
    """The samples of a source.

    Attributes:
        samples: ``id``, ``text`` or ``image``, and label columns.
        licence: of the content, where known.
        origin: package, archive or file with its version or digest.
        pairs: ``id_a``, ``id_b``, ``score`` for sources with human judgements of pairs.
    """

    samples: pd.DataFrame
    licence: str
    origin: str
    pairs: pd.DataFrame | None = None
