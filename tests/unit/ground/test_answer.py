"""tools/answer.py: the answer, or one sentence on why there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from layerwise.tables.summary import layer_summary

ROOT = Path(__file__).parents[3]


def summary() -> pd.DataFrame:
    cell = {
        "model": "NA",
        "task": "t",
        "type": "sts",
        "protocol": "mteb",
        "readout": "mean_normed",
        "baseline": "",
        "tap": "residual",
    }
    return layer_summary(pd.DataFrame([cell | {"layer": i, "depth": i / 8, "score": 0.1 * (i % 6)} for i in range(9)]))


def answer(folder: Path, table: str | None) -> tuple[int, str, list[str]]:
    (folder / "results/tables").mkdir(parents=True)
    (folder / "config.yaml").write_text("headline_readout: mean_normed")
    if table is not None:
        (folder / "results/tables/layer_summary.csv").write_text(table)
        (folder / "results/tables/scores.csv").write_text("")
        age = 2_000_000_000 if "older" in folder.name else 0
        os.utime(folder / "results/tables/scores.csv", (age, age))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/answer.py")],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_the_answer_of_a_model_called_na(tmp_path: Path) -> None:
    code, said, problems = answer(tmp_path / "fresh", summary().to_csv(index=False))
    assert (code, problems) == (0, [])
    assert said.splitlines()[3].split() == ["NA", "t", "5/8", "50.0", "20.0", "-", "-"]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            None,
            "There is no results/tables/layer_summary.csv yet: run 'make run' first, with at least one task in config.yaml.",
        ),
        ("", "layer_summary.csv is not a table (No columns to parse from file): delete it and run 'make run'."),
        (summary().drop(columns="flag").to_csv(), "was made by an older version (it lacks flag): run 'make run' first."),
    ],
)
def test_one_sentence_where_there_is_no_answer(table: str | None, sentence: str, tmp_path: Path) -> None:
    code, said, problems = answer(tmp_path / "fresh", table)
    assert (code, said, len(problems)) == (1, "", 1)
    assert problems[0].endswith(sentence)


def test_a_summary_that_is_older_than_the_scores_is_shown_with_a_sentence(tmp_path: Path) -> None:
    code, said, problems = answer(tmp_path / "older", summary().to_csv(index=False))
    assert (code, len(problems)) == (0, 1)
    assert problems[0].endswith("layer_summary.csv is older than scores.csv: run 'make run' to bring it up to date.")
    assert "50.0" in said
