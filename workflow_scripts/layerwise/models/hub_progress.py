"""How far a download is, as huggingface_hub reports it, and an end to servers that never get there."""

from typing import Any, Self

from layerwise.errors import ModelError
from layerwise.progress import Progress

# A file may arrive so many times over, in pieces that a broken connection cost, before the download is given up.
_PATIENCE = 5


class Meter:
    """Bytes of several files; prints through ``Progress``."""

    def __init__(self, label: str) -> None:
        """Start at nothing; ``total`` (bytes) is set once it is known."""
        self.progress, self.total = Progress(label), 0
        self._finished = self._here = self._received = 0
        self._name, self._size = "", 0

    def begin(self, name: str, size: int | None) -> type[Any]:
        """Return what huggingface_hub takes as a progress bar for the next file, of ``size`` bytes."""
        self._name, self._size, self._here, self._received = name, size or 0, 0, 0
        meter = self

        class Bar:
            def __init__(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
                pass

            def update(self, n: float = 1) -> None:
                meter.add(int(n))

            def close(self) -> None:
                pass

            def refresh(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
                pass

            # With update_transfer, Xet reports to this one bar and not to a second one, which would count twice.
            set_description = set_postfix_str = update_transfer = set_transfer_postfix_str = refresh

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        return Bar

    def add(self, n: int) -> None:
        """Count ``n`` bytes that arrived, or, where negative, that were thrown away.

        Raises:
            ModelError: the file has arrived several times over and is still not whole.
        """
        self._here += n
        self._received += max(n, 0)
        if self._size and self._received > _PATIENCE * self._size:
            raise ModelError(f"{self._name} was sent {_PATIENCE} times and is not whole; run again over another connection.")
        self.progress(self._finished + self._here, max(self.total, self._finished + self._here))

    def finish(self, size: int) -> None:
        """The file, of ``size`` bytes, is there."""
        self._finished, self._here = self._finished + size, 0
