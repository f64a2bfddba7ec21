"""The activation file: one HDF5 file per model and dataset, written once, verified by every reader (DESIGN, section 4).

attrs                                       what was run; ``complete`` is written last
/id /source_id /view /n_tokens              one row per row of samples.parquet
/readout/{name}/{layer:03d}                 (N, D)
/input_ids                                  (sum of n_tokens,) int32, row after row; only with a transform of tokens
/tokens/offsets                             (N + 1,) cumulative min(T, D): where a sample's spectrum begins
/tokens/{recipe}/spectrum/{layer:03d}       ragged, normalised eigenvalues, largest first
/tokens/{recipe}/turning_angle/{layer:03d}  (N, 2) mean signed, mean absolute, radians
/tokens/centre_unit/entropy_clamped/{layer:03d}  (N,) nats
/tokens/norm/{layer:03d}                    (N, 3) norm of the first token; of the rest: median norm, root sum of squares
/tokens/cosine/{layer:03d}                  (N, 2) mean cosine between tokens: of all, without the first
/taps/{tap}/readout/..., /taps/{tap}/tokens/...  the same at each tap inside the blocks, for layers 1..L

Schema 2 added the third column of ``tokens/norm``, ``tokens/cosine`` and taps; 3 transforms of tokens, under which ``view``
counts the conditions of ``token_transform``.
"""

import copy
import dataclasses
import json
import os
import re
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from layerwise.errors import FileError
from layerwise.store_layout import CLAMPED_RECIPE, RESIDUAL, arrays, gathered, layers_of, place, written
from layerwise.store_writer import SCHEMA_VERSION, Header, Writer

__all__ = ["CLAMPED_RECIPE", "RESIDUAL", "SCHEMA_VERSION", "Activations", "Header", "Writer", "place"]

Float = NDArray[np.float64]


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
        self._ids, self._source_ids = self._column("id", "S"), self._column("source_id", "S")
        self.view: NDArray[np.int64] = self._column("view", "i")
        self.n_tokens: NDArray[np.int64] = self._column("n_tokens", "i")
        kept = np.minimum(self.n_tokens, self.width)
        self._starts: NDArray[np.int64] = np.cumsum(kept) - kept  # of each row's eigenvalues
        self._views = self._view_rows()
        self._selected: NDArray[np.int64] | None = None

    def _verify(self) -> None:
        n = len(self._ids)
        if not len(self._source_ids) == len(self.view) == len(self.n_tokens) == n:
            raise ValueError("its row columns differ in length")
        if self.header.token_transform and len(self._column("input_ids", "i")) != self.n_tokens.sum():
            raise ValueError("its input_ids and n_tokens differ")
        if self.conditions and len(self.conditions) != self.n_views:
            raise ValueError(f"{self.n_views} copies of each sample for {len(self.conditions)} conditions")
        if len(self.header.layer_names) != self.n_layers + 1:
            raise ValueError(f"{len(self.header.layer_names)} layer names for {self.n_layers + 1} layers")
        numbers = [int(number) for name in self.header.layer_names[1:] for number in re.findall(r"\d+", name)[-1:]]
        if numbers != sorted(numbers):
            raise ValueError("its layer names are out of order")
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
        _, first, sample, counts = np.unique(self._source_ids, return_index=True, return_inverse=True, return_counts=True)
        order = np.lexsort((self.view, first[sample]))
        if len(first) != self.header.n_samples:
            raise ValueError(f"{len(first)} distinct samples, {self.header.n_samples} in its header")
        if len(np.unique(counts)) != 1:
            raise ValueError("its samples differ in their number of views")
        return order.reshape(len(first), -1)

    @property
    def ids(self) -> list[str]:
        """Ids of the rows, in the order of samples.parquet."""
        return self._decoded(self._ids)

    @property
    def source_ids(self) -> list[str]:
        """The sample that each row is a view of."""
        return self._decoded(self._source_ids)

    def _decoded(self, column: NDArray[np.bytes_]) -> list[str]:
        return [value.decode() for value in (column if self._selected is None else column[self._selected])]

    @property
    def readouts(self) -> list[str]:
        """Names of the stored readouts."""
        return [readout["name"] for readout in self.header.readouts]

    @property
    def recipes(self) -> list[str]:
        """Names of the stored recipes."""
        return self.header.recipes

    @property
    def n_samples(self) -> int:
        """N; every one has ``n_views`` rows."""
        return len(self._views)

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

    @property
    def conditions(self) -> list[dict[str, float]]:
        """Level and draw of every copy of a sample under a transform of tokens; empty without one."""
        return self.header.token_transform.get("conditions", [])

    def under(self, condition: int) -> Self:
        """Return a reader of the same open file that sees the rows of one condition only, one a sample.

        Raises:
            FileError: there is no such condition.
        """
        if not 0 <= condition < len(self.conditions):
            raise FileError(f"{self.path} has {len(self.conditions)} conditions, none is number {condition}.")
        return self._seeing(self._views[:, [condition]])

    def among(self, samples: NDArray[np.intp]) -> Self:
        """Return a reader of the same open file that sees these samples only, in this order, with all their views.

        It reads the chunks that hold them, one at a time, so that its memory is theirs, not the file's.

        Args:
            samples: their numbers, within [0, n_samples).
        """
        return self._seeing(self._views[samples])

    def _seeing(self, rows: NDArray[np.int64]) -> Self:
        """A reader that sees these rows (samples, views) of what this one sees."""
        other = copy.copy(self)
        flat = rows.ravel()
        other._selected = flat if self._selected is None else self._selected[flat]
        other._views = np.arange(len(flat)).reshape(rows.shape)
        other.view, other.n_tokens = self.view[flat], self.n_tokens[flat]
        return other

    def input_ids(self) -> list[NDArray[np.int64]]:
        """Return the token ids of every row, in the order of ``ids``; only under a transform of tokens."""
        lengths = self.file["n_tokens"][:]
        every = np.split(self._column("input_ids", "i").astype(np.int64), np.cumsum(lengths)[:-1])
        return every if self._selected is None else [every[row] for row in self._selected]

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
        name, lengths = f"tokens/{recipe}/spectrum/{layer:03d}", np.minimum(self.n_tokens, self.width)
        if self._selected is None:
            flat = self._read(name)
        else:
            ends = np.cumsum(lengths)
            shifts = self._starts[self._selected] - (ends - lengths)
            flat = self._gathered(name, np.arange(ends[-1]) + np.repeat(shifts, lengths))
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
        return self._gathered(name, self._selected)

    def _gathered(self, name: str, places: NDArray[np.int64] | None) -> Float:
        """Rows ``places`` of an array, all where it is None."""
        name = place(self.tap) + name
        try:
            dataset = self.file[name]
            return np.asarray(dataset[:], dtype=np.float64) if places is None else gathered(dataset, places)
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
