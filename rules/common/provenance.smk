"""What record_study asks: named input and param functions."""

from layerwise.study_record import runnable


def model_manifests():
    """Return the manifest of every model that reads something."""
    read = {cell[0] for cell in [*EVERY_CELL, *TASK_CELLS]}
    return [f"results/models/{name}/manifest.json" for name in MODELS if name in read]


def data_manifests():
    """Return the manifest of every dataset and task that is read, and of those they are drawn from."""
    named = {cell[1] for cell in EVERY_CELL} | set(TASKS)
    named |= {entry.dataset for entry in TASKS.values() if entry.dataset}
    waiting = list(named)
    while waiting:
        plan = PLANS.get(waiting.pop())
        if plan and plan.parent and plan.parent not in named:
            named.add(plan.parent)
            waiting.append(plan.parent)
    return [f"results/data/{name}/manifest.json" for name in sorted(named)]


def study_facts():
    """Return the config, filled in and to run again, and the templates of datasets and tasks that have one."""
    return {
        "resolved": STUDY.model_dump(mode="json"),
        "runnable": runnable(STUDY),
        "templates": {
            name: plan.template for name, plan in PLANS.items() if plan.template
        },
    }
