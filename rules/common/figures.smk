"""What the rules of stage figures ask: named input and param functions."""

CAPTIONS = Path(workflow.basedir) / "rules" / "captions"


FIGURE_OPTIONS = {
    "headline": {"headline_readout": STUDY.headline_readout},
    "valley": {"dataset": STUDY.headline_dataset},
    "released": {"dataset": STUDY.headline_dataset},
}


def figure_tables(wildcards):
    """Return the tables this study has, by name."""
    present = ["metrics", "scores", *(TABLES if TASKS else [])]
    return {name: f"results/tables/{name}.csv" for name in present}


def figure_options(wildcards):
    """Return what a figure takes from the config."""
    return FIGURE_OPTIONS.get(wildcards.figure, FIGURE_OPTIONS["headline"])


def figure_module(name):
    """Return the file in figures/ that draws ``name``: metric_dime is drawn by metric.py."""
    return (
        "metric" if name.startswith("metric_") and name != "metric_vs_score" else name
    )


def figure_code(wildcards):
    """Return the digest of the code that draws this figure."""
    return adapter_digest(
        "draw_figure", f"figures/{figure_module(wildcards.figure)}.py"
    )


def figure_section(wildcards):
    """Return the section of the report a figure belongs to."""
    of_metrics = figure_module(wildcards.figure) in ("metric", "valley", "released")
    return "Metrics" if of_metrics else "Answers"


def figure_caption(wildcards):
    """Return the caption of a figure: what it shows and how to read it; n is in the figure."""
    return (
        (CAPTIONS / f"{figure_module(wildcards.figure)}.rst").read_text("utf-8").strip()
    )
