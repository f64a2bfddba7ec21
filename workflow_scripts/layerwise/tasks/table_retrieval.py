"""Reranking and retrieval from the user's own tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layerwise.errors import DataError
from layerwise.table_file import read_table, table_origin
from layerwise.tasks.mteb_files import write_benchmark
from layerwise.tasks.table_rows import Table

Options = dict[str, Any]
_MAIN_SCORES = {"reranking": ("Reranking", "map_at_1000"), "retrieval": ("Retrieval", "ndcg_at_10")}


def prepare(folder: Path, name: str, options: Options, _parent: Path | None) -> dict[str, str]:
    """Write the task's own tables to ``folder``; return their origin and licence."""
    facts, data, origin = retrieval_data(name, options)
    write_benchmark(folder, name, options, facts, data)
    return {"origin": origin, "licence": "unknown"}


def retrieval_data(name: str, options: Options) -> tuple[dict[str, Any], dict[str, dict[str, Any]], str]:
    """Return facts, data (see ``mteb_files``) and origin of a local reranking or retrieval task.

    Queries without a relevant document, or to rerank without an irrelevant one, say nothing: they are left out and
    counted, as mteb does.

    Raises:
        DataError: a file or column is missing, a cell does not hold what it should, an id occurs twice or is not known, or
            no query is left.
    """
    build = _reranking if options["type"] == "reranking" else _retrieval
    parts, origin = build(options)
    levels = {query: set(documents.values()) for query, documents in parts["relevant_docs"].items()}
    both = options["type"] == "reranking"
    kept = [query for query, found in levels.items() if max(found) > 0 and (not both or min(found) == 0)]
    if not kept:
        raise DataError(f"task {name!r}: no query of {origin} has a relevant document{' and one that is not' * both}.")
    dropped = len(parts["queries"]) - len(kept)
    for part in ("queries", "relevant_docs", "top_ranked"):
        if parts[part] is not None:
            parts[part] = {query: parts[part][query] for query in kept}
    kind, main_score = _MAIN_SCORES[options["type"]]
    facts = {
        "local": True,
        "task": name,
        "type": kind,
        "dataset": "local",
        "revision": "local",
        "split": "test",
        "train_split": None,
        "subset": "default",
        "subsets": ["default"],
        "languages": {"default": ["eng-Latn"]},
        "main_score": main_score,
        "retrieval": True,
        "n_queries_left_out": dropped,
    }
    return facts, {"default": {"test": parts}}, origin


def _reranking(options: Options) -> tuple[dict[str, Any], str]:
    table = Table(options["table"], "reranking")
    queries, documents = table.texts("query"), table.texts("document")
    levels = table.numbers("relevant", _whole, "no whole number from 0 on")
    numbers = {text: f"q{i:07d}" for i, text in enumerate(dict.fromkeys(queries))}
    ids = {text: f"d{i:07d}" for i, text in enumerate(dict.fromkeys(documents))}
    relevant: dict[str, dict[str, int]] = {number: {} for number in numbers.values()}
    for row, (query, document, level) in enumerate(zip(queries, documents, levels, strict=True)):
        known = relevant[numbers[query]].setdefault(ids[document], int(level))
        if known != int(level):
            raise table.fail("relevant", row, f"says {int(level)}, an earlier row of the same query and document {known}")
    parts = {
        "corpus": {number: text.strip() for text, number in ids.items()},
        "queries": {number: text for text, number in numbers.items()},
        "relevant_docs": relevant,
        "top_ranked": {query: list(documents) for query, documents in relevant.items()},
    }
    return parts, table_origin(table.path)


def _retrieval(options: Options) -> tuple[dict[str, Any], str]:
    corpus, queries = (_texts(options[part]) for part in ("corpus", "queries"))
    entry = options["qrels"]
    columns = [entry["query"], entry["document"], *([entry["relevance"]] if entry["relevance"] else [])]
    frame = read_table(entry["path"], *columns)
    levels = _levels(frame, entry)
    relevant: dict[str, dict[str, int]] = {query: {} for query in queries}
    for row, (query, document) in enumerate(zip(frame[entry["query"]], frame[entry["document"]], strict=True)):
        for key, known, role, file in ((query, queries, "query", "queries"), (document, corpus, "document", "corpus")):
            if str(key) not in known:
                raise DataError(
                    f"table {entry['path']!r}: column {entry[role]!r} of row {row + 1} names {str(key)!r}, which is not in "
                    f"{options[file]['path']!r}; add it there or remove the row."
                )
        relevant[str(query)][str(document)] = levels[row]
    judged = {query: documents for query, documents in relevant.items() if documents}
    origin = ", ".join(table_origin(options[part]["path"]) for part in ("corpus", "queries", "qrels"))
    return {"corpus": corpus, "queries": queries, "relevant_docs": judged, "top_ranked": None}, origin


def _texts(entry: dict[str, Any]) -> dict[str, str]:
    """Texts by id; a title is put before the text, as mteb does."""
    path, title = entry["path"], entry["title"]
    frame = read_table(path, entry["id"], entry["text"], *([title] if title else []))
    found: dict[str, str] = {}
    for row, (key, text) in enumerate(zip(frame[entry["id"]].astype(str), frame[entry["text"]], strict=True)):
        if not isinstance(text, str):
            raise DataError(
                f"table {path!r}: column {entry['text']!r} of row {row + 1} holds no text (found {text!r}); correct it."
            )
        if key in found:
            raise DataError(
                f"table {path!r}: column {entry['id']!r} of row {row + 1} repeats id {key!r}; every row needs its own."
            )
        above = frame[title].iloc[row] if title else ""
        found[key] = f"{above} {text}".strip() if isinstance(above, str) and above else text.strip()
    return found


def _levels(frame: pd.DataFrame, entry: dict[str, Any]) -> list[int]:
    if entry["relevance"] is None:
        return [1] * len(frame)
    values = pd.to_numeric(frame[entry["relevance"]], errors="coerce").astype(float)
    wrong = next((row for row, value in enumerate(values) if not (np.isfinite(value) and _whole(value))), None)
    if wrong is not None:
        raise DataError(
            f"table {entry['path']!r}: column {entry['relevance']!r} of row {wrong + 1} holds no whole number from 0 on "
            f"(found {frame[entry['relevance']].tolist()[wrong]!r}); correct or remove the row."
        )
    return [int(value) for value in values]


def _whole(value: float) -> bool:
    return value >= 0 and value == int(value)
