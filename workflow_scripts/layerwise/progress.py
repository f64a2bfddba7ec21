"""What a rule says while it runs: progress with an estimate, and errors as one sentence with the traceback in the log."""

import contextlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from layerwise.errors import LayerwiseError


class Progress:
    """Print ``label: done/total, time left`` at most every ``every`` seconds; call it with (done, total).

    The first piece often pays for imports and caches. So the time left is estimated from the pieces after the first call,
    and only once three of them took five seconds together; until then a line says how much is done, and no more.
    """

    def __init__(self, label: str, every: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Start the clock."""
        self.label, self.every, self.clock = label, every, clock
        self.last = clock()
        self.first: tuple[float, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` equal pieces are finished."""
        now = self.clock()
        if not done:
            return
        self.first = self.first or (now, done)
        if now - self.last < self.every:
            return
        self.last = now
        took, pieces = now - self.first[0], done - self.first[1]
        left = f", about {took / pieces * (total - done):.0f} s left" if pieces >= 3 and took >= 5.0 else ""
        print(f"{self.label}: {done:,}/{total:,}{left}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _heard(progress: Progress, first: float = 5.0) -> Iterator[None]:
    """Say that the work goes on, and since when, while it says nothing: after 5 s of silence, then less and less often."""
    stop, start = threading.Event(), progress.clock()

    def speak() -> None:
        silence = first
        while not stop.wait(silence):
            patience = silence if progress.first is None else 6 * first  # what counts its pieces speaks for itself
            if progress.clock() - progress.last >= patience:
                print(f"{progress.label}: running for {progress.clock() - start:.0f} s", file=sys.stderr, flush=True)
                silence = min(2 * silence, 60.0)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        stop.set()
        speaker.join()


class _Tee:
    def __init__(self, *streams: TextIO) -> None:
        self.streams = streams

    def write(self, text: str) -> int:
        for stream in self.streams:
            stream.write(text)
        return len(text)

    def flush(self) -> None:
        for stream in self.streams:
            stream.flush()

    def isatty(self) -> bool:
        return False


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, which a cluster sends first, end the work as an exit does: on its way temporaries are removed.

    Those of another node are told from dead ones by nobody, so that the next run could not.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone may say what a signal does
        yield
        return

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def rule_log(path: str, label: str) -> Iterator[Callable[[int, int], None]]:
    """Run a rule's work: copy what it prints to ``path``, turn its errors into one sentence, yield its progress printer.

    A rule that prints no progress is heard of all the same, see ``_heard``.

    A ``LayerwiseError`` is printed as its sentence, with its traceback in the log only; any other exception prints its
    last line and the log's path. Both end the process with exit status 1.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    terminal = sys.stderr
    with Path(path).open("w", encoding="utf-8", buffering=1) as log:
        tee = _Tee(terminal, log)
        with contextlib.redirect_stdout(tee), contextlib.redirect_stderr(tee):
            try:
                progress = Progress(label)
                with _heard(progress), _terminable():
                    yield progress
                return
            except LayerwiseError as error:
                print(f"{label}: {error}", file=terminal)
                traceback.print_exc(file=log)
            except Exception as error:
                print(f"{label}: {type(error).__name__}: {error} (traceback in {path})", file=terminal)
                traceback.print_exc(file=log)
    raise SystemExit(1)
