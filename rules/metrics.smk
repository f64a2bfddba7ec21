"""Stage metrics: one number per layer from an activation file."""


def metric_task(wildcards):
    """Return the task that owns the dataset, or an empty string."""
    return PLANS[wildcards.dataset].task


def metric_parameters(wildcards):
    """Return the metric's parameters as the config has them."""
    return METRICS[wildcards.metric].parameters


def metric_code(wildcards):
    """Return the digest of the driver and of this metric's own module."""
    return adapter_digest("compute_metric", f"metrics/{wildcards.metric}.py")


rule compute_metric:
    input:
        "results/activations/{model}/{dataset}.h5",
    output:
        "results/metrics/{model}/{dataset}/{metric}.json",
    log:
        "results/logs/compute_metric/{model}/{dataset}/{metric}.log",
    benchmark:
        "results/benchmarks/compute_metric/{model}/{dataset}/{metric}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        task=metric_task,
        parameters=metric_parameters,
        seed=STUDY.seed,
        code=metric_code,
    script:
        "../workflow_scripts/compute_metric.py"
