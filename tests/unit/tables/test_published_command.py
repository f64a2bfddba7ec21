"""`make published`: the files it writes, what it prints, and one sentence where it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from layerwise.tables.published import COMPARISON, TABLES
from published_inputs import ROOT, small_metrics, small_scores, write_csv
from table_inputs import metric_rows, score_rows

SCORES = {"STS12": [0.1, 0.5, 0.4, 0.2, 0.3], "SICK-R": [0.2, 0.1, 0.6, 0.3, 0.4]}


def published(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    command = [sys.executable, str(ROOT / "tools" / "published.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = ("dime", "infonce", "entropy_dataset")
    write_csv(tmp_path / "in", small_scores(SCORES), pd.concat([small_metrics(SCORES, name) for name in names]))
    return tmp_path


def test_tables_figures_and_comparison(folder: Path) -> None:
    results = folder / "results" / "tables"
    results.mkdir(parents=True)
    metric_rows([1.0, 2, 3, 4, 5]).to_csv(results / "metrics.csv", index=False)
    score_rows([0.2] * 5, "STS12").to_csv(results / "scores.csv", index=False)
    done = published(folder, "in", "m=Pythia/410m/main")
    assert done.returncode == 0, done.stderr
    assert "Pythia 410m     main        2           2  50.0  35.0" in done.stdout
    assert "min-dataset_entropy" in done.stdout
    for name, columns in (TABLES | {"published_comparison": COMPARISON}).items():
        table = pd.read_csv(results / f"{name}.csv")
        assert tuple(table.columns) == columns
        assert len(table), name
    for name in ("scores", "selection"):
        for ending in ("png", "pdf"):
            assert (folder / "results" / "figures" / f"published_{name}.{ending}").stat().st_size > 5000


def test_nothing_to_compare_with(folder: Path) -> None:
    done = published(folder, "in")
    assert done.returncode == 0, done.stderr
    assert "Nothing is compared: name a model of ours" in done.stdout
    assert pd.read_csv(folder / "results" / "tables" / "published_comparison.csv").empty
    assert "there is no results/tables/scores.csv" in published(folder, "in", "m=Pythia/410m/main").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "make published DIR=FOLDER"),
        ([""], "make published DIR=FOLDER"),
        (["nowhere"], "nowhere holds no published scores"),
        (["in", "m"], "MODEL=m does not pair"),
        (["in", "m=Pythia/410m"], "MODEL=m=Pythia/410m does not pair"),
        (["in", "m=a/b/c", "m=a/b/c"], "each of ours once"),
    ],
)
def test_one_sentence(folder: Path, arguments: list[str], message: str) -> None:
    done = published(folder, *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "results").exists()
