"""Stage metrics: one number per layer from an activation file."""


rule compute_metric:
    input:
        "results/activations/{model}/{dataset}.h5",
    output:
        "results/metrics/{model}/{dataset}/{metric}.json",
    log:
        "results/logs/compute_metric/{model}/{dataset}/{metric}.log",
    benchmark:
        "results/benchmarks/compute_metric/{model}/{dataset}/{metric}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=metric_memory,
        runtime=metric_minutes,
        lane=1,
    params:
        task=metric_task,
        parameters=metric_parameters,
        seed=STUDY.seed,
        code=metric_code,
    script:
        "../workflow_scripts/compute_metric.py"


rule compare_layers:
    input:
        own="results/activations/{model}/{dataset}.h5",
        final=final_activations,
    output:
        "results/metrics/{model}/{dataset}/layer_similarity.json",
    log:
        "results/logs/compare_layers/{model}/{dataset}.log",
    benchmark:
        "results/benchmarks/compare_layers/{model}/{dataset}.tsv"
    wildcard_constraints:
        model=one_of(FINAL),
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=metric_memory,
        runtime=metric_minutes,
    params:
        seed=STUDY.seed,
        code=adapter_digest("compare_layers"),
    script:
        "../workflow_scripts/compare_layers.py"
