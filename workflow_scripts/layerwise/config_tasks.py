"""What the config says of tasks: on the samples of a dataset, on the user's own tables, or one of mteb's."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from layerwise.config_models import Name, Seed, Template, Text
from layerwise.config_probe import ATTENTION_PROBE, ProbeKeys
from layerwise.config_reading import CLOSED
from layerwise.packages import file_digest, folder_digest

Count = Annotated[int, Field(ge=1, strict=True)]
TEST_ROWS = 300  # drawn from a dataset where the config does not say how many
# The columns of a task's own table, with the names they have where the config does not say; None: not needed.
TABLE_COLUMNS: dict[str, dict[str, str | None]] = {
    "classification": {"text": "text", "label": "label", "split": None},
    "clustering": {"text": "text", "label": "label"},
    "sts": {"first": "sentence1", "second": "sentence2", "score": "score"},
    "pair_classification": {"first": "sentence1", "second": "sentence2", "label": "label"},
    "reranking": {"query": "query", "document": "document", "relevant": "relevant"},
}
RETRIEVAL = ("corpus", "queries", "qrels")
MTEB_ONLY = ("task", "revision", "subset", "subsets", "path")
_OF_DATASETS = ("label", "group", "classes", "pairs", "pool", "folds", "train", "test", "n_experiments", "samples_per_label")


class TaskTable(BaseModel):
    """A CSV, TSV, JSONL or Parquet file with the rows of a task; the other keys name its columns."""

    model_config = CLOSED
    path: Text
    text: Text | None = None
    label: Text | None = None
    split: Text | None = None
    first: Text | None = None
    second: Text | None = None
    score: Text | None = None
    query: Text | None = None
    document: Text | None = None
    relevant: Text | None = None

    def columns(self, kind: str) -> dict[str, str | None]:
        """Return the column of every role that a task of type ``kind`` has; None for an optional one that is not named."""
        return {role: getattr(self, role) or usual for role, usual in TABLE_COLUMNS[kind].items()}


class TextFile(BaseModel):
    """A file of documents or queries: their ids and texts; ``title`` is put before the text, as mteb does."""

    model_config = CLOSED
    path: Text
    id: Text = "id"
    text: Text = "text"
    title: Text | None = None


class JudgementFile(BaseModel):
    """A file of judgements: which document answers which query, and how well (0: not at all)."""

    model_config = CLOSED
    path: Text
    query: Text = "query"
    document: Text = "document"
    relevance: Text | None = None


class TaskEntry(ProbeKeys):
    """One task: scored by mteb's own evaluator of its type, or by probes on images."""

    name: Name
    type: Literal[
        "classification", "clustering", "pair_classification", "sts", "reranking", "retrieval", "mteb",
        "image_classification", "attention_probe",
    ]  # fmt: skip
    dataset: str | None = None
    template: Template | None = None
    table: TaskTable | None = None
    corpus: TextFile | None = None
    queries: TextFile | None = None
    qrels: JudgementFile | None = None
    task: Text | None = None
    revision: Text | None = None
    subset: Text | None = None
    subsets: Annotated[list[Text], Field(min_length=1)] | None = None
    path: Text | None = None
    label: str | None = None
    group: str | None = None
    train: Count | None = None
    test: Count | None = None
    classes: Count | None = None
    pairs: Literal["next", "same", "scored"] | None = None
    pool: Annotated[int, Field(ge=20, strict=True)] | None = None
    folds: Annotated[int, Field(ge=2, le=20, strict=True)] | None = None
    n_experiments: Count = 3
    samples_per_label: Count = 16
    sample: Annotated[int, Field(ge=0, strict=True)] = 1000
    seed: Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _rows(cls, entry: Any) -> Any:  # noqa: ANN401 - nothing is checked yet
        """A dataset is drawn from; the rows of a table or of mteb's task are all taken where the config does not say."""
        if isinstance(entry, dict) and entry.get("type") not in ("mteb", "retrieval", "reranking") and "table" not in entry:
            return {"test": TEST_ROWS} | entry
        return entry

    @model_validator(mode="after")
    def _complete(self) -> Self:
        kind = f"{'an' if self.type[0] in 'aim' else 'a'} {self.type} task"
        if self.type == "mteb":
            _refuse(self, ("dataset", "table", *RETRIEVAL, *(key for key in _OF_DATASETS if key != "train")), kind)
        elif self.type == "retrieval":
            _refuse(self, ("dataset", "table", *MTEB_ONLY, *_OF_DATASETS), kind)
            _require(self, RETRIEVAL, kind)
        else:
            _refuse(self, (*MTEB_ONLY, *RETRIEVAL), kind)
            if self.table is not None:
                self._check_table(kind, self.table)
            else:
                self._check_dataset(kind)
        if self.modality == "image":
            _refuse(self, ("template",), kind)
        if self.subset is not None and self.subsets is not None and self.subset not in self.subsets:
            raise ValueError(f"'subset' is {self.subset!r}, which is not among 'subsets'; add it there")
        return self

    def _check_table(self, kind: str, table: TaskTable) -> None:
        if self.dataset is not None:
            raise ValueError(f"{kind} takes 'dataset' or 'table', not both; leave one out")
        if self.type not in TABLE_COLUMNS:
            raise ValueError(f"{kind} takes 'dataset', no 'table'; tables are for {', '.join(TABLE_COLUMNS)}")
        roles = TABLE_COLUMNS[self.type]
        foreign = next((key for key in table.model_fields_set if key != "path" and key not in roles), None)
        if foreign is not None:
            raise ValueError(f"the table of {kind} has no {foreign!r}; its columns: {', '.join(roles)}")
        unused = {
            "clustering": ("classes",),
            "classification": ("group", "folds", "train", "n_experiments", "samples_per_label"),
        }
        kept = {"test", "n_experiments" if self.type == "clustering" else "", *unused.get(self.type, ())}
        _refuse(self, tuple(key for key in _OF_DATASETS if key not in kept), f"{kind} with its own table")
        if self.type == "classification" and table.split is None:
            _require(self, ("train", "test"), f"{kind} whose table has no 'split' column")
        if table.split is not None:
            _refuse(self, ("group", "train", "test"), f"{kind} whose table has a 'split' column")

    def _check_dataset(self, kind: str) -> None:
        if self.type == "reranking":
            raise ValueError(f"{kind} needs 'table'")
        needed: tuple[str, ...] = {
            "classification": ("label", "train"),
            "image_classification": ("label", "train"),
            "attention_probe": ("label", "train"),
            "clustering": ("label",),
            "pair_classification": ("pairs", "group"),
            "sts": ("pairs",),
        }[self.type]
        _require(self, (("dataset",) if self.type in TABLE_COLUMNS else ()) + needed, kind)
        if self.dataset is None:
            raise ValueError(f"{kind} needs 'dataset'")
        kinds = {"pair_classification": ("next", "same"), "sts": ("scored",)}.get(self.type, (None,))
        if self.pairs not in kinds:
            allowed = " or ".join(f"'pairs: {pair}'" for pair in kinds if pair)
            raise ValueError(f"a {self.type} task takes {allowed or 'no pairs'}")
        if self.pairs == "same" and self.label is None:
            raise ValueError("'pairs: same' needs 'label'")

    @property
    def modality(self) -> str:
        """What its samples are: "text" or "image"."""
        return "image" if self.type in ("image_classification", ATTENTION_PROBE) else "text"

    @property
    def source(self) -> str:
        """Where its rows come from: "dataset", "table", "retrieval" (its own files, both) or "mteb"."""
        if self.type in ("reranking", "retrieval"):
            return "retrieval"
        return "mteb" if self.type == "mteb" else "table" if self.table is not None else "dataset"

    @property
    def file_digests(self) -> dict[str, str]:
        """Digest of each file of its own, or of the listing of a folder of mteb's data, so that a change is noticed."""
        if self.path is not None:
            folder = Path(self.path).expanduser()
            return {"path": folder_digest(folder, ("*", "*/*", "*/*/*")) if folder.is_dir() else "absent"}
        own = {key: getattr(self, key) for key in ("table", *RETRIEVAL)}
        files = {key: Path(entry.path).expanduser() for key, entry in own.items() if entry is not None}
        return {key: file_digest(path) if path.is_file() else "absent" for key, path in files.items()}


def _refuse(entry: TaskEntry, keys: tuple[str, ...], kind: str) -> None:
    written = next((key for key in keys if key in entry.model_fields_set and getattr(entry, key) is not None), None)
    if written is not None:
        raise ValueError(f"{kind} takes no {written!r}; leave it out")


def _require(entry: TaskEntry, keys: tuple[str, ...], kind: str) -> None:
    absent = [key for key in keys if getattr(entry, key) is None]
    if absent:
        raise ValueError(f"{kind} needs {' and '.join(repr(key) for key in absent)}")
