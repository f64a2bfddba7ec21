"""Print what the study found: the best layer per model and task, the time of each stage, and where the report is.

Usage: python tools/answer.py. Used by `make demo` after the run; reads results/ only.
"""

import sys
from pathlib import Path

import pandas as pd
import yaml
from layerwise.tables.summary import closing_table

RESULTS = Path("results")
STAGES = (
    ("models", "download_model"),
    ("data", "prepare_dataset"),
    ("activations", "extract_activations"),
    ("metrics", "compute_metric"),
    ("tasks", "prepare_task"),
    ("tasks", "score_task"),
    ("tasks", "probe_attention"),
    ("tables", "collect_records"),
    ("tables", "build_table"),
    ("figures", "draw_figure"),
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


def main() -> int:
    """Print the answer; return 1 where there is none yet."""
    summary = RESULTS / "tables" / "layer_summary.csv"
    if not summary.is_file():
        print(f"There is no {summary} yet: run 'make run' first, with at least one task in config.yaml.", file=sys.stderr)
        return 1
    readout = yaml.safe_load(Path("config.yaml").read_text("utf-8")).get("headline_readout", "mean_normed")
    print(closing_table(pd.read_csv(summary, keep_default_na=False, na_values=[""]), readout))
    print(f"\n{stage_times()}\n(seconds add up over jobs, which ran side by side)")
    print(f"\nTables: {RESULTS / 'tables'}   Figures: {RESULTS / 'figures'}   Report: {RESULTS / 'report.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
