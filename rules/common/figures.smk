"""What the rules of stage figures ask: named input and param functions."""

CAPTIONS = Path(workflow.basedir) / "rules" / "captions"


FIGURE_TABLES = (
    "metrics",
    "scores",
    "layer_summary",
    "correlations",
    "layer_selection",
)


FIGURE_OPTIONS = {
    "headline": {"headline_readout": STUDY.headline_readout},
    "valley": {"dataset": STUDY.headline_dataset},
    "released": {"dataset": STUDY.headline_dataset},
}


def figure_tables(wildcards):
    """Return the tables this study has, by name."""
    present = ["metrics", "scores", *(TABLES if TASKS else [])]
    return {
        name: f"results/tables/{name}.csv" for name in FIGURE_TABLES if name in present
    }


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
    return (
        "Metrics"
        if wildcards.figure.startswith("metric_")
        or wildcards.figure in ("valley", "released")
        else "Answers"
    )


def figure_caption(wildcards):
    """Return the caption of a figure: what it shows, how to read it, and the samples it rests on."""
    text = (
        (CAPTIONS / f"{figure_module(wildcards.figure)}.rst").read_text("utf-8").strip()
    )
    return text
