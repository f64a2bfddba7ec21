"""The config's entries of datasets: their sources, samples, and what is derived from them."""

from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from layerwise.config_models import Name, Repository, Seed, Template, Text
from layerwise.config_reading import Closed
from layerwise.config_tasks import Count
from layerwise.packages import file_digest, folder_digest

Collected = Literal["readouts", "tokens"]
Tap = Literal["residual", "attention_norm", "attention", "attention_residual", "mlp"]


def in_block_order(taps: list[str]) -> list[str]:
    """Return the taps once each, in the order of ``Tap``; the residual stream is always read."""
    return [tap for tap in get_args(Tap) if tap in ("residual", *taps)]


Taps = Annotated[list[Tap], AfterValidator(in_block_order)]
Shards = Annotated[int, Field(ge=1, le=10_000, strict=True)]


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


class TracesSource(Closed):
    """Text that a model of the study writes, greedily, for the samples of a dataset.

    ``prompt`` holds ``{text}`` once; with ``chat`` it goes through the chat template of the tokenizer, after ``system``.
    Traces of fewer than ``minimum_tokens`` tokens, prompt included, are left out.
    """

    dataset: str
    model: str
    prompt: Annotated[str, Field(min_length=1)] = "{text}"
    chat: bool = False
    system: str = ""
    max_new_tokens: Count = 512
    minimum_tokens: Count = 1
    batch: Count = 8

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.prompt.count("{text}") != 1:
            raise ValueError(f"'prompt' must hold {{text}} once, where the sample goes; found {self.prompt!r}")
        return self


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
    traces: TracesSource | None = None
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
        file = Path(self.table.path).expanduser()
        return file_digest(file) if file.is_file() else "absent"

    @property
    def kinds(self) -> list[str]:
        """The kinds that are written; one, once validated."""
        return [kind for kind, value in self if value is not None]

    @property
    def kind(self) -> str:
        """The one kind; it names the file in ``layerwise/data/``."""
        return self.kinds[0]

    @property
    def parent(self) -> str | None:
        """The dataset of the study that this one is drawn from, or whose samples a model continues."""
        return self.traces.dataset if self.traces is not None else self.dataset


TOKEN_TRANSFORMS = ("repeat_tokens", "random_tokens", "random_prompts", "prefixes")


class Derivation(Closed):
    """A dataset derived from another by a named transform; ``verses`` and ``name: views`` give ``verses~views``.

    A transform of tokens makes one copy of every sample for each of ``levels`` and each of ``draws``, in one dataset.
    """

    name: Annotated[Name, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$")]
    transform: Literal["surface_noise", "columns", "simclr", "repeat_tokens", "random_tokens", "random_prompts", "prefixes"]
    size: Annotated[int, Field(ge=8, le=1024, strict=True)] = 224
    views: Annotated[int, Field(ge=2, le=64, strict=True)] = 2
    columns: list[str] = []
    levels: list[Annotated[float, Field(allow_inf_nan=False)]] = []
    draws: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    sample: Count | None = None
    seed: Seed = 0
    collect: list[Collected] = ["readouts"]
    taps: Taps = ["residual"]
    shards: Shards = 1
    metrics: list[str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _tokens_are_the_point(cls, values: dict[str, object]) -> dict[str, object]:
        """A transform of tokens collects token statistics unless the config says otherwise."""
        if isinstance(values, dict) and values.get("transform") in TOKEN_TRANSFORMS:
            return {"collect": ["readouts", "tokens"], **values}
        return values

    @model_validator(mode="after")
    def _levels_fit(self) -> Self:
        if self.transform in TOKEN_TRANSFORMS:
            check_levels(self.transform, self.levels, self.draws)
            if {"views", "columns"} & self.model_fields_set:
                raise ValueError(f"'views' and 'columns' do not belong to transform {self.transform!r}; write 'levels'")
        elif self.levels or self.draws > 1:
            raise ValueError(f"'levels' and 'draws' belong to {', '.join(TOKEN_TRANSFORMS)}, not to {self.transform!r}")
        return self

    @property
    def conditions(self) -> list[dict[str, float]]:
        """Level and draw of every copy of a sample, in order; empty for transforms that make views."""
        return [{"level": level, "draw": draw} for level in self.levels for draw in range(self.draws)]


def check_levels(transform: str, levels: list[float], draws: int) -> None:
    """Refuse levels that a transform of tokens has no meaning for.

    Raises:
        ValueError: none or one twice; a probability outside [0, 1]; a length that is no whole number of at least 2 tokens;
            a prefix that is neither a share in (0, 1] nor such a length, or both kinds at once; draws of a prefix.
    """
    if not levels or len(set(levels)) < len(levels):
        raise ValueError(f"transform {transform!r} needs 'levels', each of them once; found {levels}")
    lengths = [level for level in levels if level >= 2 and level == int(level)]
    if transform in ("repeat_tokens", "random_tokens"):
        outside = [level for level in levels if not 0 <= level <= 1]
        if outside:
            raise ValueError(f"'levels' of {transform!r} are probabilities from 0 to 1; found {outside[0]:g}")
    elif transform == "random_prompts":
        if len(lengths) < len(levels):
            raise ValueError(f"'levels' of 'random_prompts' are whole numbers of tokens, 2 or more; found {levels}")
    else:
        shares = [level for level in levels if 0 < level <= 1]
        if len(shares) < len(levels) and len(lengths) < len(levels):
            raise ValueError(
                f"'levels' of 'prefixes' are shares of the text, above 0 up to 1, or all numbers of tokens, 2 or more; "
                f"found {levels}"
            )
        if draws > 1:
            raise ValueError("'draws' of 'prefixes' is 1: nothing is drawn")


class DatasetEntry(Closed):
    """One dataset. ``collect: []`` makes it a pool that only other entries and tasks draw from."""

    name: Name
    source: DatasetSource
    sample: Sampling | None = None
    template: Template | None = None
    collect: list[Collected] = ["readouts", "tokens"]
    taps: Taps = ["residual"]
    shards: Shards = 1
    derive: list[Derivation] = []
    metrics: list[str] | None = None
