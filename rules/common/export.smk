"""What the rules of stage export ask: named input and param functions."""

from layerwise.export.registry import FOLDERS

EXPORTS = {entry.name: entry for entry in STUDY.export}


def export_dataset(model):
    """Return the dataset on which an export is compared with what is stored: the headline one, else the first there is."""
    names = [
        name
        for name, plan in PLANS.items()
        if "readouts" in plan.collect
        and plan.views == 1
        and not plan.conditions
        and name not in TEMPORARY
        and runs(MODELS[model], plan)
    ]
    if not names:
        raise WorkflowError(
            f"config: export of model {model!r} has no vectors to be compared with: no dataset of one view that it "
            "reads is kept with 'collect: [readouts]'; add one, or take the entry out of 'export'."
        )
    return STUDY.headline_dataset if STUDY.headline_dataset in names else names[0]


def export_inputs(wildcards):
    """Return the model, stored vectors to compare with, and the tables that choose the layer and score it."""
    entry = EXPORTS[wildcards.export]
    by, name = entry.chosen_by
    if by == "best" and (entry.model, name) not in TASK_CELLS:
        raise WorkflowError(
            f"config: export {entry.name!r}: model {entry.model!r} is not scored on task {name!r}; write another task."
        )
    dataset = export_dataset(entry.model)
    files = {
        "model": f"results/models/{entry.model}/manifest.json",
        "activations": f"results/activations/{entry.model}/{dataset}.h5",
        "samples": f"results/data/{dataset}/samples.parquet",
    }
    tables = (["scores"] if TASKS else []) + (
        ["layer_selection"] if by == "label-free" else []
    )
    return files | {name: f"results/tables/{name}.csv" for name in tables}


def export_entry(wildcards):
    """Return the config's entry of an export, with its whole readout."""
    entry = EXPORTS[wildcards.export]
    readout = next(r for r in STUDY.readouts if r.name == entry.readout)
    return entry.model_dump() | {
        "readout": readout.model_dump(),
        "chosen_by": entry.chosen_by,
    }


def export_source(wildcards):
    """Return the config's entry of the model, without what does not change its activations."""
    model = EXPORTS[wildcards.export].model
    return MODELS[model].model_dump(exclude={"source", "threads", "datasets"})


def export_threads(wildcards):
    """Return the threads of the model's forward pass."""
    return MODELS[EXPORTS[wildcards.export].model].threads


def export_code(wildcards):
    """Return the digest of the export and of the loader and the folder of this kind of model."""
    loader = MODELS[EXPORTS[wildcards.export].model].loader
    modules = module_file(LOADERS[loader]), module_file(FOLDERS[loader])
    return adapter_digest("export_model", *modules)
