"""Stage tasks: what a task asks for, and the score of every layer on it, from stored vectors."""


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
    path = KINDS[TASKS[wildcards.task].type].removeprefix("layerwise.")
    return f"{path.replace('.', '/')}.py"


def prepare_code(wildcards):
    """Return the digest of the code that prepares this type of task."""
    return adapter_digest("prepare_task", kind_file(wildcards))


def score_code(wildcards):
    """Return the digest of the code that scores this type of task."""
    return adapter_digest("score_task", kind_file(wildcards))


rule prepare_task:
    input:
        samples=task_samples,
    output:
        samples="results/data/{task}/samples.parquet",
        pairs="results/data/{task}/pairs.parquet",
        manifest="results/data/{task}/manifest.json",
        spec="results/data/{task}/task/spec.json",
        baselines="results/data/{task}/baselines.json",
        sample="results/data/{task}~sample/samples.parquet",
        sample_pairs="results/data/{task}~sample/pairs.parquet",
        sample_manifest="results/data/{task}~sample/manifest.json",
    log:
        "results/logs/prepare_task/{task}.log",
    benchmark:
        "results/benchmarks/prepare_task/{task}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        options=task_options,
        code=prepare_code,
    script:
        "../workflow_scripts/prepare_task.py"


rule score_task:
    input:
        activations=task_activations,
        spec="results/data/{task}/task/spec.json",
    output:
        "results/tasks/{model}/{task}.json",
    log:
        "results/logs/score_task/{model}/{task}.log",
    benchmark:
        "results/benchmarks/score_task/{model}/{task}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        seed=STUDY.seed,
        code=score_code,
    script:
        "../workflow_scripts/score_task.py"
