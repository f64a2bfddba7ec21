"""The activation file: one HDF5 file per model and dataset, written once, verified by every reader (DESIGN, section 4).

attrs                                       what was run; ``complete`` is written last
/id /source_id /view /n_tokens              one row per row of samples.parquet
/readout/{name}/{layer:03d}                 (N, D)
/tokens/offsets                             (N + 1,) cumulative min(T, D): where a sample's spectrum begins
/tokens/{recipe}/spectrum/{layer:03d}       ragged, normalised eigenvalues, largest first
/tokens/{recipe}/turning_angle/{layer:03d}  (N, 2) mean signed, mean absolute, radians
/tokens/centre_unit/entropy_clamped/{layer:03d}  (N,) nats
/tokens/norm/{layer:03d}                    (N, 3) norm of the first token; of the rest: median norm, root sum of squares
/tokens/cosine/{layer:03d}                  (N, 2) mean cosine between tokens: of all, without the first
/taps/{tap}/readout/..., /taps/{tap}/tokens/...  the same at each tap inside the blocks, for layers 1..L

Schema 2 added the third column of ``tokens/norm``, ``tokens/cosine`` and taps.
"""

import contextlib
import copy
import dataclasses
import json
import os
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from layerwise.atomic import reserve
from layerwise.errors import FileError
from layerwise.store_layout import (
    CHUNK_BYTES,
    CLAMPED_RECIPE,
    RESIDUAL,
    arrays,
    chunk,
    is_readout,
    layers_of,
    place,
    stored_bytes,
    written,
)

__all__ = ["CLAMPED_RECIPE", "RESIDUAL", "SCHEMA_VERSION", "Activations", "Header", "Writer", "place"]

SCHEMA_VERSION = 2
_FLOAT16_MAX = 65504.0

Float = NDArray[np.float64]


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


class Writer:
    """Write an activation file window by window; the file counts as complete only once ``close`` has returned.

    Args:
        path: where to write; the caller renames it into place.
        header: see ``Header``.
        ids: (N,) sample ids. source_ids: (N,). views: (N,) int. n_tokens: (N,) int.
        storage: "float32", or "float16", which is refused when a value exceeds 65,504.
        compression: None, "gzip" or "lzf".
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


class Activations:
    """Read a complete activation file; every array comes back as float64, checked for NaN where a NaN has no meaning.

    Attributes:
        tap: where in a block layers are read, ``residual`` on opening; see ``at``.
        layers: the layers there are at this tap.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open and verify the file.

        Raises:
            FileError: not HDF5, not complete, another schema version, or an array that is absent, of the wrong shape or
                type, stored elsewhere, or larger than the file can hold.
        """
        self.path = Path(path)
        try:
            self.file = h5py.File(self.path, "r")
        except OSError as error:
            raise FileError(f"{path} is not a readable activation file ({error}); delete it and run again.") from error
        try:
            self._load_header()
            self._verify()
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError, OSError) as error:
            self.file.close()
            raise FileError(f"{path} is damaged ({error}); delete it and run again.") from error
        except FileError:
            self.file.close()
            raise

    def _load_header(self) -> None:
        attributes = dict(self.file.attrs)
        complete = attributes.get("complete")
        if not (isinstance(complete, np.bool_) and complete):
            raise FileError(f"{self.path} is incomplete: its extraction was interrupted; delete it and run again.")
        if attributes["schema_version"] != SCHEMA_VERSION:
            raise FileError(
                f"{self.path} has schema version {attributes['schema_version']}, this program reads {SCHEMA_VERSION}; "
                "delete it and run again."
            )
        values = {}
        for field in dataclasses.fields(Header):
            value = attributes[field.name]
            nested = field.type in (list[str], list[dict[str, str]], dict[str, Any])
            values[field.name] = json.loads(value) if nested else value.item() if isinstance(value, np.generic) else value
        self.header = Header(**values)
        self.n_layers, self.width = self.header.n_layers, self.header.width
        self.tap, self.layers = RESIDUAL, layers_of(RESIDUAL, self.n_layers)
        outside = self.file.visititems_links(lambda name, link: None if isinstance(link, h5py.HardLink) else name)
        if outside is not None:
            raise ValueError(f"{outside} is stored elsewhere")
        self.ids: list[str] = [value.decode() for value in self._column("id", "S")]
        self.source_ids: list[str] = [value.decode() for value in self._column("source_id", "S")]
        self.view: NDArray[np.int64] = self._column("view", "i")
        self.n_tokens: NDArray[np.int64] = self._column("n_tokens", "i")
        self._views = self._view_rows()

    def _verify(self) -> None:
        n = len(self.ids)
        if not len(self.source_ids) == len(self.view) == len(self.n_tokens) == n:
            raise ValueError("its row columns differ in length")
        if len(self.header.layer_names) != self.n_layers + 1:
            raise ValueError(f"{len(self.header.layer_names)} layer names for {self.n_layers + 1} layers")
        expected = dict(arrays(self.header, n, int(np.minimum(self.n_tokens, self.width).sum())))
        for name, shape in expected.items():
            dataset = self._dataset(name)
            if dataset.shape != shape or dataset.dtype not in (np.float32, np.float16):
                raise ValueError(f"{name} is {dataset.dtype}{dataset.shape}, float{shape} expected")
            if not written(dataset):
                raise ValueError(f"{name} declares more rows than the file holds")
        for name, count in Counter(name.rpartition("/")[0] for name in expected).items():
            if len(self.file[name]) != count:
                raise ValueError(f"{name} holds {len(self.file[name])} layers, {count} expected")

    def _dataset(self, name: str) -> h5py.Dataset:
        dataset = self.file.get(name)
        if not isinstance(dataset, h5py.Dataset) or dataset.external or dataset.is_virtual:
            raise ValueError(f"{name} is absent or stored elsewhere")
        return dataset

    def _column(self, name: str, kind: str) -> NDArray[Any]:
        """One value per row; its declared size is checked before memory is taken for it."""
        column = self._dataset(name)
        if column.ndim != 1 or column.dtype.kind != kind or column.nbytes > self.path.stat().st_size:
            raise ValueError(f"{name} is {column.dtype}{column.shape}")
        return np.asarray(column[:])

    def _view_rows(self) -> NDArray[np.int64]:
        """Row numbers (samples, views), samples in order of first appearance, views ascending."""
        first = {source: i for i, source in enumerate(dict.fromkeys(self.source_ids))}
        sample = np.array([first[source] for source in self.source_ids])
        order = np.lexsort((self.view, sample))
        if len(first) != self.header.n_samples:
            raise ValueError(f"{len(first)} distinct samples, {self.header.n_samples} in its header")
        if len(np.unique(np.bincount(sample))) != 1:
            raise ValueError("its samples differ in their number of views")
        return order.reshape(len(first), -1)

    @property
    def readouts(self) -> list[str]:
        """Names of the stored readouts."""
        return [readout["name"] for readout in self.header.readouts]

    @property
    def recipes(self) -> list[str]:
        """Names of the stored recipes."""
        return self.header.recipes

    @property
    def n_views(self) -> int:
        """Views of each sample; 1 for a dataset without views."""
        return self._views.shape[1]

    @property
    def taps(self) -> list[str]:
        """Where in a block layers were read; ``residual`` first."""
        return self.header.taps

    def at(self, tap: str) -> Self:
        """Return a reader of the same open file whose arrays are those of ``tap``.

        Raises:
            FileError: the file was not read there.
        """
        if tap not in self.taps:
            raise FileError(
                f"{self.path} was read at {', '.join(self.taps)}, not at {tap!r}; add it to 'taps' of dataset "
                f"{self.header.dataset!r} and run again."
            )
        other = copy.copy(self)
        other.tap, other.layers = tap, layers_of(tap, self.n_layers)
        return other

    def rows(self, readout: str, layer: int) -> Float:
        """Return all rows (N, D) in the order of samples.parquet.

        Raises:
            FileError: a checksum fails, or a row holds NaN or infinity.
        """
        values = self._read(f"readout/{readout}/{layer:03d}")
        bad = ~np.isfinite(values).all(axis=1)
        if bad.any():
            raise FileError(
                f"{self.path}: readout {readout!r}, layer {layer} holds NaN or infinity in {int(bad.sum())} rows, first "
                f"{self.ids[int(bad.argmax())]!r}; run the model in float32."
            )
        return values

    def pooled(self, readout: str, layer: int) -> Float:
        """Return (n_samples, D): the first view of every sample."""
        return self.rows(readout, layer)[self._views[:, 0]]

    def views(self, readout: str, layer: int) -> Float:
        """Return (n_samples, n_views, D)."""
        return self.rows(readout, layer)[self._views]

    def spectra(self, recipe: str, layer: int) -> Float:
        """Return (N, max r) normalised eigenvalues, zero padded; rows are NaN where undefined (one-token samples)."""
        flat = self._read(f"tokens/{recipe}/spectrum/{layer:03d}")
        lengths = np.minimum(self.n_tokens, self.width)
        padded = np.zeros((len(lengths), int(lengths.max())))
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = flat
        padded[np.isnan(padded).any(axis=1)] = np.nan
        return padded

    def angles(self, recipe: str, layer: int) -> Float:
        """Return (N, 2): mean signed and mean absolute turning angle in radians; NaN where undefined."""
        return self._read(f"tokens/{recipe}/turning_angle/{layer:03d}")

    def entropy_clamped(self, layer: int) -> Float:
        """Return (N,) the authors' clamped prompt entropy in nats (recipe ``centre_unit``); NaN where undefined."""
        return self._read(f"tokens/{CLAMPED_RECIPE}/entropy_clamped/{layer:03d}")

    def token_norms(self, layer: int) -> Float:
        """Return (N, 3): norm of the first token; of the rest median norm (NaN if none), root sum of squares (or 0)."""
        return self._read(f"tokens/norm/{layer:03d}")

    def token_cosines(self, layer: int) -> Float:
        """Return (N, 2): mean cosine between different tokens of a sample, of all and without the first; NaN below two."""
        return self._read(f"tokens/cosine/{layer:03d}")

    def _read(self, name: str) -> Float:
        name = place(self.tap) + name
        try:
            return np.asarray(self.file[name][:], dtype=np.float64)
        except (OSError, KeyError) as error:
            raise FileError(f"{self.path}: cannot read {name} ({error}); delete the file and run again.") from error

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file."""
        self.close()
