"""Stage models: a pinned snapshot of each model's weights and tokenizer."""


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
        loader=model_loader,
        code=adapter_digest("download_model"),
    script:
        "../workflow_scripts/download_model.py"
