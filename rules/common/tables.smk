"""What the rules of stage tables ask: named input and param functions."""

from layerwise.tables.finding import COLUMNS as FINDING_TABLES


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
            *(
                name
                for name, plan in PLANS.items()
                if not (plan.task or plan.conditions)
            ),
        ],
    }


def finding_tables(wildcards):
    """Return the tables of this study that findings are computed from, by name."""
    made = ["metrics", *(TABLES if TASKS else [])]
    made += ["training_dynamics"] if traced_runs() else []
    made += ["levels"] if LEVEL_CELLS else []
    return {
        name: f"results/tables/{name}.csv" for name in FINDING_TABLES if name in made
    }


def finding_options():
    """Return what findings take from the config: models, their untrained twins, and the headlines."""
    return {
        "models": TRAINED,
        "twins": TWINS,
        "readout": STUDY.headline_readout,
        "dataset": STUDY.headline_dataset,
    }


def scored_loaders():
    """Return the loader of every model that a task scores."""
    return {model: MODELS[model].loader for model, _ in TASK_CELLS}


def scored_manifests():
    """Return the manifest of every model that a task scores."""
    return [f"results/models/{model}/manifest.json" for model in scored_loaders()]
