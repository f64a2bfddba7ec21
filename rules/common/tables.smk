"""What the rules of stage tables ask: named input and param functions."""


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
    return adapter_digest("build_table", module_file(TABLE_MODULES[wildcards.table]))


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
