"""What an activation file holds and how it lies on the disk: names, shapes and chunks of its arrays (see ``store``)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

RESIDUAL = "residual"
CLAMPED_RECIPE = "centre_unit"
CHUNK_BYTES = 2**20
_DATASET_BYTES = 2**14  # more than the header and the chunk index of one dataset take


class Contents(Protocol):
    """The part of a file's header that says which arrays it holds."""

    @property
    def n_layers(self) -> int:
        """L."""

    @property
    def width(self) -> int:
        """D."""

    @property
    def taps(self) -> Sequence[str]:
        """Where in a block layers were read."""

    @property
    def readouts(self) -> Sequence[dict[str, str]]:
        """Each with its ``name``."""

    @property
    def recipes(self) -> Sequence[str]:
        """None: no token statistics."""


def place(tap: str) -> str:
    """Return what the names of a tap's arrays begin with: nothing for the residual stream, else "taps/{tap}/"."""
    return "" if tap == RESIDUAL else f"taps/{tap}/"


def layers_of(tap: str, n_layers: int) -> range:
    """Return the layers a tap is read at: 0..L for the residual stream, 1..L inside the blocks."""
    return range(0 if tap == RESIDUAL else 1, n_layers + 1)


def arrays(contents: Contents, n: int, total: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every array of a file with ``n`` rows and ``total`` eigenvalues per layer and recipe."""
    for tap in contents.taps:
        for layer in layers_of(tap, contents.n_layers):
            for name, shape in _of_layer(contents, n, total):
                yield f"{place(tap)}{name}/{layer:03d}", shape


def _of_layer(contents: Contents, n: int, total: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    for readout in contents.readouts:
        yield f"readout/{readout['name']}", (n, contents.width)
    for recipe in contents.recipes:
        yield f"tokens/{recipe}/spectrum", (total,)
        yield f"tokens/{recipe}/turning_angle", (n, 2)
    if CLAMPED_RECIPE in contents.recipes:
        yield f"tokens/{CLAMPED_RECIPE}/entropy_clamped", (n,)
    if contents.recipes:
        yield "tokens/norm", (n, 3)
        yield "tokens/cosine", (n, 2)


def is_readout(name: str) -> bool:
    """Whether an array holds vectors, which alone may be stored in half precision."""
    return "/readout/" in f"/{name}"


def chunk(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Blocks of whole rows of about 1 MiB."""
    rows = CHUNK_BYTES // (dtype.itemsize * math.prod(shape[1:]))
    return (max(1, min(shape[0], rows)), *shape[1:])


def stored_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Bytes of an array in whole chunks, uncompressed, with its header and index."""
    rows = chunk(shape, dtype)[0]
    return -(-shape[0] // rows) * rows * math.prod(shape[1:]) * dtype.itemsize + _DATASET_BYTES


def written(dataset: h5py.Dataset) -> bool:
    """Whether every chunk is in the file; a damaged header can declare any shape at no cost."""
    if dataset.chunks is None:
        return bool(dataset.id.get_storage_size() >= dataset.nbytes)
    chunks = math.prod(-(-rows // size) for rows, size in zip(dataset.shape, dataset.chunks, strict=True))
    return bool(dataset.id.get_num_chunks() == chunks)


def gathered(dataset: h5py.Dataset, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return some rows of an array, in the order of ``places``; memory beside them is one chunk of the file."""
    found = np.empty((len(places), *dataset.shape[1:]))
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    rows = dataset.chunks[0] if dataset.chunks else max(len(dataset), 1)
    for start in np.unique(ordered // rows) * rows:
        begin, end = np.searchsorted(ordered, [start, start + rows])
        found[order[begin:end]] = dataset[start : start + rows][ordered[begin:end] - start]
    return found
