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
            name for name, plan in PLANS.items() if not (plan.task and plan.views == 1)
        ),
    conda:
        ENVIRONMENT
    threads: 1
    params:
        recipe=dataset_recipe,
        code=dataset_code,
    script:
        "../workflow_scripts/prepare_dataset.py"
