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
    params:
        task=metric_task,
        parameters=metric_parameters,
        seed=STUDY.seed,
        code=metric_code,
    script:
        "../workflow_scripts/compute_metric.py"
