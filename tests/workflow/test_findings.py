"""summary.md of the finished tiny study: ten lines, with the numbers that the tables hold."""

import html
import re

import pandas as pd

from tests.workflow.conftest import Workspace


def written_lines(workspace: Workspace) -> list[str]:
    """The lines of summary.md without their numbers and marks."""
    text = workspace.path("results/summary.md").read_text("utf-8")
    return [re.sub(r"\*\*|`", "", line) for line in re.findall(r"^\d+\. (.+)$", text, re.M)]


def test_the_findings_hold_the_numbers_of_the_tables(finished: Workspace) -> None:
    lines = dict(line.split(". ", 1) for line in written_lines(finished))
    assert len(lines) == 10
    summary = pd.read_csv(finished.path("results/tables/layer_summary.csv"))
    whole = summary[(summary["task"] == "all") & (summary["protocol"] == "primary") & (summary["readout"] == "mean_normed")]
    assert set(whole["model"]) == {"neox", "bert"}
    for row in whole.itertuples():
        best = f"(depth {row.best_depth:.2f}): {100 * row.best:.1f} points, the last layer {100 * row.last:.1f} (1 task)"
        assert f"{row.model} layer {row.best_layer} of 3 {best}" in lines["Best layer"]
        interval = f"[{100 * row.gain_low:+.1f}, {100 * row.gain_high:+.1f}], n = 20 test items"
        assert f"{row.model} {100 * row.gain_cross_fitted:+.1f} {interval}" in lines["Gain over the last layer"]
    selection = pd.read_csv(finished.path("results/tables/layer_selection.csv"))
    shown = selection[(selection["protocol"] == "primary") & (selection["readout"] == "mean_normed")]
    for model, rows in shown.groupby("model"):
        picks, oracle = rows.dropna(subset=["metric", "score"]), rows[rows["selector"] == "oracle"]["score"].item()
        reached = f"{100 * picks['score'].max():.1f} of the oracle's {100 * oracle:.1f} points"
        assert re.search(rf"{model}: m(ax|in) [^;]+; \w+'s end\) takes layer \d and {re.escape(reached)}", str(lines))
    absent = ["Metrics and scores", "First token", "Untrained twins", "Training", "Changed tokens"]
    assert [title for title, text in lines.items() if text.startswith("Left out: ")] == absent


def test_the_page_says_the_same_and_no_rule_is_pending(finished: Workspace) -> None:
    page = finished.path("results/summary.html").read_text("utf-8")
    items = re.findall(r"<li><p>(.+?)</p></li>", page)
    assert [html.unescape(re.sub(r"<[^>]+>", "", item)) for item in items] == written_lines(finished)
    assert finished.pending("--", "results/summary.md") == {}
