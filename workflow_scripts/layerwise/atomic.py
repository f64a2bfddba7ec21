"""Files that are either whole or absent: temporary name, fsync, rename."""

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from layerwise.errors import FileError

_HOST = socket.gethostname()
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def atomic_path(final: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``final`` and rename it into place when the block ends without an error.

    The temporary is removed on any error, and so are temporaries left by dead processes of this host, even one that had
    this process's number, as processes in containers do.

    Raises:
        FileError: the disk is full (the message states the free bytes and the folder).
    """
    final = Path(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(final)
    temporary = final.with_name(f".{final.name}.{_HOST}.{os.getpid()}.tmp")
    try:
        with room_for(final):
            yield temporary
            _fsync(temporary)
            os.replace(temporary, final)
            _fsync(final.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def room_for(final: str | os.PathLike[str]) -> Iterator[None]:
    """Say in one sentence that a full disk stopped the block, which writes ``final`` or what belongs to it.

    Raises:
        FileError: see ``disk_full``.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise disk_full(final, getattr(error, "needed", None)) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` as UTF-8 to ``path`` atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def reserve(temporary: str | os.PathLike[str], needed: int) -> None:
    """Claim ``needed`` bytes for an open temporary, so that a full disk shows before the work and not in the middle of it.

    HDF5 does not survive a full disk: it fails on closing, again, and ends the process with a segmentation fault.

    Raises:
        OSError: there is no room; ``atomic_path`` turns it into a sentence that states ``needed``.
    """
    try:
        if shutil.disk_usage(Path(temporary).parent).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        descriptor = os.open(temporary, os.O_RDWR)
        try:
            if hasattr(os, "posix_fallocate"):  # not on macOS
                os.posix_fallocate(descriptor, 0, needed)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _FULL:
            raise _NoRoom(error.errno, str(error.strerror), needed) from error


class _NoRoom(OSError):
    def __init__(self, number: int, text: str, needed: int) -> None:
        super().__init__(number, text)
        self.needed = needed


def disk_full(path: str | os.PathLike[str], needed: int | None = None) -> FileError:
    """Return the error that says how many bytes are free where ``path`` should be written (and how many it needs)."""
    folder = Path(path).parent
    free = shutil.disk_usage(folder).free
    wanted = f"{needed:,} bytes are needed and " if needed is not None else ""
    return FileError(f"no room to write {path}: {wanted}{free:,} bytes are free in {folder}; free some space and run again.")


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_stale(final: Path) -> None:
    for leftover in final.parent.glob(f".{final.name}.{_HOST}.*.tmp"):
        pid = leftover.name.rsplit(".", 2)[-2]
        if pid.isdigit() and (int(pid) == os.getpid() or not _alive(int(pid))):
            leftover.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
