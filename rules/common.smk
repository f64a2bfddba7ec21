"""The checked study, its plan, and named input and param functions of all stages."""

import re
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir) / "workflow_scripts"))
if " " in sys.executable and not sys.executable.startswith("'"):
    sys.executable = shlex.quote(
        sys.executable
    )  # Snakemake runs scripts with it and leaves it unquoted

from layerwise.checkpoints import earlier, finals
from layerwise.config import load_study
from layerwise.config_reading import check_files
from layerwise.config_training import training_runs
from layerwise.errors import LayerwiseError
from layerwise.metrics.cases import plan as check_parameters
from layerwise.metrics.registry import load_metric
from layerwise.models.registry import LOADERS
from layerwise.plan import dataset_plans, looked_up, metric_cells, runs
from layerwise.provenance import code_digest
from layerwise.tables.registry import TABLES as TABLE_MODULES
from layerwise.tasks.registry import KINDS, SOURCES
from snakemake.exceptions import WorkflowError

ADAPTERS = Path(workflow.basedir) / "workflow_scripts"
ENVIRONMENT = "../envs/layerwise.yaml"
TABLES = list(TABLE_MODULES)


def checked_study():
    """Return the study, its dataset plans, training runs and metric cells, or stop with one sentence."""
    try:
        check_files(workflow.configfiles)
        study = load_study(config)
        plans = dataset_plans(study)
        specs = {entry.name: load_metric(entry.name).SPEC for entry in study.metrics}
        for entry in study.metrics:
            check_parameters(specs[entry.name], entry.parameters)
        trained = training_runs(study.models, plans)
        return study, plans, trained, *metric_cells(study, plans, specs)
    except LayerwiseError as error:
        raise WorkflowError(str(error)) from None


STUDY, PLANS, RUNS, CELLS, ABSENT = checked_study()
MODELS = {entry.name: entry for entry in STUDY.models}
TASKS = {entry.name: entry for entry in STUDY.tasks}
METRICS = {entry.name: entry for entry in STUDY.metrics}
FINAL = finals(MODELS)
EVERY_CELL = [
    (model, dataset, metric)
    for model, entry in MODELS.items()
    for dataset, metric in CELLS
    if runs(entry, PLANS[dataset])
]
LEVEL_CELLS = [cell for cell in EVERY_CELL if PLANS[cell[1]].conditions]
METRIC_CELLS = [cell for cell in EVERY_CELL if cell not in LEVEL_CELLS]
TASK_CELLS = [
    (model, task)
    for model, entry in MODELS.items()
    for task in TASKS
    if runs(entry, PLANS[looked_up(TASKS[task])])
]


def one_of(names):
    """Return a wildcard pattern that matches exactly these names."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    model=one_of(MODELS),
    dataset=one_of(PLANS),
    task=one_of(TASKS),
    metric=one_of(METRICS),


def adapter_digest(adapter, *modules):
    """Return the digest of an adapter and of modules that it reaches by name only."""
    return code_digest(ADAPTERS / f"{adapter}.py", *modules)


def module_file(dotted):
    """Return the path in the package of a module such as layerwise.tables.summary."""
    return str(Path(*dotted.split(".")[1:]).with_suffix(".py"))


def metric_files():
    """Return the JSON of every metric of every model on datasets as they are."""
    return [
        f"results/metrics/{model}/{dataset}/{metric}.json"
        for model, dataset, metric in METRIC_CELLS
    ]


def level_files():
    """Return the JSON of every metric of every model on datasets whose tokens a transform changes."""
    return [
        f"results/metrics/{model}/{dataset}/{metric}.json"
        for model, dataset, metric in LEVEL_CELLS
    ]


def task_files():
    """Return the JSON of every task of every model."""
    return [f"results/tasks/{model}/{task}.json" for model, task in TASK_CELLS]


def baseline_files():
    """Return the JSON of every task's baselines."""
    return [f"results/data/{task}/baselines.json" for task in TASKS]


def figure_names():
    """Return the figures this study has data for."""
    computed = {metric for _, _, metric in METRIC_CELLS}
    sinks = {"sink_norm_ratio", "sink_variance_share"}  # figure sink shows them
    names = [f"metric_{name}" for name in METRICS if name in computed - sinks]
    names += ["valley"] if "prompt_entropy" in computed else []
    names += ["sink"] if sinks & computed else []
    names += ["released"] if computed else []
    names += (
        ["taps"]
        if any(len(PLANS[name].taps) > 1 for _, name, _ in METRIC_CELLS)
        else []
    )
    of_scores = ["scores", "depth_profile", "best_layers", "gains", "score_vs_cost"]
    names += of_scores if TASKS else []
    against = ["metric_vs_score", "correlations", "correlation_matrix", "selection"]
    names += against if TASKS and METRICS else []
    names += [f"dynamics~{run}" for run in traced_runs()]
    names += [f"levels~{name}" for name in leveled()]
    names += [f"compared~{label}" for label in compared_labels()]
    return names + figures_of_models()


def leveled():
    """Return the datasets whose tokens a transform changes, on which metrics are computed."""
    return list(dict.fromkeys(dataset for _, dataset, _ in LEVEL_CELLS))


def final_tables():
    """Return every table of this study."""
    of_tasks = [*TABLES, "layer_costs"]
    tables = ["metrics", "scores", "missing", *(of_tasks if TASKS else [])]
    tables += ["training_dynamics"] if traced_runs() else []
    tables += ["levels"] if LEVEL_CELLS else []
    return [f"results/tables/{name}.csv" for name in tables]


def final_targets():
    """Return what a complete run leaves behind."""
    figures = [
        f"results/figures/{name}.{kind}"
        for name in figure_names()
        for kind in ("pdf", "png")
    ]
    exports = [f"results/export/{entry.name}/manifest.json" for entry in STUDY.export]
    record = "results/provenance/study.json"
    return ["results/summary.md", *final_tables(), *figures, *exports, record]


include: "common/models.smk"
include: "common/data.smk"
include: "common/activations.smk"
include: "common/metrics.smk"
include: "common/tasks.smk"
include: "common/resources.smk"
include: "common/tables.smk"
include: "common/figures.smk"
include: "common/export.smk"
include: "common/provenance.smk"
