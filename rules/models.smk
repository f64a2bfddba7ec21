"""Stage models: a pinned snapshot of each model's weights and tokenizer, or small models trained here."""


rule train_model:
    input:
        samples=training_samples,
        dataset=training_dataset,
    output:
        "results/models/{run}/training.json",
    log:
        "results/logs/train_model/{run}.log",
    benchmark:
        "results/benchmarks/train_model/{run}.tsv"
    wildcard_constraints:
        run=one_of(RUNS),
    priority: 2
    conda:
        ENVIRONMENT
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=training_minutes,
    params:
        options=training_options,
        code=training_code,
    script:
        "../workflow_scripts/train_model.py"


rule download_model:
    input:
        unpack(model_parent),
    output:
        "results/models/{model}/manifest.json",
    log:
        "results/logs/download_model/{model}.log",
    benchmark:
        "results/benchmarks/download_model/{model}.tsv"
    priority: 3
    conda:
        ENVIRONMENT
    threads: 1
    params:
        source=model_source,
        loader=model_loader,
        code=adapter_digest("download_model"),
    script:
        "../workflow_scripts/download_model.py"
