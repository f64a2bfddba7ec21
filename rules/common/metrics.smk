"""What the rules of stage metrics ask: named input and param functions."""


def metric_task(wildcards):
    """Return the task that owns the dataset, or an empty string."""
    return PLANS[wildcards.dataset].task


def metric_parameters(wildcards):
    """Return the metric's parameters as the config has them."""
    return METRICS[wildcards.metric].parameters


def metric_code(wildcards):
    """Return the digest of the driver and of this metric's own module."""
    return adapter_digest("compute_metric", f"metrics/{wildcards.metric}.py")
