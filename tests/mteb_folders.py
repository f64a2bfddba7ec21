"""Copies of mteb's datasets as their repositories lay them out, tiny, and an encoder that computes the stored vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from layerwise.config_tasks import TaskEntry
from layerwise.tasks import mteb_task
from layerwise.tasks.encoder import text_key
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta

WORDS = ("river", "stone", "light", "garden", "winter", "letter", "window", "music")
RETRIEVAL_README = """---
configs:
- {config_name: corpus, data_files: [{split: test, path: corpus.jsonl}]}
- {config_name: queries, data_files: [{split: test, path: queries.jsonl}]}
- {config_name: default, data_files: [{split: test, path: qrels.jsonl}]}
- {config_name: top_ranked, data_files: [{split: test, path: ranked.jsonl}]}
---
"""


def vector(text: str) -> np.ndarray:
    """A vector of a text alone, in which equal words show."""
    seeds = [int(text_key(word)[:8], 16) for word in text.split() or ["-"]]
    return np.mean([np.random.default_rng(seed).standard_normal(12) for seed in seeds], axis=0)


class Encoder(AbsEncoder):
    """A model that mteb can run."""

    def __init__(self) -> None:
        update = {"name": "tests/words", "revision": "1"}
        self.model, self.mteb_model_meta = None, ModelMeta.create_empty().model_copy(update=update)

    def encode(self, inputs: Any, **_unused: Any) -> np.ndarray:
        return np.stack([vector(text) for batch in inputs for text in batch["text"]])


def options(name: str, **changes: Any) -> dict[str, Any]:
    """The config's entry of a task of mteb."""
    return TaskEntry(name=name, type="mteb", **changes).model_dump(exclude={"name"})


def prepared(folder: Path, name: str, **changes: Any) -> tuple[mteb_task.BenchmarkFiles, Any]:
    """Prepare a task of mteb as the workflow does; return its files and texts."""
    mteb_task.prepare(folder / "task", name, options(name, **changes), None)
    frame = mteb_task.samples(folder / "task", None, folder)
    return mteb_task.load(folder / "task"), frame


def scored(files: mteb_task.BenchmarkFiles, frame: Any, of: Any = vector) -> Any:
    """Score the vectors ``of`` all texts."""
    rows = {key: row for row, key in enumerate(frame["id"])}
    return mteb_task.score(files, rows, np.stack([of(text) for text in frame["text"]]))


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def sentence(rng: np.random.Generator, label: int = 0) -> str:
    """A text that shows its label by two of its words."""
    own = WORDS[2 * label : 2 * label + 2]
    return " ".join([*rng.choice(WORDS, 3), *own, str(int(rng.integers(1_000_000)))])


def classification(folder: Path, n: int = 60) -> Path:
    """Train and test with three labels."""
    for split in ("train", "test"):
        rng = np.random.default_rng(split == "test")
        rows = [{"text": sentence(rng, i % 3), "label": i % 3, "label_text": f"l{i % 3}"} for i in range(n)]
        lines(folder / f"{split}.jsonl", rows)
    return folder


def sts(folder: Path, n: int = 30) -> Path:
    """Pairs with scores from 0 to 5; the first sentence is repeated."""
    rng = np.random.default_rng(0)
    rows = [
        {"sentence1": sentence(rng, i % 3), "sentence2": sentence(rng, i % 2), "score": float(i % 3 == i % 2) * 4 + i / n}
        for i in range(n)
    ]
    rows[1]["sentence1"] = rows[0]["sentence1"]
    lines(folder / "test.jsonl", rows)
    return folder


def pairs(folder: Path, n: int = 30) -> Path:
    """All pairs as one row of lists, as until 2024."""
    rng = np.random.default_rng(0)
    made = [(sentence(rng, i % 3), sentence(rng, i % 2), int(i % 3 == i % 2)) for i in range(n)]
    first, second, labels = map(list, zip(*made, strict=True))
    lines(folder / "test.jsonl", [{"sent1": first, "sent2": second, "labels": labels}])
    return folder


def legacy_clustering(folder: Path) -> Path:
    """Two sets of texts to cluster."""
    rng = np.random.default_rng(0)
    rows = [
        {"sentences": [sentence(rng, i % 3) for i in range(24)], "labels": [f"c{i % 3}" for i in range(24)]}
        for _ in range(2)
    ]
    lines(folder / "test.jsonl", rows)
    return folder


def reranking(folder: Path, queries: int = 12) -> Path:
    """Queries with four candidates each, half of them relevant; documents have titles."""
    rng = np.random.default_rng(0)
    corpus, asked, qrels, ranked = [], [], [], []
    for i in range(queries):
        asked.append({"_id": f"q{i}", "text": sentence(rng, i % 3)})
        ids = [f"d{i}-{k}" for k in range(4)]
        corpus += [{"_id": key, "title": "about" * (k % 2), "text": sentence(rng, (i + k) % 3)} for k, key in enumerate(ids)]
        qrels += [{"query-id": f"q{i}", "corpus-id": key, "score": int(k in (0, 3))} for k, key in enumerate(ids)]
        ranked.append({"query-id": f"q{i}", "corpus-ids": ids})
    for name, rows in (("corpus", corpus), ("queries", asked), ("qrels", qrels), ("ranked", ranked)):
        lines(folder / f"{name}.jsonl", rows)
    (folder / "README.md").write_text(RETRIEVAL_README)
    return folder


# mteb's class, and a copy of its dataset.
REAL = {
    "Banking77Classification": classification,
    "STS12": sts,
    "TwitterSemEval2015": pairs,
    "TwentyNewsgroupsClustering": legacy_clustering,
    "AskUbuntuDupQuestions": reranking,
}
