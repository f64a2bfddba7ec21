"""What jobs ask for: memory (MiB), time (minutes) and GPUs, from config and manifests, more at every attempt.

On one machine memory and time are information only, unless limits are given (`--resources mem_mb=16000`). GPUs are
counted: as many jobs use one as there are visible GPUs, or as `--resources gpu=N` says. On a cluster that option, or the
profile, says how many the study may use at once; none where it says nothing. `lane` counts the metrics that run side by
side in one group; only the cluster's profile limits it.
"""

from layerwise.costs import requests
from layerwise.costs.visible import visible_gpus

HERE = workflow.is_main_process and workflow.local_exec
STATED_GPUS = workflow.global_resources.get("gpu").value
GPUS = visible_gpus() if HERE and STATED_GPUS is None else STATED_GPUS or 0
if HERE and STATED_GPUS is None and GPUS:
    workflow.register_resource("gpu", GPUS)


def size_of(wildcards):
    """Return the size of a model, assumed until it is there."""
    return requests.model_size(Path(f"results/models/{wildcards.model}/manifest.json"))


def rows_of(dataset):
    """Return the rows of a dataset, assumed until it is there."""
    return requests.dataset_rows(Path(f"results/data/{dataset}/manifest.json"))


def model_gpus(wildcards):
    """Return the GPUs of a job that runs a model."""
    return requests.gpus(MODELS[wildcards.model], size_of(wildcards), GPUS, HERE)


def extraction_costs(wildcards):
    """Return the MiB and seconds of an extraction."""
    kept = extraction_collect(wildcards)
    entry, rows = MODELS[wildcards.model], rows_of(wildcards.dataset)
    rows = -(-rows // int(wildcards.get("shards", 1)))
    return requests.extraction(
        size_of(wildcards), entry, kept, rows, model_gpus(wildcards)
    )


def extraction_memory(wildcards, attempt):
    """Return the MiB of an extraction."""
    return requests.memory(extraction_costs(wildcards)[0], attempt)


def extraction_minutes(wildcards, attempt):
    """Return the minutes of an extraction."""
    return requests.minutes(extraction_costs(wildcards)[1], attempt)


def joining_memory(wildcards, attempt):
    """Return the MiB of joining shards: blocks of rows, and the ids of all."""
    return requests.memory(400 + rows_of(wildcards.dataset) / 1000, attempt)


def joining_minutes(wildcards, attempt):
    """Return the minutes of joining shards, of which disks copy millions of rows an hour."""
    return requests.minutes(rows_of(wildcards.dataset) / 100, attempt)


def metric_costs(wildcards):
    """Return the MiB and seconds of a metric."""
    longest = MODELS[wildcards.model].max_tokens
    rows, most = rows_of(wildcards.dataset), metric_rows(wildcards)
    return requests.metric(size_of(wildcards), rows, longest, most)


def metric_memory(wildcards, attempt):
    """Return the MiB of a metric."""
    return requests.memory(metric_costs(wildcards)[0], attempt)


def metric_minutes(wildcards, attempt):
    """Return the minutes of a metric; many of them follow one another in a group."""
    return requests.minutes(metric_costs(wildcards)[1], attempt, start=3)


def scoring_costs(wildcards):
    """Return the MiB and seconds of scoring a task."""
    return requests.scoring(size_of(wildcards), rows_of(wildcards.task))


def scoring_memory(wildcards, attempt):
    """Return the MiB of scoring a task."""
    return requests.memory(scoring_costs(wildcards)[0], attempt)


def scoring_minutes(wildcards, attempt):
    """Return the minutes of scoring a task."""
    return requests.minutes(scoring_costs(wildcards)[1], attempt)


def probe_costs(wildcards):
    """Return the MiB and seconds of an attention probe: the model runs once per epoch and once for the test images."""
    entry, task = MODELS[wildcards.model], TASKS[wildcards.task]
    nothing = {"readouts": [], "recipes": [], "taps": ["residual"]}
    rows, passes = rows_of(task.dataset), 3 * (task.epochs + 1)
    return requests.extraction(
        size_of(wildcards), entry, nothing, rows, model_gpus(wildcards), passes
    )


def probe_memory(wildcards, attempt):
    """Return the MiB of an attention probe, which holds the states of a batch at every layer."""
    return requests.memory(2 * probe_costs(wildcards)[0], attempt)


def probe_minutes(wildcards, attempt):
    """Return the minutes of an attention probe."""
    return requests.minutes(probe_costs(wildcards)[1], attempt)


def export_memory(wildcards, attempt):
    """Return the MiB of an export: the process, the model, and its cut copy."""
    model = EXPORTS[wildcards.export].model
    manifest = Path(f"results/models/{model}/manifest.json")
    weights = requests.model_size(manifest).weight_bytes(MODELS[model].dtype)
    return requests.memory(1000 + 3 * weights / 2**20, attempt)


localrules:
    download_model,
    prepare_dataset,
    prepare_task,
    collect_records,
    collect_levels,
    build_table,
    cost_layers,
    write_findings,
    record_study,
    trace_training,
    draw_figure,
