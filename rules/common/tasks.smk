"""What the rules of stage tasks ask: named input and param functions."""


def task_samples(wildcards):
    """Return the samples a task is drawn from."""
    return f"results/data/{TASKS[wildcards.task].dataset}/samples.parquet"


def task_activations(wildcards):
    """Return the activation file in which a task looks its texts or images up."""
    return (
        f"results/activations/{wildcards.model}/{looked_up(TASKS[wildcards.task])}.h5"
    )


def task_options(wildcards):
    """Return the config's entry of a task."""
    return TASKS[wildcards.task].model_dump(exclude={"name"})


def kind_file(wildcards):
    """Return the module of the task's type."""
    return module_file(KINDS[TASKS[wildcards.task].type])


def prepare_code(wildcards):
    """Return the digest of the code that prepares this type of task."""
    return adapter_digest("prepare_task", kind_file(wildcards))


def score_code(wildcards):
    """Return the digest of the code that scores this type of task."""
    return adapter_digest("score_task", kind_file(wildcards))
