"""The user's own task tables, tiny, and the entries that name them."""

from pathlib import Path
from typing import Any

import pandas as pd
from layerwise.config_tasks import TaskEntry


def labelled(n: int = 40, split: bool = False) -> pd.DataFrame:
    """Texts of two labels."""
    frame = pd.DataFrame({"body": [f"{'ab'[i % 2]} text {i}" for i in range(n)], "urgent": [i % 2 for i in range(n)]})
    return frame.assign(part=["train" if i < n // 2 else "test" for i in range(n)]) if split else frame


def pairs(n: int = 20, value: str = "score") -> pd.DataFrame:
    """Pairs of texts with a score or a label."""
    values = [i % 2 if value == "label" else i / n for i in range(n)]
    return pd.DataFrame({"a": [f"first {i}" for i in range(n)], "b": [f"second {i % 7}" for i in range(n)], value: values})


def candidates(queries: int = 10) -> pd.DataFrame:
    """Queries with three candidates; the last query has no relevant one."""
    rows = [(f"query {q}", f"document {q} {d}", int(d == 0 and q < queries - 1)) for q in range(queries) for d in range(3)]
    return pd.DataFrame(rows, columns=["question", "answer", "good"])


TABLES: dict[str, tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]] = {
    "classification": (labelled(split=True), {"text": "body", "label": "urgent", "split": "part"}, {}),
    "clustering": (labelled(), {"text": "body", "label": "urgent"}, {}),
    "sts": (pairs(), {"first": "a", "second": "b"}, {}),
    "pair_classification": (pairs(value="label"), {"first": "a", "second": "b"}, {}),
    "reranking": (candidates(), {"query": "question", "document": "answer", "relevant": "good"}, {}),
}


def entry(kind: str, path: Path, **changes: Any) -> dict[str, Any]:
    """The config's entry of a task whose table lies at ``path``."""
    _, columns, others = TABLES[kind]
    table = {key: value for key, value in ({"path": str(path)} | columns | changes).items() if value is not None}
    return TaskEntry(name="t", type=kind, table=table, **others).model_dump(exclude={"name"})


def retrieval(folder: Path, **changes: Any) -> dict[str, Any]:
    """Write a corpus, queries and judgements; return the config's entry."""
    folder.mkdir(exist_ok=True)
    frames = {
        "corpus": pd.DataFrame({"key": range(12), "head": ["", "On it"] * 6, "text": [f"document {i}" for i in range(12)]}),
        "queries": pd.DataFrame({"id": [f"q{i}" for i in range(6)], "text": [f"document {i} ?" for i in range(6)]}),
        "qrels": pd.DataFrame({"query": [f"q{i}" for i in range(5)], "document": range(5), "relevance": [1, 2, 1, 1, 0]}),
    } | changes
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    path = {name: str(folder / f"{name}.csv") for name in frames}
    return TaskEntry(
        name="t",
        type="retrieval",
        corpus={"path": path["corpus"], "id": "key", "title": "head"},
        queries={"path": path["queries"]},
        qrels={"path": path["qrels"], "relevance": "relevance"},
    ).model_dump(exclude={"name"})
