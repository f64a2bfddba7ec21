"""summary.md: what the study found, in ten lines computed from the tables; a line that cannot be written says why."""

import html
import re
from collections.abc import Callable, Mapping

import pandas as pd

from layerwise.tables import findings_metrics, findings_scores
from layerwise.tables.finding import Options, Unwritten

LINES: dict[str, Callable[[Mapping[str, pd.DataFrame], Options], str]] = {
    "Best layer": findings_scores.best_layer,
    "Gain over the last layer": findings_scores.gain,
    "Choosing without labels": findings_scores.selection,
    "Metrics and scores": findings_scores.correlation,
    "Baselines": findings_scores.baselines,
    "Compression valley": findings_metrics.valley,
    "First token": findings_metrics.first_token,
    "Untrained twins": findings_metrics.twin,
    "Training": findings_metrics.training,
    "Changed tokens": findings_metrics.levels,
}
HOW = (
    "Computed from `results/tables`. Layer 0 enters the first block, layer L leaves the last one; depth is layer / L; "
    "points are 100 times the score. Intervals are 95 %, each for itself."
)


def findings(tables: Mapping[str, pd.DataFrame], options: Options) -> dict[str, str]:
    """Write every line of ``LINES``, names in backquotes.

    Args:
        tables: from ``finding.read_results``; a table that the study does not make is absent.
        options: what the config says of models and headlines.

    Returns:
        Title to sentences, in the order of ``LINES``; then those with nothing to say: "Left out: " and the reason.
    """
    found, left_out = {}, {}
    for title, line in LINES.items():
        try:
            found[title] = line(tables, options)
        except Unwritten as reason:
            left_out[title] = f"Left out: {reason}"
    return found | left_out


def markdown(title: str, lines: Mapping[str, str]) -> str:
    """Return the findings as Markdown: a heading, how to read them, one item each."""
    items = [f"{number}. **{name}.** {text}" for number, (name, text) in enumerate(lines.items(), 1)]
    return "\n".join([f"# {title}", "", HOW, "", *items, ""])


def page(title: str, lines: Mapping[str, str]) -> str:
    """Return the findings as a piece of HTML that is also a page of its own."""
    items = [f"<li><p><b>{html.escape(name)}.</b> {_html(text)}</p></li>" for name, text in lines.items()]
    parts = [f"<h3>{html.escape(title)}</h3>", f"<p>{_html(HOW)}</p>", "<ol>", *items, "</ol>"]
    style = "font-family: sans-serif; max-width: 46em; margin: 1em auto; line-height: 1.4"
    return "\n".join(['<meta charset="utf-8">', f'<div style="{style}">', *parts, "</div>", ""])


def _html(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
