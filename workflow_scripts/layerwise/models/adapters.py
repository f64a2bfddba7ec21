"""Merge PEFT adapters (LoRA) into a model, one after another, as LLM2Vec's models are published."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from layerwise.errors import ModelError
from layerwise.models.configs import read_mapping, refuse_code
from layerwise.models.hub_choice import ADAPTER
from layerwise.models.weight_files import count_parameters

_STORED = "base_model.model."
# Heads lie beyond the last layer; what an adapter changes in them is left out.
_HEADS = ("lm_head", "score", "classifier", "embed_out", "qa_outputs", "cls")
# What decides the merged weights, and what says nothing about them. Anything else is refused, not ignored.
_USED = (
    "r", "target_modules", "exclude_modules", "lora_alpha", "fan_in_fan_out", "bias", "use_rslora", "modules_to_save",
    "layers_to_transform", "layers_pattern", "rank_pattern", "alpha_pattern", "use_dora", "lora_bias",
)  # fmt: skip
_NEUTRAL = {
    "auto_mapping", "base_model_name_or_path", "revision", "task_type", "inference_mode", "peft_version", "peft_type",
    "megatron_core", "init_lora_weights", "lora_dropout", "runtime_config", "qalora_group_size", "ensure_weight_tying",
}  # fmt: skip
# These initialisations change the base weights too, which the files of an adapter do not say.
_PLAIN_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")


def merge(base: Path, adapters: list[tuple[str, Path]], folder: Path) -> dict[str, Any]:
    """Write to ``folder`` the model in ``base`` with ``adapters`` merged in their order, in the dtype that ``base`` has.

    Each product is computed and added in float32.

    Args:
        base: a Hugging Face folder, already described (so it names no code and has safetensors).
        adapters: labels to use in messages, and folders with adapter_config.json and adapter_model.safetensors.
        folder: an empty folder.

    Returns:
        Facts for the manifest: the stored dtype and the version of peft.

    Raises:
        ModelError: the base does not load, or an adapter is damaged, of another kind than LoRA, or does not fit.
    """
    import peft

    parts = [(label, *_opened(label, path)) for label, path in adapters]
    described = read_mapping(base / "config.json")
    stored = str(described.get("dtype") or described.get("torch_dtype") or "float32")
    model = _load(base)
    for label, config, tensors in parts:
        model = _merged(model, label, config, tensors)
    model.to(getattr(torch, stored)).save_pretrained(folder)  # type: ignore[operator]
    for file in base.iterdir():
        if file.suffix != ".safetensors" and ".index." not in file.name and not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    return {"stored_dtype": stored, "peft": peft.__version__}


def _load(base: Path) -> nn.Module:
    from transformers import AutoModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True, "use_safetensors": True}
    try:
        model, loading = AutoModel.from_pretrained(base, dtype=torch.float32, output_loading_info=True, **options)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"the model that adapters are for cannot be loaded ({type(error).__name__}: {reason}).") from error
    missing = sorted(key for key in loading["missing_keys"] if "pooler" not in key)
    if missing:
        raise ModelError(f"the model that adapters are for lacks {len(missing)} weights, such as {missing[0]!r}.")
    return model


def _opened(label: str, folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the tensors of an adapter, once it is known to be plain LoRA."""
    absent = next((name for name in ADAPTER if not (folder / name).is_file()), None)
    if absent is not None:
        raise ModelError(f"adapter {label!r} holds no {absent}; give a folder as peft saves it.")
    config = read_mapping(folder / ADAPTER[0])
    refuse_code([folder / ADAPTER[0]])
    count_parameters(folder)
    if config.get("peft_type") != "LORA":
        raise ModelError(f"adapter {label!r} is of type {config.get('peft_type')!r}; only 'LORA' can be merged here.")
    other = sorted(key for key, value in config.items() if value and key not in _USED and key not in _NEUTRAL)
    if config.get("init_lora_weights", True) not in _PLAIN_STARTS:
        other.append("init_lora_weights")
    if other:
        raise ModelError(f"adapter {label!r} sets {other[0]!r}, which cannot be merged here; merge it with peft.")
    return config, load_file(folder / ADAPTER[1])


def _merged(model: nn.Module, label: str, config: dict[str, Any], tensors: dict[str, Tensor]) -> nn.Module:
    """``model`` with one adapter added; refused unless every tensor finds its place and none is missing."""
    inner = {name for name, _ in model.named_modules()}
    prefix = _prefix(label, tensors, inner)
    kept = {key: value for key, value in tensors.items() if not _is_head(key, prefix, inner)}
    chosen = {key: config[key] for key in _USED if config.get(key) is not None}
    if isinstance(chosen.get("modules_to_save"), list):
        chosen["modules_to_save"] = [name for name in chosen["modules_to_save"] if name not in _HEADS] or None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers in a way that it will drop
            merged = _merge_one(_nested(model, prefix), chosen, kept)
    except Exception as error:
        reason = " ".join(str(error).split())[:250]
        raise ModelError(f"adapter {label!r} does not fit the model ({reason}); give the one it was made for.") from error
    for part in prefix:
        merged = getattr(merged, part)
    return merged


def _merge_one(model: nn.Module, config: dict[str, Any], tensors: dict[str, Tensor]) -> Any:  # noqa: ANN401 - as given
    from peft import LoraConfig, PeftModel, set_peft_model_state_dict

    wrapped = PeftModel(model, LoraConfig(**config, inference_mode=True))
    found: Any = set_peft_model_state_dict(wrapped, tensors)
    # peft itself only warns of these.
    lacking = [key for key in found.missing_keys if "lora_" in key or ".modules_to_save." in key]
    if lacking:
        raise ValueError(f"it lacks {lacking[0]!r}")
    if found.unexpected_keys:
        raise ValueError(f"its {found.unexpected_keys[0]!r} has no place in the model")
    return wrapped.merge_and_unload(safe_merge=True)


def _prefix(label: str, tensors: dict[str, Tensor], modules: set[str]) -> list[str]:
    """What stands before the backbone's own names in the adapter's: nothing, or ``model`` if it was trained with a head."""
    paths = [key.removeprefix(_STORED).split(".lora_")[0].split(".") for key in tensors if ".lora_" in key]
    for path in paths:
        for start in range(len(path)):
            if ".".join(path[start:]) in modules:
                return path[:start]
    example = ".".join(paths[0]) if paths else next(iter(tensors), "nothing")
    raise ModelError(f"adapter {label!r} does not fit the model (it has no {example!r}); give the one it was made for.")


def _is_head(key: str, prefix: list[str], modules: set[str]) -> bool:
    first = key.removeprefix(_STORED).split(".")[0]
    return first in _HEADS and first not in modules and [first] != prefix[:1]


def _nested(model: nn.Module, prefix: list[str]) -> nn.Module:
    """``model`` under the names it had when the adapter was trained, so that names and patterns of them match."""
    for part in reversed(prefix):
        outer = nn.Module()
        outer.add_module(part, model)
        outer.config = model.config
        model = outer
    return model
