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
        dataset=one_of(name for name in PLANS if name not in [*TEMPORARY, *SHARDED]),
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


use rule extract_activations as extract_shard with:
    output:
        temp("results/activations/{model}/{dataset}.shards/{shard}-of-{shards}.h5"),
    log:
        "results/logs/extract_activations/{model}/{dataset}.shards/{shard}-of-{shards}.log",
    benchmark:
        "results/benchmarks/extract_activations/{model}/{dataset}.shards/{shard}-of-{shards}.tsv"
    wildcard_constraints:
        dataset=one_of(SHARDED),
        shard="[0-9]+",
        shards="[0-9]+",


rule join_shards:
    input:
        shards=shard_files,
        model="results/models/{model}/manifest.json",
        samples="results/data/{dataset}/samples.parquet",
        dataset="results/data/{dataset}/manifest.json",
    output:
        "results/activations/{model}/{dataset}.h5",
    log:
        "results/logs/join_shards/{model}/{dataset}.log",
    benchmark:
        "results/benchmarks/join_shards/{model}/{dataset}.tsv"
    wildcard_constraints:
        dataset=one_of(SHARDED),
    priority: 1
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=joining_memory,
        runtime=joining_minutes,
    params:
        template=dataset_template,
        compression=STUDY.compression,
        code=adapter_digest("join_shards"),
    script:
        "../workflow_scripts/join_shards.py"
