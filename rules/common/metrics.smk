"""What the rules of stage metrics ask: named input and param functions."""

from layerwise.metrics.layer_similarity import MOST_COMPARED


def metric_task(wildcards):
    """Return the task that owns the dataset, or an empty string."""
    return PLANS[wildcards.dataset].task


def metric_parameters(wildcards):
    """Return the metric's parameters as the config has them."""
    return METRICS[wildcards.metric].parameters


def metric_rows(wildcards):
    """Return the rows that a metric takes of more; None where it takes all."""
    name = wildcards.get("metric")
    if name is None:
        return MOST_COMPARED
    most = check_parameters(load_metric(name).SPEC, metric_parameters(wildcards))
    views = PLANS[wildcards.dataset].views
    return most.max_samples and most.max_samples * views


def metric_code(wildcards):
    """Return the digest of the driver and of this metric's own module."""
    return adapter_digest("compute_metric", f"metrics/{wildcards.metric}.py")


def final_activations(wildcards):
    """Return the activation file of the last checkpoint of a model's run."""
    return f"results/activations/{FINAL[wildcards.model]}/{wildcards.dataset}.h5"


def similarity_files():
    """Return the layer similarities of every checkpoint, on the datasets that pool one view."""
    return [
        f"results/metrics/{model}/{dataset}/layer_similarity.json"
        for model in FINAL
        for dataset, plan in PLANS.items()
        if "readouts" in plan.collect
        and plan.views == 1
        and not plan.conditions
        and not plan.task
        and runs(MODELS[model], plan)
    ]


def training_files():
    """Return the records of the runs that are trained here."""
    return [f"results/models/{run}/training.json" for run in RUNS]


def traced_runs():
    """Return the runs of which at least two checkpoints are studied, on a dataset that pools one view."""
    compared = {Path(path).parts[2] for path in similarity_files()}
    return list(dict.fromkeys(run_of(model) for model in FINAL if model in compared))
