"""Which device ``auto`` means here."""

import torch


def resolve(device: str) -> str:
    """Return "cuda", "mps" or "cpu" for "auto"; any other word as it is."""
    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
