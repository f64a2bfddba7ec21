"""Where a model runs: what the config's ``device`` means here."""

import contextlib
import ctypes

import torch

from layerwise.models.own_gpu import take

# Weights may take this share of the free memory of one GPU; the rest is for activations.
_SHARE = 0.8
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # options of mallopt


def keep_freed_memory() -> None:
    """Let glibc keep what a batch frees for the next one; that the kernel clears it anew took a twentieth of the time.

    Elsewhere (macOS, musl) it does nothing.
    """
    with contextlib.suppress(AttributeError, OSError):
        option = ctypes.CDLL(None).mallopt
        option(_MMAP_THRESHOLD, 2**25)  # the most it takes
        option(_TRIM_THRESHOLD, 2**30)


def resolve(device: str, weight_bytes: int) -> str:
    """Return where the model is placed: "cpu", "cuda", "cuda:N", "mps" or "split".

    Args:
        device: the config's word. "auto" takes a GPU where there is one, and spreads the blocks over all visible GPUs (and
            the CPU, if they do not suffice) where the weights do not fit into one. Of several GPUs, "auto" and "cuda" take
            one that no other job holds.
        weight_bytes: of the weights in the dtype they run in.
    """
    if device == "cuda" and torch.cuda.is_available():
        return _own_gpu()
    if device != "auto":
        return device
    if torch.cuda.is_available():
        own = _own_gpu()
        free, _ = torch.cuda.mem_get_info(own)
        return own if weight_bytes <= _SHARE * free else "split"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _own_gpu() -> str:
    """Return the GPU that this job runs on: of several, one that no other job holds, else that with most free memory."""
    count = torch.cuda.device_count()
    if count < 2:
        return "cuda"
    found = take([str(torch.cuda.get_device_properties(i).uuid) for i in range(count)])
    if found is None:
        found = max(range(count), key=lambda i: torch.cuda.mem_get_info(i)[0])
    return f"cuda:{found}"


def weight_bytes(numbers: int, dtype: str) -> int:
    """Return the bytes of so many parameters in ``dtype`` ("float32", "bfloat16" or "float16")."""
    return numbers * (4 if dtype == "float32" else 2)
