"""summary.md: every line from made tables, the reason where a line cannot be written, and bad tables."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from layerwise.errors import FileError
from layerwise.tables import findings_metrics, findings_scores
from layerwise.tables.correlation import correlations
from layerwise.tables.finding import COLUMNS, MOST, Options, Unwritten, listed, read_results
from layerwise.tables.findings import LINES, findings, markdown, page
from layerwise.tables.selection import layer_selection
from layerwise.tables.summary import layer_summary

from tests.unit.tables import table_inputs

OPTIONS = Options(["m", "other"], {"m": "twin"}, "mean", "corpus")
DEPTH = np.linspace(0, 1, 13)
HUMP = 0.5 + 0.3 * np.sin(np.pi * DEPTH)  # best at layer 6 of 12


def read(folder: Path, frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables as the rule reads them, through their files."""
    folder.mkdir(exist_ok=True)
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return read_results({name: folder / f"{name}.csv" for name in frames})


def scored(folder: Path, tasks: int = 6) -> dict[str, pd.DataFrame]:
    """The tables of a model whose middle layer is best on every task, and whose DiME runs with the score."""
    rng = np.random.default_rng(0)
    names = [f"t{i}" for i in range(tasks)]
    curves = {name: HUMP + 0.01 * rng.normal(size=13) for name in names}
    metrics, scores = table_inputs.tables(curves, curves)
    baseline = table_inputs.score_rows([0.6, 0.6], "t0", baseline="tfidf").iloc[:1].assign(model="", readout="", layer=pd.NA)
    scores = pd.concat([scores, baseline], ignore_index=True)
    directions = {"dime": {"paper": {"theory": "max", "study": "min"}}}
    made = {
        "metrics": metrics,
        "layer_summary": layer_summary(scores),
        "correlations": correlations(metrics, scores),
        "layer_selection": layer_selection(metrics, scores, None, directions),
    }
    return read(folder, made)


def curve(values: np.ndarray, metric: str, model: str = "m", **changes: object) -> pd.DataFrame:
    return table_inputs.metric_rows(values, metric=metric, model=model, readout="", parameters="{}", n=50, **changes)


def test_the_best_layer_is_named_with_its_depth_and_the_tasks(tmp_path: Path) -> None:
    text = findings_scores.best_layer(scored(tmp_path), OPTIONS)
    assert "`m` layer 6 of 12 (depth 0.50): 80." in text
    assert "the last layer 50." in text or "the last layer 49." in text
    assert "(6 tasks)" in text


def test_the_gain_is_cross_fitted_and_says_over_what(tmp_path: Path) -> None:
    tables = scored(tmp_path, tasks=9)
    text = findings_scores.gain(tables, OPTIONS)
    row = tables["layer_summary"].query("task == 'all' and protocol == 'primary'").iloc[0]
    numbers = [f"{100 * row[name]:+.1f}" for name in ("gain_cross_fitted", "gain_low", "gain_high")]
    assert "`m` {} [{}, {}], n = 9 tasks".format(*numbers) in text
    with pytest.raises(Unwritten, match="too few tasks to choose on one half"):
        findings_scores.gain(scored(tmp_path, tasks=2), OPTIONS)


def test_the_nearest_selector_is_compared_with_what_needs_nothing(tmp_path: Path) -> None:
    text = findings_scores.selection(scored(tmp_path), OPTIONS)
    assert "`m`: max `dime` (paper, mean; theory's end) takes layer 6" in text
    assert "beats the last layer (+30." in text
    assert "and the middle one (+0.3) and a random one (+12.9) (6 tasks" in text
    assert "no interval below 8 tasks" in text


def test_a_selector_that_beats_nothing_says_so() -> None:
    over = pd.Series({"last": -0.01, "middle": 0.0, "random": -0.2})
    text = findings_scores._against(over)
    assert text == "beats neither the last layer (-1.0) nor the middle one (+0.0) nor a random one (-20.0)"


def test_eight_tasks_give_an_interval_and_a_corrected_test(tmp_path: Path) -> None:
    text = findings_scores.selection(scored(tmp_path, tasks=9), OPTIONS)
    assert "over the last: [+2" in text or "over the last: [+3" in text
    assert "q = 0.00" in text


def test_correlation_counts_what_survives_correction(tmp_path: Path) -> None:
    text = findings_scores.correlation(scored(tmp_path), OPTIONS)
    assert "`m`: `dime` (paper, mean) +" in text
    assert "over 13 layers, 6 tasks, q = " in text
    assert "of 1 relations are found" in text


def test_correlation_of_few_layers_is_left_out(tmp_path: Path) -> None:
    metrics, scores = table_inputs.tables({"t": [1, 2, 4, 3, 5.0]}, {"t": [1, 2, 3, 5, 4.0]})
    tables = read(tmp_path, {"correlations": correlations(metrics, scores)})
    with pytest.raises(Unwritten, match="eight layers"):
        findings_scores.correlation(tables, OPTIONS)


def test_a_task_that_a_baseline_wins_is_named(tmp_path: Path) -> None:
    tables = scored(tmp_path)
    rows = tables["layer_summary"]
    assert "in 1 of 1 pairs" in findings_scores.baselines(tables, OPTIONS)
    rows.loc[rows["task"] == "t0", "baseline_score"] = 0.95
    text = findings_scores.baselines(tables, OPTIONS)
    assert "in 0 of 1 pairs" in text
    assert "not in `t0` of `m` (tfidf 95.0, best layer 8" in text


def test_a_valley_is_told_from_none(tmp_path: Path) -> None:
    dip = np.where((DEPTH > 0.2) & (DEPTH < 0.8), 0.1, 0.7)
    rows = [
        curve(dip, "prompt_entropy", recipe="raw"),
        curve(np.full(13, 0.8), "prompt_entropy", recipe="centre_unit_skip_first"),
        curve(np.linspace(0.9, 0.1, 13), "prompt_entropy", recipe="centre_unit"),  # falls, and does not rise again
        curve(dip, "prompt_entropy", recipe="centre_unit_skip_first", variant="released"),
    ]
    text = findings_metrics.valley(read(tmp_path, {"metrics": pd.concat(rows)}), OPTIONS)
    assert (
        "`m` a valley in `raw` (0.70, 0.10 at layer 3, 0.70), none in `centre_unit`, `centre_unit_skip_first` (n = 50)"
        in text
    )


def test_the_first_token_is_found_at_its_longest(tmp_path: Path) -> None:
    ratio = np.where(np.arange(13) == 4, 163.0, 1.0)
    rows = [curve(ratio, "sink_norm_ratio", recipe="raw"), curve(ratio / 164, "sink_variance_share", recipe="raw")]
    text = findings_metrics.first_token(read(tmp_path, {"metrics": pd.concat(rows)}), OPTIONS)
    assert "`m` 163 times the median of the others at layer 4 of 12, with 99.4 % of the squared norms (n = 50)" in text
    alone = findings_metrics.first_token(read(tmp_path, {"metrics": rows[0]}), OPTIONS)
    assert "squared norms" not in alone


def test_only_curves_like_the_twins_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [
        curve(DEPTH, "curvature", recipe="raw"),
        curve(DEPTH**2, "curvature", model="twin", recipe="raw"),
        curve(HUMP, "prompt_entropy", recipe="centre_unit_skip_first"),
        curve(rng.normal(size=13), "prompt_entropy", model="twin", recipe="centre_unit_skip_first"),
        curve(np.ones(13), "sink_norm_ratio", recipe="raw"),  # constant: no correlation
        curve(DEPTH, "sink_norm_ratio", model="twin", recipe="raw"),
    ]
    text = findings_metrics.twin(read(tmp_path, {"metrics": pd.concat(rows)}), OPTIONS)
    assert "1 of 2 metrics of `m`, n = 50 (`curvature` of tokens +1.00)" in text
    with pytest.raises(Unwritten, match="has an untrained twin"):
        findings_metrics.twin({}, Options(["m"], {}, "mean", ""))
    with pytest.raises(Unwritten, match="both a model and its untrained twin"):
        findings_metrics.twin(read(tmp_path, {"metrics": rows[0]}), OPTIONS)


def dynamics() -> pd.DataFrame:
    rows = [
        {"model": "run", "dataset": "corpus", "metric": "layer_change", "variant": "paper", "readout": "mean", "step": step}
        | {"layer": layer, "value": 0.1, "stability": 1.0 if step else 0.9 - 0.2 * layer, "heldout_loss": 6.25 - step / 100}
        | {"n": 40, "task": "", "recipe": "", "joined_readout": "mean", "score": 0.5 + step / 1000 + layer / 100}
        for step in (0, 200)
        for layer in range(3)
    ]
    return pd.DataFrame(rows)


def test_training_says_loss_score_and_the_layer_that_moved_most(tmp_path: Path) -> None:
    text = findings_metrics.training(read(tmp_path, {"training_dynamics": dynamics()}), OPTIONS)
    assert "`run` (steps 0 to 200, n = 40): held-out loss 6.25 to 4.25, score of the best layer 52.0 to 72.0" in text
    assert "least like its end is layer 2 (linear CKA 0.50), most layer 0 (0.90)" in text


def test_levels_say_what_the_highest_does(tmp_path: Path) -> None:
    parts = [
        curve(np.full(4, 0.8 * (1 - level)), "prompt_entropy", recipe="centre_unit_skip_first").assign(
            transform="repeat_tokens", level=level, draw=draw
        )
        for level in (0.0, 0.5, 1.0)
        for draw in (0, 1)
    ]
    text = findings_metrics.levels(read(tmp_path, {"levels": pd.concat(parts)}), OPTIONS)
    assert "repeat tokens from 0 to 1 (`corpus`, n = 50): `prompt_entropy` (centre_unit_skip_first) `m` 0.80 to 0.00" in text


def test_a_study_of_nothing_has_ten_reasons() -> None:
    lines = findings({}, OPTIONS)
    assert list(lines) == list(LINES)
    assert len(lines) == 10
    assert lines["Best layer"] == "Left out: the study has no tasks."
    assert all(text.startswith("Left out: ") and text.endswith(".") for text in lines.values())


def test_what_there_is_comes_before_what_is_left_out(tmp_path: Path) -> None:
    lines = findings(read(tmp_path, {"training_dynamics": dynamics()}), OPTIONS)
    assert next(iter(lines)) == "Training"
    assert [*lines][1:3] == ["Best layer", "Gain over the last layer"]


def test_empty_and_undefined_tables_give_reasons_and_no_error(tmp_path: Path) -> None:
    for rows in (0, 3):  # no rows at all, then rows in which every number is undefined
        frames = {
            name: pd.DataFrame([dict.fromkeys(text.split(), "m") | dict.fromkeys(numbers.split())] * rows)
            if rows
            else pd.DataFrame(columns=[*text.split(), *numbers.split()])
            for name, (text, numbers) in COLUMNS.items()
        }
        lines = findings(read(tmp_path, frames), OPTIONS)
        left_out = [title for title, text in lines.items() if text.startswith("Left out: ")]
        assert len(left_out) == 10, lines


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("model,value\nm,1\n")
    with pytest.raises(FileError, match=r"metrics\.csv is not the table it should be .*; delete it and run again"):
        read_results({"metrics": path})
    frame = curve(DEPTH, "curvature", recipe="raw")
    frame.astype({"value": object}).assign(value="high").to_csv(path, index=False)
    with pytest.raises(FileError, match="high"):
        read_results({"metrics": path})
    with pytest.raises(FileError, match=r"absent\.csv"):
        read_results({"metrics": tmp_path / "absent.csv"})


def test_long_lists_are_cut_and_say_where_the_rest_is() -> None:
    assert listed(["a"] * MOST, "x.csv") == "; ".join("a" * MOST)
    assert listed(["a"] * (MOST + 2), "x.csv").endswith("; 2 more in `x.csv`")


def test_markdown_and_page_hold_the_same_and_escape_what_a_name_may_hold() -> None:
    lines = {"Best layer": "`a&b` <i>, 1 < 2.", "Second": "Left out: none."}
    text = markdown("A <study>", lines)
    assert text.splitlines()[0] == "# A <study>"
    assert text.splitlines()[4:] == ["1. **Best layer.** `a&b` <i>, 1 < 2.", "2. **Second.** Left out: none."]
    made = page("A <study>", lines)
    assert "<h3>A &lt;study&gt;</h3>" in made
    assert "<b>Best layer.</b> <code>a&amp;b</code> &lt;i&gt;, 1 &lt; 2." in made
    assert made.count("<li>") == 2
