"""training_dynamics.csv: rows joined by key over the checkpoints of a run, whatever the order of the files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.records import write_record
from layerwise.tables.dynamics import COLUMNS, training_dynamics
from layerwise.tables.frames import METRIC_COLUMNS, SCORE_COLUMNS, typed
from table_inputs import metric_rows, score_rows

STEPS = (0, 4, 10)
NONE = typed(pd.DataFrame(columns=[*METRIC_COLUMNS])), typed(pd.DataFrame(columns=[*SCORE_COLUMNS]))


def name(step: int, run: str = "run") -> str:
    return f"{run}@step{step}"


def similarity(folder: Path, model: str, values: list[float], **changes: Any) -> Path:
    """A record of two blocks whose stability at layer i is values[i]."""
    layers = [
        {"layer": i, "depth": i / 2, "stability": value, "stability_debiased": value - 0.1}
        | {"layer_change": None if i == 0 else value / 2, "layer_change_debiased": None if i == 0 else value / 4}
        for i, value in enumerate(values)
    ]
    entries = [{"readout": readout, "n_samples": 50, "layers": layers} for readout in ("mean", "mean_normed")]
    record = {"model": model, "dataset": "corpus", "n_layers": 2, "records": entries} | changes
    path = folder / model / str(record["dataset"]) / "layer_similarity.json"
    write_record(path, record)
    return path


def study(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, list[Path], list[Path]]:
    metrics = [metric_rows([step, 1, 2], model=name(step), n=50, unit="nats") for step in STEPS]
    metrics += [
        metric_rows([5, 6, 7 + step], model=name(step), metric="prompt_entropy", readout="", recipe="raw") for step in STEPS
    ]
    metrics += [metric_rows([0, 0, step], "easy", model=name(step)) for step in STEPS]
    metrics += [metric_rows([0, 0, 0], model="other"), metric_rows([0, 0, 0], model="alone@step3")]
    metrics += [metric_rows([0, 0, 9], model=name(0), tap="mlp")]
    scores = [score_rows([0.1, 0.2, step / 100], "easy", model=name(step)) for step in STEPS]
    scores += [score_rows([0.3, 0.4, step / 50], "hard", model=name(step)) for step in STEPS]
    scores += [score_rows([0.9, 0.9, 0.9], "late", model=name(10))]  # not of every checkpoint
    scores += [score_rows([0.7, 0.7, 0.7], "easy", model=name(0), readout="mean_normed")]
    scores += [score_rows([0.8, 0.8, 0.8], "easy", model=name(step), protocol="standardised") for step in STEPS]
    similar = [similarity(folder, name(step), [0.5, 0.6, step / 10]) for step in STEPS]
    points = [{"step": step, "train_loss": 3.0 - step / 10, "heldout_loss": 4.0 - step / 10} for step in STEPS]
    record = folder / "run" / "training.json"
    write_record(record, {"name": "run", "checkpoints": points})
    return pd.concat(metrics), pd.concat(scores), similar, [record]


def test_what_is_known_of_a_checkpoint_stands_in_one_row(tmp_path: Path) -> None:
    table = training_dynamics(*study(tmp_path))
    assert tuple(table.columns) == COLUMNS
    assert set(table["model"]) == {"run"}
    assert not table.duplicated(["model", "step", "dataset", "metric", "variant", "readout", "recipe", "layer"]).any()
    row = table[(table["metric"] == "dime") & (table["dataset"] == "corpus") & (table["step"] == 4)]
    assert row["layer"].tolist() == [0, 1, 2]
    assert row["value"].tolist() == [4.0, 1.0, 2.0]
    assert row["change_to_final"].tolist() == [-6.0, 0.0, 0.0]
    assert row["stability"].tolist() == [0.5, 0.6, 0.4]
    assert row["stability_debiased"].tolist() == pytest.approx([0.4, 0.5, 0.3])
    assert row["score"].tolist() == pytest.approx([0.55, 0.6, 0.44])  # of two tasks, 'easy' by its primary protocol
    assert set(row["n_tasks"]) == {2}
    assert set(row["train_loss"]) == {2.6}
    assert set(row["heldout_loss"]) == {3.6}


def test_layer_change_is_a_metric_that_layer_zero_lacks(tmp_path: Path) -> None:
    table = training_dynamics(*study(tmp_path))
    change = table[(table["metric"] == "layer_change") & (table["readout"] == "mean") & (table["step"] == 10)]
    assert change[change["variant"] == "paper"]["layer"].tolist() == [0, 1, 2]
    np.testing.assert_equal(change[change["variant"] == "paper"]["value"].to_numpy(), [np.nan, 0.3, 0.5])
    np.testing.assert_equal(change[change["variant"] == "debiased"]["value"].to_numpy(), [np.nan, 0.15, 0.25])
    assert set(change["change_to_final"].dropna()) == {0.0}
    assert change["stability"].tolist() == [0.5, 0.6, 1.0] * 2  # layer 0 has one
    assert set(change["n"]) == {50}
    earlier = table[(table["metric"] == "layer_change") & (table["step"] == 0) & (table["variant"] == "paper")]
    assert earlier["change_to_final"].dropna().tolist() == pytest.approx([0.0, -0.5] * 2)


def test_token_metrics_stand_beside_the_headline_readout(tmp_path: Path) -> None:
    inputs = study(tmp_path)
    for headline, score in (("mean", [0.55, 0.6, 0.4]), ("mean_normed", [np.nan] * 3)):
        table = training_dynamics(*inputs, headline_readout=headline)
        row = table[(table["recipe"] == "raw") & (table["step"] == 0)]
        assert set(row["joined_readout"]) == {headline}
        assert row["stability"].tolist() == [0.5, 0.6, 0.0]
        np.testing.assert_allclose(row["score"], score)


def test_a_metric_on_a_tasks_texts_has_that_tasks_score_and_no_stability(tmp_path: Path) -> None:
    table = training_dynamics(*study(tmp_path))
    own = table[(table["task"] == "easy") & (table["step"] == 4)]
    assert own["score"].tolist() == [0.8, 0.8, 0.8]
    assert set(own["n_tasks"]) == {1}
    assert own["stability"].isna().all()


def test_the_order_of_files_and_rows_plays_no_part(tmp_path: Path) -> None:
    metrics, scores, similar, trainings = study(tmp_path)
    first = training_dynamics(metrics, scores, similar, trainings)
    second = training_dynamics(metrics.iloc[::-1], scores.sample(frac=1, random_state=0), similar[::-1], trainings)
    pd.testing.assert_frame_equal(first, second)


def test_runs_of_the_hub_have_no_loss_and_studies_without_runs_no_rows(tmp_path: Path) -> None:
    metrics, scores, similar, _ = study(tmp_path)
    table = training_dynamics(metrics, scores, similar)
    assert table["heldout_loss"].isna().all()
    assert table["stability"].notna().any()
    for empty in (training_dynamics(*NONE, []), training_dynamics(metric_rows([1, 2], model="m"), NONE[1], [])):
        assert empty.empty
        assert tuple(empty.columns) == COLUMNS


def test_similarities_alone_suffice(tmp_path: Path) -> None:
    paths = [similarity(tmp_path, name(step), [0.5, 0.6, 0.7]) for step in STEPS]
    table = training_dynamics(*NONE, paths)
    assert set(table["metric"]) == {"layer_change"}
    assert len(table) == len(STEPS) * 3 * 2 * 2  # three layers, two readouts, two variants


def test_damaged_records_are_refused(tmp_path: Path) -> None:
    path = similarity(tmp_path, name(0), [0.5, 0.6, 0.7], n_layers=3)
    with pytest.raises(FileError, match="has layers 0-2, 0-3 expected"):
        training_dynamics(*NONE, [path])
    path = similarity(tmp_path, name(0), [0.5, 0.6, 0.7])
    with pytest.raises(FileError, match=r"two layer similarities of run@step0 on corpus"):
        training_dynamics(*NONE, [path, path])
    write_record(tmp_path / "training.json", {"name": "run", "checkpoints": [{"step": 3}]})
    with pytest.raises(FileError, match="lacks train_loss, heldout_loss"):
        training_dynamics(*NONE, [], [tmp_path / "training.json"])
