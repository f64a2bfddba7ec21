"""Stage export: the chosen layer as a model that standard libraries load."""


rule export_model:
    input:
        unpack(export_inputs),
    output:
        "results/export/{export}/manifest.json",
    log:
        "results/logs/export_model/{export}.log",
    benchmark:
        "results/benchmarks/export_model/{export}.tsv"
    wildcard_constraints:
        export=one_of(EXPORTS),
    priority: 1
    conda:
        ENVIRONMENT
    threads: export_threads
    resources:
        mem_mb=export_memory,
    params:
        entry=export_entry,
        model=export_source,
        code=export_code,
    script:
        "../workflow_scripts/export_model.py"
