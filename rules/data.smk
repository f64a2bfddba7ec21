"""Stage data: the samples of each dataset in a fixed order."""


rule prepare_dataset:
    input:
        unpack(dataset_parent),
    output:
        samples="results/data/{dataset}/samples.parquet",
        pairs="results/data/{dataset}/pairs.parquet",
        manifest="results/data/{dataset}/manifest.json",
    log:
        "results/logs/prepare_dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/prepare_dataset/{dataset}.tsv"
    wildcard_constraints:
        dataset=one_of(
            name
            for name, plan in PLANS.items()
            if name not in WRITERS and not (plan.task and plan.views == 1)
        ),
    priority: 3
    conda:
        ENVIRONMENT
    threads: 1
    params:
        recipe=dataset_recipe,
        code=dataset_code,
    script:
        "../workflow_scripts/prepare_dataset.py"


rule write_traces:
    input:
        unpack(dataset_parent),
        model=writer_manifest,
    output:
        samples="results/data/{dataset}/samples.parquet",
        pairs="results/data/{dataset}/pairs.parquet",
        manifest="results/data/{dataset}/manifest.json",
    log:
        "results/logs/write_traces/{dataset}.log",
    benchmark:
        "results/benchmarks/write_traces/{dataset}.tsv"
    wildcard_constraints:
        dataset=one_of(WRITERS),
    conda:
        ENVIRONMENT
    threads: writer_threads
    resources:
        mem_mb=writing_memory,
        runtime=writing_minutes,
        gpu=writer_gpus,
    params:
        model=writer_model,
        recipe=dataset_recipe,
        code=adapter_digest("write_traces"),
    script:
        "../workflow_scripts/write_traces.py"
