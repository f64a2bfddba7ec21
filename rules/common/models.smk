"""What the rules of stage models ask: named input and param functions."""


def model_source(wildcards):
    """Return the source entry of a model."""
    return MODELS[wildcards.model].source.model_dump(exclude_none=True)


def model_loader(wildcards):
    """Return the loader of a model, which decides which files of a hub repository are needed."""
    return MODELS[wildcards.model].loader


def model_twin(wildcards):
    """Return the manifest of the model that an untrained one is the twin of."""
    source = MODELS[wildcards.model].source
    return (
        {"like": f"results/models/{source.random.like}/manifest.json"}
        if source.random
        else {}
    )
