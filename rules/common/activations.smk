"""What the rules of stage activations ask: named input and param functions."""

# Datasets whose activation files are removed once their task is scored.
TEMPORARY = (
    []
    if STUDY.keep_task_activations
    else [
        name
        for name, plan in PLANS.items()
        if plan.task == name and plan.modality == "text"
    ]
)
# Datasets whose extraction is split into several jobs.
SHARDED = [name for name, plan in PLANS.items() if plan.shards > 1]


def shard_files(wildcards):
    """Return the files of all shards of a dataset, in order."""
    folder = f"results/activations/{wildcards.model}/{wildcards.dataset}.shards"
    shards = PLANS[wildcards.dataset].shards
    return [f"{folder}/{number}-of-{shards}.h5" for number in range(1, shards + 1)]


def dataset_template(wildcards):
    """Return what a model reads around every text."""
    return PLANS[wildcards.dataset].template


def extraction_model(wildcards):
    """Return the config's entry of a model, without what does not change its activations."""
    return MODELS[wildcards.model].model_dump(
        exclude={"source", "threads", "datasets", "labels"}
    )


def extraction_collect(wildcards):
    """Return what is kept: readouts, recipes, storage; and how tokens are changed before."""
    plan = PLANS[wildcards.dataset]
    wanted = plan.collect
    transform = {
        "transform": getattr(plan.entry, "transform", ""),
        "seed": getattr(plan.entry, "seed", 0),
        "conditions": plan.conditions,
    }
    shard = wildcards.get("shard")
    part = {"shard": [int(shard), int(wildcards.shards)]} if shard else {}
    return part | {
        "readouts": (
            [entry.model_dump() for entry in STUDY.readouts]
            if "readouts" in wanted
            else []
        ),
        "recipes": list(STUDY.recipes) if "tokens" in wanted else [],
        "taps": plan.taps,
        "token_transform": transform if plan.conditions else {},
        "template": plan.template,
        "storage": STUDY.storage,
        "compression": STUDY.compression,
    }


def extraction_threads(wildcards):
    """Return the threads of a model's forward pass."""
    return MODELS[wildcards.model].threads


def extraction_code(wildcards):
    """Return the digest of extraction and of the loader of this kind of model."""
    loader = LOADERS[MODELS[wildcards.model].loader]
    return adapter_digest("extract_activations", module_file(loader))
