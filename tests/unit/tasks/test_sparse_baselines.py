"""TF-IDF of large tasks stays sparse; on small ones both ways give the same."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from layerwise.tasks import baselines as module
from layerwise.tasks import text_task
from layerwise.tasks.registry import load_kind, load_task_source
from layerwise.tasks.sparse import SparseStored, truncated
from scipy import sparse

from tests.table_files import TABLES, entry
from tests.task_builders import TYPES, texts_of


def tfidf(kind, files, frame: pd.DataFrame) -> dict[str, float]:
    found = kind.baselines(files, frame, Path())
    return {row["protocol"]: row["score"] for row in found if row["baseline"] == "tfidf"}


@pytest.mark.parametrize("kind", TYPES)
def test_sparse_and_dense_scores_agree(kind: str, make, monkeypatch: pytest.MonkeyPatch) -> None:
    files = make(kind)
    frame = pd.DataFrame({"text": texts_of(files)})
    dense = tfidf(text_task, files, frame)
    monkeypatch.setattr(module, "DENSE_CELLS", 0)
    thin = tfidf(text_task, files, frame)
    assert thin.keys() == dense.keys()
    for protocol, score in dense.items():  # clusters are found in fewer dimensions, mteb's max_ap has other distances too
        assert thin[protocol] == pytest.approx(score, abs={"clustering": 0.1, "pair_classification": 0.05}.get(kind, 1e-6))


def test_reranking_asks_for_similarities_of_sparse_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TABLES["reranking"][0].to_csv(tmp_path / "t.csv", index=False)
    load_task_source("retrieval").prepare(tmp_path / "task", "t", entry("reranking", tmp_path / "t.csv"), None)
    kind = load_kind("reranking")
    frame = kind.samples(tmp_path / "task", None, tmp_path)
    files = kind.load(tmp_path / "task")
    dense = tfidf(kind, files, frame)
    monkeypatch.setattr(module, "DENSE_CELLS", 0)
    assert tfidf(kind, files, frame) == pytest.approx(dense, abs=1e-5)


def test_similarities_are_cosines_and_truncation_keeps_few_columns() -> None:
    matrix = sparse.csr_array(np.eye(4))
    stored = SparseStored("t", {}, matrix, numbers=True)
    np.testing.assert_array_equal(stored.similarity(np.array([[0.0], [1.0]]), np.array([[1.0]])), [[0.0], [1.0]])
    wide = sparse.random_array((300, 5000), density=0.01, rng=np.random.default_rng(0), format="csr")
    assert truncated(wide, 0).shape == (300, 256)
