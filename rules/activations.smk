"""Stage activations: one forward pass of a model over a dataset, every layer, every readout."""


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
    wildcard_constraints:
        dataset=one_of(name for name in PLANS if name not in TEMPORARY),
    priority: 1
    conda:
        ENVIRONMENT
    threads: extraction_threads
    resources:
        mem_mb=extraction_memory,
        runtime=extraction_minutes,
        gpu=model_gpus,
    params:
        model=extraction_model,
        collect=extraction_collect,
        code=extraction_code,
    script:
        "../workflow_scripts/extract_activations.py"


use rule extract_activations as extract_task_activations with:
    output:
        temp("results/activations/{model}/{dataset}.h5"),
    wildcard_constraints:
        dataset=one_of(TEMPORARY),
