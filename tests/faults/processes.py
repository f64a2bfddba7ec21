"""Processes to kill: forks of this one, which has imported torch already, as a job of Snakemake would have."""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator

from layerwise.progress import rule_log


@contextlib.contextmanager
def started(work: Callable[[], None]) -> Iterator[int]:
    """The number of a process that does ``work``; its exit status is that of ``SystemExit``, 0 without an error, else 1."""
    child = os.fork()
    if child == 0:
        status = 0
        try:
            work()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            traceback.print_exc(file=sys.stderr)
            status = 1
        os._exit(status)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def ended(child: int) -> int:
    """Wait; minus the number of the signal that ended it, else its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_after(work: Callable[[], None], seconds: float, number: int = signal.SIGKILL) -> int:
    """Do ``work`` in a process that gets a signal after some seconds; how it ended."""
    with started(work) as child:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
        return ended(child)


def as_rule(log: str, work: Callable[..., None]) -> Callable[[], None]:
    """The work of a rule as an adapter does it, with its log."""

    def run() -> None:
        with rule_log(log, "rule") as progress:
            work(progress)

    return run
