"""What a rule says: progress with an estimate, an error as one sentence, its traceback in the log."""

import sys
import time
import warnings
from pathlib import Path

import pytest
from layerwise import progress
from layerwise.errors import DataError
from layerwise.progress import Progress, rule_log


def test_progress_is_printed_with_an_estimate_and_not_too_often(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    report = Progress("score m", every=5.0, clock=lambda: now)
    for now, done in ((101.0, 10), (106.0, 0), (110.0, 500), (112.0, 900), (120.0, 1000)):  # noqa: B007
        report(done, 2000)
    assert capsys.readouterr().err.splitlines() == [
        "score m: 500/2,000, about 28 s left",
        "score m: 1,000/2,000, about 19 s left",
    ]


def test_a_slow_first_step_is_not_taken_for_the_pace(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    report = Progress("score m", every=5.0, clock=lambda: now)
    for now, done in ((30.0, 1), (31.0, 2), (35.5, 3), (41.0, 5)):  # noqa: B007
        report(done, 31)
    assert capsys.readouterr().err.splitlines() == [
        "score m: 1/31",  # 30 s, most of them an import: not 900 s left
        "score m: 3/31",
        "score m: 5/31, about 72 s left",
    ]


def run(log: Path, action) -> None:
    with rule_log(str(log), "rule x") as report:
        action(report)


def test_what_a_rule_prints_is_on_the_terminal_and_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def action(report: Progress) -> None:
        print("to stdout")
        print("to stderr", file=sys.stderr)
        report.every = 0
        report(1, 4)
        warnings.warn("careful", stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run(tmp_path / "new" / "a.log", action)
    said, logged = capsys.readouterr(), (tmp_path / "new" / "a.log").read_text()
    assert said.out == ""  # stdout of a job is not the place where Snakemake looks
    for line in ("to stdout", "to stderr", "rule x: 1/4"):
        assert line in said.err
        assert line in logged


def fail(error: Exception):
    def action(_report: Progress) -> None:
        raise error

    return action


def test_an_expected_error_is_one_sentence_with_its_traceback_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(tmp_path / "a.log", fail(DataError("dataset 'd' has no samples; check its source.")))
    assert caught.value.code == 1
    said, logged = capsys.readouterr().err, (tmp_path / "a.log").read_text()
    assert said == "rule x: dataset 'd' has no samples; check its source.\n"
    assert "Traceback" in logged
    assert "DataError: dataset 'd'" in logged


def test_an_unexpected_error_names_itself_and_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(tmp_path / "a.log", fail(ZeroDivisionError("oh")))
    assert caught.value.code == 1
    assert capsys.readouterr().err == f"rule x: ZeroDivisionError: oh (traceback in {tmp_path / 'a.log'})\n"
    assert "in action" in (tmp_path / "a.log").read_text()


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_a_stop_passes_through(tmp_path: Path, signal: type[BaseException]) -> None:
    with pytest.raises(signal) as caught:
        run(tmp_path / "a.log", fail(signal(7)))
    assert caught.value.args == (7,)


def test_the_streams_are_given_back(tmp_path: Path) -> None:
    before = sys.stdout, sys.stderr
    with pytest.raises(SystemExit):
        run(tmp_path / "a.log", fail(ValueError()))
    assert (sys.stdout, sys.stderr) == before


def test_a_log_of_a_run_before_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("old")
    run(tmp_path / "a.log", lambda _report: print("new"))
    assert (tmp_path / "a.log").read_text() == "new\n"


def test_silent_work_is_heard_of_and_work_with_progress_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent, talking = Progress("silent"), Progress("talking", every=0.02)
    with progress._heard(silent, first=0.05):
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 4  # after 0.05, 0.15 and 0.35 seconds
    assert set(lines) <= {"silent: running for 0 s"}
    with progress._heard(talking, first=0.2):
        for done in range(1, 26):
            talking(done, 25)
            time.sleep(0.02)
    assert "running for" not in capsys.readouterr().err
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
