"""How many GPUs a process sees, without starting CUDA."""

import os
from collections.abc import Mapping
from pathlib import Path


def visible_gpus(environment: Mapping[str, str] = os.environ, devices: Path = Path("/dev")) -> int:
    """Return the number of NVIDIA GPUs of this machine, or of those that CUDA_VISIBLE_DEVICES leaves.

    Args:
        environment: of the process.
        devices: where the device nodes lie.
    """
    present = len(list(devices.glob("nvidia[0-9]*"))) or int((devices / "dxg").exists())
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is None or not present:
        return present
    count = 0
    for word in (word.strip() for word in named.split(",")):
        if not word or word.startswith("-"):  # CUDA ignores what follows an invalid one
            break
        count += 1
    return count
