"""What the rules of stage figures ask: named input and param functions."""

from layerwise.checkpoints import checkpoint
from layerwise.figures.registry import SEPARATOR, resolve
from layerwise.metrics.cases import COMMON

CAPTIONS = Path(workflow.basedir) / "rules" / "captions"
EARLIER = earlier(MODELS)
TRAINED = [
    name
    for name, entry in MODELS.items()
    if not entry.source.random and name not in EARLIER
]
TWINS = {
    entry.source.random.like: name
    for name, entry in reversed(MODELS.items())
    if entry.source.random
}
OF_METRICS = (
    "metric",
    "valley",
    "sink",
    "released",
    "model_metrics",
    "levels",
    "compared",
    "taps",
)
OF_CORPUS = ("valley", "sink", "released")


def figures_of_models():
    """Return the figures of each trained model that has tasks or metrics, such as scores~minilm-l6.

    Of a training run these show the last checkpoint; dynamics~RUN shows all of them.
    """
    cells = {"scores": TASK_CELLS, "metrics": METRIC_CELLS}
    return [
        f"{kind}{SEPARATOR}{model}"
        for model in TRAINED
        for kind in cells
        if model in {cell[0] for cell in cells[kind]}
    ]


def compared_labels():
    """Return the labels of which the trained models have two values or more."""
    found = {}
    for name in TRAINED:
        for label, value in MODELS[name].labels.items():
            found.setdefault(label, set()).add(str(value))
    return [label for label, values in found.items() if len(values) > 1]


def figure_tables(wildcards):
    """Return the tables this study has, by name."""
    if resolve(wildcards.figure)[0] == "dynamics":
        return {"training_dynamics": "results/tables/training_dynamics.csv"}
    if resolve(wildcards.figure)[0] == "levels":
        return {"levels": "results/tables/levels.csv"}
    present = ["metrics", "scores", *(TABLES if TASKS else [])]
    if resolve(wildcards.figure)[0] == "score_vs_cost":
        present = ["scores", "layer_costs"]
    return {name: f"results/tables/{name}.csv" for name in present}


def figure_options(wildcards):
    """Return what a figure takes from the config, beside what its name says."""
    figure, own = resolve(wildcards.figure)
    dataset = {"dataset": STUDY.headline_dataset}
    headline = {"headline_readout": STUDY.headline_readout}
    if figure in OF_CORPUS:
        return dataset
    if figure in ("dynamics", "taps"):
        return headline | dataset
    if figure == "levels":
        return headline
    if figure == "compared":
        values = {
            name: str(MODELS[name].labels[own["label"]])
            for name in TRAINED
            if own["label"] in MODELS[name].labels
        }
        return headline | dataset | {"values": values}
    twin = {"twin": TWINS.get(own.get("model"), "")}
    return headline | {
        "model_scores": twin,
        "model_metrics": twin | dataset,
    }.get(figure, {})


def figure_code(wildcards):
    """Return the digest of the code that draws this figure."""
    return adapter_digest("draw_figure", f"figures/{resolve(wildcards.figure)[0]}.py")


def figure_section(wildcards):
    """Return the section of the report a figure belongs to; the report sorts them by name."""
    figure, own = resolve(wildcards.figure)
    if "model" in own:
        point = checkpoint(own["model"])
        return f"Model {point.run if point else own['model']}"
    if "dataset" in own:
        return f"Levels of {own['dataset'].split(SEPARATOR)[0]}"
    if "label" in own:
        return "Answers"
    return "Metrics" if figure in OF_METRICS else "Answers"


def figure_label(wildcards, input):
    """Return the subject of a figure with n, read from the tables when the report is made.

    It is one label, because the report makes a switch of a second one that has two values, each in half of the
    figures of a section, and then finds no figure for most of its positions.
    """
    from layerwise.figures.reading import read_tables
    from layerwise.figures.report import subject

    name, tables = wildcards.figure, read_tables(dict(input.items()))
    return {"figure": subject(name, tables, figure_options(wildcards))}


def figure_caption(wildcards):
    """Return the caption of a figure: what it shows, how to read it, and its readouts, recipes and null."""
    figure, own = resolve(wildcards.figure)
    text = (CAPTIONS / f"{figure}.rst").read_text("utf-8").strip()
    return "\n\n".join([text, " ".join(caption_facts(figure, own))]).strip()


def caption_facts(figure, own):
    """Return sentences on the readouts, recipes, null and twin that the config asks for."""
    readouts = ", ".join(entry.name for entry in STUDY.readouts)
    facts = []
    if figure not in OF_CORPUS:
        facts += [f"Readouts: {readouts}; headline: {STUDY.headline_readout}."]
    if figure in OF_METRICS:
        drawn = {own["metric"]} if "metric" in own else set(METRICS)
        draws = {
            entry.parameters.get("null_draws", COMMON["null_draws"])
            for entry in STUDY.metrics
            if entry.name in drawn
        }
        counts = " or ".join(map(str, sorted(draws)))
        facts += [f"Recipes: {', '.join(STUDY.recipes)}."]
        facts += [f"Null: the mean over {counts} Gaussian draws."]
    if "model" in own and figure != "dynamics":
        twin = TWINS.get(own["model"])
        cells = METRIC_CELLS if figure in OF_METRICS else TASK_CELLS
        facts += [
            (
                f"Untrained twin: {twin}."
                if twin in {cell[0] for cell in cells}
                else "No untrained twin was run on these."
            )
        ]
    return facts
