"""Opening a Hugging Face folder: no remote code, safetensors only, every weight from the file, an explicit dtype."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel
from transformers.utils.logging import disable_progress_bar

from layerwise.errors import ModelError


def load_backbone(
    folder: Path,
    name: str,
    dtype: str,
    front: Any,  # noqa: ANN401 - AutoTokenizer or AutoImageProcessor
    **extra: str,
) -> tuple[nn.Module, Any, Any]:
    """Load the model in ``folder`` without its head, and what turns samples into its input.

    Args:
        folder: holds config, tokenizer or preprocessor, and safetensors files.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16"; never the checkpoint's own by default.
        front: class whose ``from_pretrained`` opens the tokenizer or the preprocessor.
        extra: further options of the model.

    Returns:
        The model, its config, and the tokenizer or preprocessor.

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
            **extra,
            **options,
        )
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"model {name!r} cannot be loaded from {folder} ({type(error).__name__}: {reason}).") from error
    # The pooler is beyond the last layer; anything else that is not in the file would be random.
    missing = sorted(key for key in loading["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise ModelError(f"model {name!r}: {folder} lacks {len(missing)} of its weights, such as {missing[0]!r}.")
    return module, config, opened
