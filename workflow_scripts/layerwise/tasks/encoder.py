"""Encoders that mteb's evaluators call: one records the texts a task asks for, one answers from stored vectors."""

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta
from numpy.typing import NDArray

from layerwise.errors import DataError

Vectors = NDArray[np.float64]


@functools.lru_cache(maxsize=100_000)  # every layer asks for the same texts
def text_key(text: str) -> str:
    """Return the id under which a text is stored: 32 hexadecimal digits of its sha256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Recorder(AbsEncoder):
    """Answers with pseudo-random vectors and keeps every text in order of first appearance, with its split."""

    def __init__(self, evaluated: str = "test") -> None:
        """Start empty; texts of the split ``evaluated`` are marked "test"."""
        self.model, self.mteb_model_meta, self.evaluated = None, _meta(), evaluated
        self.splits: dict[str, str] = {}
        self.occurrences: Counter[str] = Counter()

    def encode(self, inputs: Iterable[Mapping[str, Any]], *, hf_split: str, **_unused: Any) -> Vectors:  # noqa: ANN401
        """Record the texts; return (N, 8) vectors that depend on the text alone."""
        texts = _texts(inputs)
        self.occurrences.update(texts)
        self.add(texts, hf_split)
        seeds = [int(text_key(text)[:16], 16) for text in texts]
        return np.stack([np.random.default_rng(seed).standard_normal(8) for seed in seeds])

    def add(self, texts: Iterable[str], split: str) -> None:
        """Record texts that no evaluator asks for but a probe does; only new ones are counted as occurring."""
        split = "test" if split == self.evaluated else split
        for text in texts:
            self.occurrences[text] = self.occurrences[text] or 1
            if self.splits.setdefault(text, split) != "test":
                self.splits[text] = split


class Stored(AbsEncoder):
    """Answers with the stored vector of every text."""

    def __init__(self, task: str, rows: Mapping[str, int], vectors: Vectors) -> None:
        """Look up texts of ``task``: ``rows`` maps ``text_key`` to the row of ``vectors`` (N, D)."""
        self.model, self.mteb_model_meta = None, _meta()
        self.task, self.rows, self.vectors = task, rows, vectors

    def encode(self, inputs: Iterable[Mapping[str, Any]], **_unused: Any) -> Vectors:  # noqa: ANN401
        """Return the (N, D) vectors of the texts in ``inputs``."""
        return self.vectors[self.find(_texts(inputs))]

    def find(self, texts: Iterable[str]) -> list[int]:
        """Return the rows of ``texts``.

        Raises:
            DataError: a text is not stored.
        """
        keys = [text_key(text) for text in texts]
        absent = next((key for key in keys if key not in self.rows), None)
        if absent is not None:
            raise DataError(
                f"task {self.task!r} asks for a text (hash {absent}) that its activation file does not hold; delete "
                f"results/data/{self.task} and run again."
            )
        return [self.rows[key] for key in keys]


def _texts(inputs: Iterable[Mapping[str, Any]]) -> list[str]:
    return [text for batch in inputs for text in batch["text"]]


def _meta() -> ModelMeta:
    return ModelMeta.create_empty().model_copy(update={"name": "layerwise/layer", "revision": "stored"})
