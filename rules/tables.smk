"""Stage tables: long tables of all curves, and what is computed from them."""


def expected_cells():
    """Return every cell the tables should have, and those they cannot have with the reason."""
    rows = [
        {
            "stage": "metrics",
            "model": model,
            "dataset": dataset,
            "task": PLANS[dataset].task,
            "metric": metric,
            "reason": "",
        }
        for model, dataset, metric in METRIC_CELLS
    ]
    rows += [
        {
            "stage": "tasks",
            "model": model,
            "dataset": task,
            "task": task,
            "metric": "",
            "reason": "",
        }
        for model, task in TASK_CELLS
    ]
    return rows + [
        {"stage": "metrics", "model": model, **vars(cell)}
        for model, entry in MODELS.items()
        for cell in ABSENT
        if runs(entry, PLANS[cell.dataset])
    ]


def table_code(wildcards):
    """Return the digest of the code that builds this table."""
    return adapter_digest(
        "build_table",
        TABLE_MODULES[wildcards.table].replace(".", "/").removeprefix("layerwise/")
        + ".py",
    )


def table_options():
    """Return what tables take from the config and the metrics' specifications."""
    directions = {name: load_metric(name).SPEC.directions() for name in METRICS}
    return {
        "seed": STUDY.seed,
        "directions": directions,
        "corpora": [
            STUDY.headline_dataset,
            *(name for name, plan in PLANS.items() if not plan.task),
        ],
    }


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
