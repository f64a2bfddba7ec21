"""Stage activations: one forward pass of a model over a dataset, every layer, every readout."""


def extraction_model(wildcards):
    """Return the config's entry of a model, without what does not change its activations."""
    return MODELS[wildcards.model].model_dump(exclude={"source", "threads", "datasets"})


def extraction_collect(wildcards):
    """Return what is kept: readouts, recipes, storage."""
    wanted = PLANS[wildcards.dataset].collect
    return {
        "readouts": (
            [entry.model_dump() for entry in STUDY.readouts]
            if "readouts" in wanted
            else []
        ),
        "recipes": list(STUDY.recipes) if "tokens" in wanted else [],
        "storage": STUDY.storage,
        "compression": STUDY.compression,
    }


def extraction_threads(wildcards):
    """Return the threads of a model's forward pass."""
    return MODELS[wildcards.model].threads


def extraction_code(wildcards):
    """Return the digest of extraction and of the loader of this kind of model."""
    path = (
        LOADERS[MODELS[wildcards.model].loader]
        .removeprefix("layerwise.")
        .replace(".", "/")
    )
    return adapter_digest("extract_activations", f"{path}.py")


rule extract_activations:
    input:
        model="results/models/{model}/manifest.json",
        samples="results/data/{dataset}/samples.parquet",
        dataset="results/data/{dataset}/manifest.json",
    output:
        "results/activations/{model}/{dataset}.h5",
    log:
        "results/logs/extract_activations/{model}/{dataset}.log",
    benchmark:
        "results/benchmarks/extract_activations/{model}/{dataset}.tsv"
    priority: 1
    conda:
        ENVIRONMENT
    threads: extraction_threads
    params:
        model=extraction_model,
        collect=extraction_collect,
        code=extraction_code,
    script:
        "../workflow_scripts/extract_activations.py"
