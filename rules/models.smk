"""Stage models: a pinned snapshot of each model's weights and tokenizer."""


def model_source(wildcards):
    """Return the source entry of a model."""
    return MODELS[wildcards.model].source.model_dump(exclude_none=True)


def model_twin(wildcards):
    """Return the manifest of the model that an untrained one is the twin of."""
    source = MODELS[wildcards.model].source
    return (
        {"like": f"results/models/{source.random.like}/manifest.json"}
        if source.random
        else {}
    )


rule download_model:
    input:
        unpack(model_twin),
    output:
        "results/models/{model}/manifest.json",
    log:
        "results/logs/download_model/{model}.log",
    benchmark:
        "results/benchmarks/download_model/{model}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        source=model_source,
        code=adapter_digest("download_model"),
    script:
        "../workflow_scripts/download_model.py"
