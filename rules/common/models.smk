"""What the rules of stage models ask: named input and param functions."""

from layerwise.checkpoints import run_of
from layerwise.models.training.registry import OBJECTIVES


def model_source(wildcards):
    """Return the source entry of a model."""
    return MODELS[wildcards.model].source.model_dump(exclude_none=True)


def model_loader(wildcards):
    """Return the loader of a model, which decides which files of a hub repository are needed."""
    return MODELS[wildcards.model].loader


def model_parent(wildcards):
    """Return the manifest of an untrained model's twin, or the record of the training run of a checkpoint."""
    source = MODELS[wildcards.model].source
    if source.random:
        return {"parent": f"results/models/{source.random.like}/manifest.json"}
    if source.train:
        return {"parent": f"results/models/{run_of(wildcards.model)}/training.json"}
    return {}


def training_samples(wildcards):
    """Return the samples that a run is trained on."""
    return f"results/data/{RUNS[wildcards.run].dataset}/samples.parquet"


def training_dataset(wildcards):
    """Return the manifest of the dataset that a run is trained on."""
    return f"results/data/{RUNS[wildcards.run].dataset}/manifest.json"


def training_options(wildcards):
    """Return the options of a run."""
    return RUNS[wildcards.run].model_dump(exclude_none=True)


def training_threads(wildcards):
    """Return the threads of a run, which are those of its models; they are part of what it gives."""
    return next(
        entry.threads
        for name, entry in MODELS.items()
        if entry.source.train and run_of(name) == wildcards.run
    )


def training_code(wildcards):
    """Return the digest of the training loop and of this objective."""
    objective = OBJECTIVES[RUNS[wildcards.run].objective]
    return adapter_digest("train_model", module_file(objective))


def training_memory(wildcards, attempt):
    """Return the MiB of a run: its libraries, the pictures, and a batch with its gradients."""
    run = RUNS[wildcards.run]
    return requests.memory(1500 + run.batch * run.blocks * run.width / 50, attempt)


def training_minutes(wildcards, attempt):
    """Return the minutes of a run; without its GPU kernels, Mamba takes a second for a step of the default size."""
    run = RUNS[wildcards.run]
    size = run.batch * run.tokens * run.blocks * run.width**2
    return requests.minutes(run.steps * size / 1e8, attempt)
