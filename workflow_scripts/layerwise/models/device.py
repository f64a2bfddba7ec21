"""Where a model runs: what the config's ``device`` means here."""

import torch

# Weights may take this share of the free memory of one GPU; the rest is for activations.
_SHARE = 0.8


def resolve(device: str, weight_bytes: int) -> str:
    """Return where the model is placed: "cpu", "cuda", "cuda:N", "mps" or "split".

    Args:
        device: the config's word. "auto" takes a GPU where there is one, and spreads the blocks over all visible GPUs (and
            the CPU, if they do not suffice) where the weights do not fit into one.
        weight_bytes: of the weights in the dtype they run in.
    """
    if device != "auto":
        return device
    if torch.cuda.is_available():
        free, _ = torch.cuda.mem_get_info()
        return "cuda" if weight_bytes <= _SHARE * free else "split"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def weight_bytes(numbers: int, dtype: str) -> int:
    """Return the bytes of so many parameters in ``dtype`` ("float32", "bfloat16" or "float16")."""
    return numbers * (4 if dtype == "float32" else 2)
