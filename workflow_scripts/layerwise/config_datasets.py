"""The config's entries of datasets: their sources, samples, and what is derived from them."""

from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from layerwise.config_models import Name, Repository, Seed, Text
from layerwise.config_reading import Closed
from layerwise.config_tasks import Count
from layerwise.packages import file_digest, folder_digest

Collected = Literal["readouts", "tokens"]
Tap = Literal["residual", "attention_norm", "attention", "attention_residual", "mlp"]


def in_block_order(taps: list[str]) -> list[str]:
    """Return the taps once each, in the order of ``Tap``; the residual stream is always read."""
    return [tap for tap in get_args(Tap) if tap in ("residual", *taps)]


Taps = Annotated[list[Tap], AfterValidator(in_block_order)]


class Sampling(Closed):
    """A seeded sample of a dataset, balanced over the values of a column if one is named."""

    n: Count
    balance: str | None = None
    seed: Seed = 0


class TableSource(Closed):
    """A CSV, TSV, JSONL or Parquet file; every column but ``text`` and ``id`` is kept as a label."""

    path: str
    text: str = "text"
    id: str | None = None


class HubTableSource(Closed):
    """Files of a Hugging Face hub dataset at one commit; rows can be cut and filtered as the study did with WikiText."""

    repository: Repository
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    files: Annotated[list[Text], Field(min_length=1)]
    text: str = "text"
    id: str | None = None
    first: Count | None = None
    minimum_characters: Annotated[int, Field(ge=0, strict=True)] = 0
    drop_headings: bool = False


class BibleSource(Closed):
    """Verses of two translations, aligned: column ``text`` from one package, ``paraphrase`` from the other."""

    text: str
    paraphrase: str


class LeeSource(Closed):
    """The Lee documents with human similarity judgements, in the gensim package."""

    package: str = "gensim"


class ReviewsSource(Closed):
    """Amazon review snippets with human sentiment, in an archive that ``make`` fetched."""

    archive: str
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    minimum_intensity: float = 0.0


class DigitsSource(Closed):
    """scikit-learn's digits, drawn evenly over the classes and scaled to ``size`` pixels."""

    n: Count = 500
    seed: Seed = 0
    size: Annotated[int, Field(ge=8, le=1024, strict=True)] = 112


class GlyphsSource(DigitsSource):
    """Letters rendered in matplotlib's fonts on noise: labels letter, font and quadrant."""


class ImageFolderSource(Closed):
    """A folder with one folder of images per class."""

    path: Text


class DatasetSource(Closed):
    """Where samples come from: exactly one kind."""

    table: TableSource | None = None
    hub_table: HubTableSource | None = None
    bible: BibleSource | None = None
    lee: LeeSource | None = None
    reviews: ReviewsSource | None = None
    digits: DigitsSource | None = None
    glyphs: GlyphsSource | None = None
    image_folder: ImageFolderSource | None = None
    dataset: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.kinds) != 1:
            raise ValueError(f"write exactly one of {', '.join(type(self).model_fields)}; found {self.kinds or 'none'}")
        return self

    @property
    def file_digest(self) -> str | None:
        """Digest of a ``table`` file or of an image folder's listing, so that a change of it is noticed; None for others."""
        if self.image_folder is not None:
            return folder_digest(Path(self.image_folder.path).expanduser())
        if self.table is None:
            return None
        return file_digest(self.table.path) if Path(self.table.path).is_file() else "absent"

    @property
    def kinds(self) -> list[str]:
        """The kinds that are written; one, once validated."""
        return [kind for kind, value in self if value is not None]

    @property
    def kind(self) -> str:
        """The one kind; it names the file in ``layerwise/data/``."""
        return self.kinds[0]


class Derivation(Closed):
    """A dataset derived from another by a named transform; ``verses`` and ``name: views`` give ``verses~views``."""

    name: Annotated[Name, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$")]
    transform: Literal["surface_noise", "columns", "simclr"]
    size: Annotated[int, Field(ge=8, le=1024, strict=True)] = 224
    views: Annotated[int, Field(ge=2, le=64, strict=True)] = 2
    columns: list[str] = []
    sample: Count | None = None
    seed: Seed = 0
    collect: list[Collected] = ["readouts"]
    taps: Taps = ["residual"]
    metrics: list[str] | None = None


class DatasetEntry(Closed):
    """One dataset. ``collect: []`` makes it a pool that only other entries and tasks draw from."""

    name: Name
    source: DatasetSource
    sample: Sampling | None = None
    collect: list[Collected] = ["readouts", "tokens"]
    taps: Taps = ["residual"]
    derive: list[Derivation] = []
    metrics: list[str] | None = None
