"""What a study was made of: config, versions, manifests, digests; for its supplement, and to run it again."""


rule record_study:
    input:
        models=model_manifests(),
        data=data_manifests(),
        tables=final_tables(),
    output:
        study="results/provenance/study.json",
        config="results/provenance/config.yaml",
    log:
        "results/logs/record_study.log",
    benchmark:
        "results/benchmarks/record_study.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        study=study_facts(),
        code=adapter_digest("record_study", *sorted(ADAPTERS.rglob("*.py"))),
    script:
        "../workflow_scripts/record_study.py"
