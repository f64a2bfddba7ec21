"""Opening a Hugging Face folder: no remote code, safetensors only, every weight from the file, an explicit dtype."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel
from transformers.utils.logging import disable_progress_bar

from layerwise.errors import ModelError

# Where models of several modalities keep the part that reads texts, or images.
_TOWERS = {"text": ("text_model", "language_model"), "vision": ("vision_model", "vision_tower")}
# Parts beyond the last layer: no readout sees them, so the files may lack them.
_BEYOND = ("pooler.", "head.", "visual_projection.", "text_projection.")


def load_backbone(
    folder: Path,
    name: str,
    dtype: str,
    front: Any,  # noqa: ANN401 - AutoTokenizer or AutoImageProcessor
    tower: str,
    device: str,
) -> tuple[nn.Module, Any]:
    """Load the model in ``folder`` without its head, and what turns samples into its input.

    Args:
        folder: holds config, tokenizer or preprocessor, and safetensors files.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16"; never the checkpoint's own by default.
        front: class whose ``from_pretrained`` opens the tokenizer or the preprocessor.
        tower: "text" or "vision": which part of a model that has both, such as CLIP.
        device: "cpu", "cuda", "cuda:N", "mps", or "split": blocks spread over the visible GPUs by accelerate.

    Returns:
        The model (its ``config`` is that of the tower), placed, and the tokenizer or preprocessor.

    Raises:
        ModelError: missing or damaged files, an unknown architecture, or weights that are not in the files.
    """
    disable_progress_bar()
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    try:
        config = AutoConfig.from_pretrained(folder, **options)
        opened = front.from_pretrained(folder, **options)
        module, loading = AutoModel.from_pretrained(
            folder,
            config=config,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            output_loading_info=True,
            # Said here, so that no config.json can choose a kernel that is fetched and run.
            attn_implementation=_attention(config),
            **({"device_map": "auto"} if device == "split" else {}),
            **options,
        )
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"model {name!r} cannot be loaded from {folder} ({type(error).__name__}: {reason}).") from error
    missing = sorted(key for key in loading["missing_keys"] if not any(part in f".{key}" for part in _beyond()))
    if missing:
        raise ModelError(f"model {name!r}: {folder} lacks {len(missing)} of its weights, such as {missing[0]!r}.")
    part = next((getattr(module, key) for key in _TOWERS[tower] if hasattr(module, key)), module)
    return (part if device == "split" else part.to(torch.device(device))).eval(), opened


def _beyond() -> list[str]:
    return [f".{part}" for part in _BEYOND]


def _attention(config: Any) -> str:  # noqa: ANN401 - any configuration
    """PyTorch's own attention where the architecture has it: fast, exact, and it takes explicit masks."""
    return "sdpa" if getattr(AutoModel._model_mapping[type(config)], "_supports_sdpa", False) else "eager"
