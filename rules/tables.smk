"""Stage tables: long tables of all curves, and what is computed from them."""


rule collect_records:
    input:
        metrics=metric_files(),
        tasks=task_files(),
        baselines=baseline_files(),
    output:
        metrics="results/tables/metrics.csv",
        scores="results/tables/scores.csv",
        missing="results/tables/missing.csv",
    log:
        "results/logs/collect_records.log",
    benchmark:
        "results/benchmarks/collect_records.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        expected=expected_cells(),
        code=adapter_digest("collect_records"),
    script:
        "../workflow_scripts/collect_records.py"


rule collect_levels:
    input:
        level_files(),
    output:
        "results/tables/levels.csv",
    log:
        "results/logs/collect_levels.log",
    benchmark:
        "results/benchmarks/collect_levels.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        code=adapter_digest("collect_levels"),
    script:
        "../workflow_scripts/collect_levels.py"


rule build_table:
    input:
        metrics="results/tables/metrics.csv",
        scores="results/tables/scores.csv",
        tasks=task_files(),
    output:
        "results/tables/{table}.csv",
    log:
        "results/logs/build_table/{table}.log",
    benchmark:
        "results/benchmarks/build_table/{table}.tsv"
    wildcard_constraints:
        table=one_of(TABLES),
    conda:
        ENVIRONMENT
    threads: 1
    params:
        options=table_options(),
        code=table_code,
    script:
        "../workflow_scripts/build_table.py"


rule cost_layers:
    input:
        models=scored_manifests(),
        tasks=task_files(),
    output:
        "results/tables/layer_costs.csv",
    log:
        "results/logs/cost_layers.log",
    benchmark:
        "results/benchmarks/cost_layers.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        loaders=scored_loaders(),
        code=adapter_digest("cost_layers"),
    script:
        "../workflow_scripts/cost_layers.py"


rule trace_training:
    input:
        metrics="results/tables/metrics.csv",
        scores="results/tables/scores.csv",
        similarities=similarity_files(),
        trainings=training_files(),
    output:
        "results/tables/training_dynamics.csv",
    log:
        "results/logs/trace_training.log",
    benchmark:
        "results/benchmarks/trace_training.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        headline_readout=STUDY.headline_readout,
        code=adapter_digest("trace_training"),
    script:
        "../workflow_scripts/trace_training.py"


rule write_findings:
    input:
        unpack(finding_tables),
    output:
        markdown="results/summary.md",
        page=report(
            "results/summary.html",
            caption="captions/summary.rst",
            category="Answers",
            labels={"figure": "all findings in ten lines"},
        ),
    log:
        "results/logs/write_findings.log",
    benchmark:
        "results/benchmarks/write_findings.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        title=STUDY.title,
        options=finding_options(),
        code=adapter_digest("write_findings"),
    script:
        "../workflow_scripts/write_findings.py"
