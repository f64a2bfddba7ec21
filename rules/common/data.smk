"""What the rules of stage data ask: named input and param functions."""

from layerwise.data.registry import IMAGE_SOURCES
from layerwise.data.registry import SOURCES as TEXT_SOURCES
from layerwise.data.registry import TRANSFORMS as TRANSFORM_MODULES

SOURCE_MODULES = TEXT_SOURCES | IMAGE_SOURCES
# Datasets that a model of the study writes, with that model.
WRITERS = {
    entry.name: entry.source.traces.model
    for entry in STUDY.datasets
    if entry.source.traces
}


def dataset_parent(wildcards):
    """Return the samples a dataset is drawn or derived from, if it is."""
    parent = PLANS[wildcards.dataset].parent
    return {"parent": f"results/data/{parent}/samples.parquet"} if parent else {}


def dataset_recipe(wildcards):
    """Return what prepare_dataset needs to know: a source with its sample, or the options of a derivation."""
    plan = PLANS[wildcards.dataset]
    entry = plan.entry.model_dump()
    if "transform" in entry:
        shared = {key: entry[key] for key in ("transform", "sample", "seed")}
        if plan.conditions:
            return shared | {"conditions": plan.conditions}
        return shared | {key: entry[key] for key in ("views", "columns", "size")}
    source = plan.entry.source
    settings = entry["source"][source.kind]
    return {
        "kind": source.kind,
        "source": settings,
        "sample": entry["sample"],
        "digest": source.file_digest,
    }


def dataset_code(wildcards):
    """Return the digest of the code that makes this kind of dataset."""
    recipe = dataset_recipe(wildcards)
    named = recipe.get("transform") or recipe["kind"]
    dotted = (TRANSFORM_MODULES | SOURCE_MODULES).get(named)
    return adapter_digest("prepare_dataset", *([module_file(dotted)] if dotted else []))


def writer_manifest(wildcards):
    """Return the manifest of the model that writes a dataset."""
    return f"results/models/{WRITERS[wildcards.dataset]}/manifest.json"


def writer_model(wildcards):
    """Return the config's entry of the model that writes a dataset: what bears on the text."""
    entry = MODELS[WRITERS[wildcards.dataset]]
    return entry.model_dump(include={"name", "dtype", "device"})


def writer_threads(wildcards):
    """Return the threads of the model that writes a dataset."""
    return MODELS[WRITERS[wildcards.dataset]].threads


def writer_gpus(wildcards):
    """Return the GPUs of the model that writes a dataset."""
    entry = MODELS[WRITERS[wildcards.dataset]]
    size = requests.model_size(Path(writer_manifest(wildcards)))
    return requests.gpus(entry, size, GPUS, HERE)


def writing_memory(wildcards, attempt):
    """Return the MiB of writing: the process, the weights, and the cache of a batch."""
    entry = MODELS[WRITERS[wildcards.dataset]]
    size = requests.model_size(Path(writer_manifest(wildcards)))
    weights = size.weight_bytes(entry.dtype) / 2**20
    return requests.memory(1500 + 1.5 * weights, attempt)


def writing_minutes(wildcards, attempt):
    """Return the minutes of writing: a pass over all weights per token and batch, at 5 GB a second."""
    entry = MODELS[WRITERS[wildcards.dataset]]
    options = PLANS[wildcards.dataset].entry.source.traces
    size = requests.model_size(Path(writer_manifest(wildcards)))
    batches = -(-rows_of(options.dataset) // options.batch)
    passes = batches * options.max_new_tokens
    return requests.minutes(passes * size.weight_bytes(entry.dtype) / 5e9, attempt)
