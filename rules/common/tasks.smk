"""What the rules of stage tasks ask: named input and param functions."""

from layerwise.config_probe import ATTENTION_PROBE, DEFAULTS as PROBE_DEFAULTS

# Tasks that run the model themselves, and those that look its vectors up.
PROBED = [name for name, entry in TASKS.items() if entry.type == ATTENTION_PROBE]
LOOKED_UP = [name for name in TASKS if name not in PROBED]


def task_samples(wildcards):
    """Return the samples a task is drawn from."""
    return f"results/data/{TASKS[wildcards.task].dataset}/samples.parquet"


def task_parent(wildcards):
    """Return the samples a task is drawn from, if it is drawn from a dataset."""
    drawn = TASKS[wildcards.task].dataset is not None
    return {"samples": task_samples(wildcards)} if drawn else {}


def task_activations(wildcards):
    """Return the activation file in which a task looks its texts or images up."""
    return (
        f"results/activations/{wildcards.model}/{looked_up(TASKS[wildcards.task])}.h5"
    )


def task_options(wildcards):
    """Return the config's entry of a task, with the digests of its own files."""
    entry = TASKS[wildcards.task]
    others = set() if entry.type == ATTENTION_PROBE else set(PROBE_DEFAULTS)
    options = entry.model_dump(exclude={"name", "template", *others})
    return options | {"digests": entry.file_digests} if entry.file_digests else options


def task_source(wildcards):
    """Return where the rows of a task come from."""
    return TASKS[wildcards.task].source


def kind_file(wildcards):
    """Return the module of the task's type."""
    return module_file(KINDS[TASKS[wildcards.task].type])


def prepare_code(wildcards):
    """Return the digest of the code that prepares this type of task, from where it comes."""
    source = module_file(SOURCES[task_source(wildcards)])
    return adapter_digest("prepare_task", kind_file(wildcards), source)


def score_code(wildcards):
    """Return the digest of the code that scores this type of task."""
    return adapter_digest("score_task", kind_file(wildcards))


def probe_dataset(wildcards):
    """Return the manifest of the dataset a task is drawn from."""
    return f"results/data/{TASKS[wildcards.task].dataset}/manifest.json"


def probe_model(wildcards):
    """Return the config's entry of a model, without what does not change its probes."""
    entry = extraction_model(wildcards)
    return {key: value for key, value in entry.items() if key != "batch_tokens"}


def probe_code(wildcards):
    """Return the digest of the probe and of the loader of this kind of model."""
    loader = LOADERS[MODELS[wildcards.model].loader]
    return adapter_digest("probe_attention", module_file(loader))
