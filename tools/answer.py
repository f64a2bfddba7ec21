"""Print what the study found: the best layer per model and task, the time of each stage, and where the report is.

Usage: python tools/answer.py. Used by `make demo` after the run; reads results/ only.
"""

import sys
from pathlib import Path

import pandas as pd
import yaml
from layerwise.tables.closing import closing_table
from layerwise.tables.summary import COLUMNS

RESULTS = Path("results")
STAGES = (
    ("models", "download_model"),
    ("models", "train_model"),
    ("data", "prepare_dataset"),
    ("data", "write_traces"),
    ("activations", "extract_activations"),
    ("activations", "join_shards"),
    ("metrics", "compute_metric"),
    ("metrics", "compare_layers"),
    ("tasks", "prepare_task"),
    ("tasks", "score_task"),
    ("tasks", "probe_attention"),
    ("tables", "collect_records"),
    ("tables", "collect_levels"),
    ("tables", "build_table"),
    ("tables", "cost_layers"),
    ("tables", "write_findings"),
    ("figures", "draw_figure"),
    ("export", "export_model"),
)


def stage_times() -> str:
    """Return the jobs, summed seconds and peak memory of each stage, from the rules' benchmark files."""
    rows: dict[str, list[pd.DataFrame]] = {}
    for stage, rule in STAGES:
        files = sorted((RESULTS / "benchmarks").glob(f"{rule}/**/*.tsv")) + sorted(RESULTS.glob(f"benchmarks/{rule}.tsv"))
        rows.setdefault(stage, []).extend(pd.read_csv(file, sep="\t", na_values=["-"]) for file in files)
    lines = [f"{'stage':<12} {'jobs':>5} {'seconds':>9} {'peak MiB':>9}"]
    for stage, frames in rows.items():
        if frames:
            table = pd.concat(frames)
            lines.append(f"{stage:<12} {len(table):>5} {table['s'].sum():>9.1f} {table['max_rss'].max():>9.0f}")
    return "\n".join(lines)


def read_summary(path: Path) -> tuple[pd.DataFrame, str]:
    """Return the summary, and in one sentence why there is none or why it is not up to date ("" if it is)."""
    nothing = pd.DataFrame()
    if not path.is_file():
        return nothing, f"There is no {path} yet: run 'make run' first, with at least one task in config.yaml."
    try:
        # no word is a missing value: a model may be called NA
        text = [name for name in COLUMNS if name in ("model", "task", "type", "protocol", "readout", "best_baseline")]
        table = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(text, "str"))
    except ValueError as error:
        return nothing, f"{path} is not a table ({error}): delete it and run 'make run'."
    missing = [column for column in COLUMNS if column not in table]
    if missing:
        return nothing, f"{path} was made by an older version (it lacks {', '.join(missing)}): run 'make run' first."
    scores = path.with_name("scores.csv")
    if scores.is_file() and scores.stat().st_mtime > path.stat().st_mtime:
        return table, f"{path} is older than {scores.name}: run 'make run' to bring it up to date."
    return table, ""


def main() -> int:
    """Print the answer; return 1 where there is none yet."""
    summary, problem = read_summary(RESULTS / "tables" / "layer_summary.csv")
    if problem:
        print(problem, file=sys.stderr)
    if problem and summary.empty:
        return 1
    readout = yaml.safe_load(Path("config.yaml").read_text("utf-8")).get("headline_readout", "mean_normed")
    print(closing_table(summary, readout))
    print(f"\n{stage_times()}\n(seconds add up over jobs, which ran side by side)")
    print(f"\nFindings in ten lines: {RESULTS / 'summary.md'}")
    print(f"Tables: {RESULTS / 'tables'}   Figures: {RESULTS / 'figures'}   Report: {RESULTS / 'report.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
