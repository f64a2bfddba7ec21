"""Which of several GPUs a job takes: one that no other job on this machine holds, as long as there is one."""

import fcntl
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

_HELD: list[TextIO] = []  # until the process ends; the system then lets go of them, however it ends


def take(names: Sequence[str], folder: Path | None = None) -> int | None:
    """Hold a GPU for the rest of this process and return its place in ``names``, or None where all are held.

    Args:
        names: what tells the GPUs apart on this machine, whatever CUDA_VISIBLE_DEVICES calls them.
        folder: of the lock files, which all jobs of the user share; one for temporary files where None.
    """
    folder = folder or Path(tempfile.gettempdir()) / f"layerwise-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for place, name in enumerate(names):
        lock = (folder / f"gpu-{name}.lock").open("a", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        _HELD.append(lock)
        return place
    return None
