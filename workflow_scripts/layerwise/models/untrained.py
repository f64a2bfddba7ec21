"""The untrained twin of a model: its configuration, tokenizer and processor with fresh random weights."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from layerwise.errors import ModelError


def build(like: Path, seed: int, folder: Path) -> dict[str, Any]:
    """Write to ``folder`` what is in ``like``, with weights drawn by the library's own initialisation from ``seed``.

    Args:
        like: weights folder of the trained model, from Hugging Face or timm.
        seed: of the weights.
        folder: an empty folder.

    Returns:
        Facts for the manifest.

    Raises:
        ModelError: the architecture cannot be built from its configuration.
    """
    for file in like.iterdir():
        if file.suffix not in (".safetensors", ".md") and not file.name.endswith(".index.json"):
            shutil.copyfile(file, folder / file.name)
    described = json.loads((folder / "config.json").read_text("utf-8"))
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            (_timm if "architecture" in described else _hugging_face)(described, folder)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"no untrained twin can be built from {like} ({type(error).__name__}: {reason}).") from error
    return {"from": "random", "seed": seed, "stored_dtype": "float32", "note": "random weights, never trained"}


def _hugging_face(_described: dict[str, Any], folder: Path) -> None:
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    AutoModel.from_config(config, dtype=torch.float32).save_pretrained(folder)


def _timm(described: dict[str, Any], folder: Path) -> None:
    import timm
    from safetensors.torch import save_file

    model = timm.create_model(described["architecture"], pretrained=False, **described.get("model_args", {}))
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, folder / "model.safetensors")
