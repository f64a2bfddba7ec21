"""Which files of a hub repository a model needs: its configuration, tokenizer or processor, and safetensors weights."""

from collections.abc import Iterable

from layerwise.errors import ModelError
from layerwise.models.weight_files import INDEX, SINGLE, is_plain

ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
_OPEN_CLIP = ("open_clip_config.json", "open_clip_model.safetensors")
_DESCRIBING = (".json", ".txt", ".model", ".jinja")
# Without one of these a model cannot read its input.
_FRONTS = {
    "text": (
        "tokenizer.json",
        "tokenizer.model",
        "vocab.txt",
        "vocab.json",
        "spiece.model",
        "sentencepiece.bpe.model",
        "tekken.json",
    ),
    "vision": ("preprocessor_config.json", "processor_config.json"),
}


def describing_files(names: Iterable[str], loader: str) -> list[str]:
    """Return the files beside the weights: at the top level, and of no other weight format.

    Args:
        names: of the files of the repository.
        loader: the config's word, or "adapter".
    """
    if loader == "adapter":
        return [name for name in names if name == ADAPTER[0]]
    found = [name for name in names if is_plain(name) and (name.endswith(_DESCRIBING) or name == "README.md")]
    return sorted(name for name in found if ".index." not in name and not name.startswith("adapter_"))


def weight_file(names: Iterable[str], loader: str, where: str) -> str:
    """Return the file that holds the weights, or the index that names their shards.

    Args:
        names: of the files of the repository.
        loader: the config's word, or "adapter".
        where: the repository, for messages.

    Raises:
        ModelError: there are pickled weights only, an adapter only, or none.
    """
    known = set(names)
    wanted = {"adapter": [ADAPTER[1]], "open_clip": [_OPEN_CLIP[1], SINGLE]}.get(loader, [SINGLE, INDEX])
    found = next((name for name in wanted if name in known), None)
    if found:
        return found
    if loader != "adapter" and ADAPTER[0] in known:
        raise ModelError(
            f"{where} holds an adapter, not a model; write the model it was trained on as 'hub' and this under 'adapters'."
        )
    pickled = sorted(name for name in known if name.endswith(PICKLED) and name != "training_args.bin")
    if pickled:
        raise ModelError(
            f"{where} holds pickled weights only ({pickled[0]}), which can run code; write a revision that has "
            "safetensors, or convert them and give the folder as 'path'."
        )
    raise ModelError(f"{where} holds no {' or '.join(wanted)}; give a model that has its weights as safetensors.")


def is_whole(names: Iterable[str], loader: str) -> bool:
    """Whether files that a cache holds of a repository are enough to read the weights' configuration and the input."""
    known = set(names)
    config = {"adapter": ADAPTER[0], "open_clip": _OPEN_CLIP[0]}.get(loader, "config.json")
    return config in known and (loader not in _FRONTS or any(front in known for front in _FRONTS[loader]))
