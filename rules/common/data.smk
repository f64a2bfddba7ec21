"""What the rules of stage data ask: named input and param functions."""


def dataset_parent(wildcards):
    """Return the samples a dataset is drawn or derived from, if it is."""
    parent = PLANS[wildcards.dataset].parent
    return {"parent": f"results/data/{parent}/samples.parquet"} if parent else {}


def dataset_recipe(wildcards):
    """Return what prepare_dataset needs to know: a source with its sample, or the options of a derivation."""
    entry = PLANS[wildcards.dataset].entry.model_dump()
    if "transform" in entry:
        return {
            key: entry[key]
            for key in ("transform", "views", "columns", "size", "sample", "seed")
        }
    source = PLANS[wildcards.dataset].entry.source
    settings = entry["source"][source.kind]
    return {
        "kind": source.kind,
        "source": settings,
        "sample": entry["sample"],
        "digest": source.file_digest,
    }


def dataset_code(wildcards):
    """Return the digest of the code that makes this kind of dataset."""
    recipe = dataset_recipe(wildcards)
    named = recipe.get("transform") or recipe["kind"]
    return adapter_digest(
        "prepare_dataset", *([f"data/{named}.py"] if named != "dataset" else [])
    )
