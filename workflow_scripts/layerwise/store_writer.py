"""Writing an activation file, window by window; what it holds and how it is read: ``store``."""

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from layerwise.atomic import reserve
from layerwise.errors import FileError
from layerwise.store_layout import CHUNK_BYTES, arrays, chunk, is_readout, stored_bytes

SCHEMA_VERSION = 3
_FLOAT16_MAX = 65504.0


@dataclasses.dataclass(frozen=True)
class Header:
    """What was run: everything a reader must know that is not an array."""

    model: str
    model_revision: str
    dtype: str
    dataset: str
    dataset_digest: str
    n_samples: int
    n_layers: int
    width: int
    layer_names: list[str]
    taps: list[str]
    final_norm: bool
    readouts: list[dict[str, str]]
    recipes: list[str]
    provenance: dict[str, Any]
    token_transform: dict[str, Any] = dataclasses.field(default_factory=dict)


class Writer:
    """Write an activation file window by window; the file counts as complete only once ``close`` has returned.

    Args:
        path: where to write; the caller renames it into place.
        header: see ``Header``.
        ids: (N,) sample ids. source_ids: (N,). views: (N,) int. n_tokens: (N,) int.
        storage: "float32", or "float16", which is refused when a value exceeds 65,504.
        compression: None, "gzip" or "lzf".
        input_ids: token ids of every row, kept where a transform changed them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: Header,
        ids: list[str],
        source_ids: list[str],
        views: NDArray[np.int64],
        n_tokens: NDArray[np.int64],
        storage: str = "float32",
        compression: str | None = None,
        input_ids: list[list[int]] | None = None,
    ) -> None:
        """Create the file with every dataset at its full shape, and claim the room it needs (without compression).

        Raises:
            OSError: there is no room.
        """
        self.header = header
        self._offsets = np.concatenate([[0], np.cumsum(np.minimum(n_tokens, header.width))]).astype(np.int64)
        planned = [
            (name, shape, np.dtype(storage if is_readout(name) else "float32"))
            for name, shape in arrays(header, len(ids), int(self._offsets[-1]))
        ]
        self.file = h5py.File(Path(path), "x")
        with contextlib.ExitStack() as opened:
            opened.callback(self.file.close)
            reserve(path, CHUNK_BYTES + sum(stored_bytes(shape, dtype) for _, shape, dtype in planned))
            opened.pop_all()
        for key, value in dataclasses.asdict(header).items():
            self.file.attrs[key] = json.dumps(value) if isinstance(value, list | dict) else value
        self.file.attrs["schema_version"] = SCHEMA_VERSION
        self.file.attrs["complete"] = False
        for name, texts in (("id", ids), ("source_id", source_ids)):
            encoded = np.array([text.encode() for text in texts])
            self._column(name, encoded.astype(h5py.string_dtype("utf-8", encoded.dtype.itemsize)))
        self._column("view", views)
        self._column("n_tokens", n_tokens)
        if input_ids is not None:
            self._column("input_ids", np.concatenate([np.array(ids, dtype=np.int32) for ids in input_ids]))
        if header.recipes:
            self._column("tokens/offsets", self._offsets)
        options = {"fletcher32": True, "compression": compression, "fillvalue": np.nan, "track_times": False}
        for name, shape, dtype in planned:
            self.file.create_dataset(name, shape, dtype, chunks=chunk(shape, dtype), **options)

    def _column(self, name: str, values: NDArray[Any]) -> None:
        chunks = chunk(values.shape, values.dtype)
        self.file.create_dataset(name, data=values, chunks=chunks, fletcher32=True, track_times=False)

    def write(self, start: int, window: dict[str, NDArray[Any]]) -> None:
        """Write a window of contiguous rows that begins at row ``start``.

        Args:
            start: first row.
            window: dataset name to its rows; a spectrum is given flat, as the concatenation of its samples' eigenvalues.

        Raises:
            FileError: float16 was asked for and a value exceeds 65,504.
        """
        for name, rows in window.items():
            target = self.file[name]
            if target.dtype == np.float16 and np.abs(rows).max(initial=0) > _FLOAT16_MAX:
                raise FileError(f"{name} holds a value beyond 65,504, which float16 cannot store; set 'storage: float32'.")
            begin = int(self._offsets[start]) if "/spectrum/" in name else start
            target[begin : begin + len(rows)] = rows

    def close(self) -> None:
        """Flush, then mark the file complete; give back the room that was claimed and not used."""
        self.file.flush()
        self.file.attrs["complete"] = True
        self.file.flush()
        path, size = self.file.filename, self.file.id.get_filesize()
        self.file.close()
        os.truncate(path, size)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Mark the file complete unless an error is on its way."""
        if kind is None:
            self.close()
        else:
            self.file.close()
