"""Extraction in parts: which rows a part holds, and the one activation file that all parts become."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerwise.atomic import atomic_path
from layerwise.errors import DataError, FileError
from layerwise.progress import Progress
from layerwise.store import Activations, Header, Writer
from layerwise.store_layout import arrays

_BLOCK_BYTES = 32 * 2**20
_COUNTS = ("one_token_samples", "empty_texts")


def rows_of_shard(samples: pd.DataFrame, number: int, shards: int, where: str) -> pd.DataFrame:
    """Return the rows of one shard: contiguous, all copies of a sample together, shares as even as that allows.

    Args:
        samples: rows of samples.parquet.
        number: of the shard, from 1.
        shards: how many there are.
        where: name of the dataset, for messages.

    Raises:
        DataError: there are fewer samples than shards.
    """
    codes = pd.factorize(samples["source_id"])[0]
    last = pd.Series(np.arange(len(codes))).groupby(codes).transform("max").to_numpy()
    ends = np.flatnonzero(np.maximum.accumulate(last) == np.arange(len(codes))) + 1  # no sample goes on behind these
    if shards > len(ends):
        raise DataError(
            f"dataset {where!r} cannot be cut into {shards} shards, it has {len(ends)} samples; write "
            f"'shards: {len(ends)}' or fewer."
        )
    borders = [0, *(int(part[-1]) for part in np.array_split(ends, shards))]
    return samples.iloc[borders[number - 1] : borders[number]].reset_index(drop=True)


def join(
    path: Path,
    parts: list[Path],
    ids: list[str],
    expected: dict[str, Any],
    compression: str | None,
    progress: Progress,
) -> None:
    """Write one activation file of all shards, as one extraction would have; memory does not grow with their number.

    Args:
        path: final name of the file.
        parts: files of shard 1, 2, ... in this order.
        ids: (N,) ids of samples.parquet.
        expected: ``model``, ``model_revision``, ``dataset`` and ``dataset_digest`` that every shard must be of.
        compression: None, "gzip" or "lzf".
        progress: called with (rows done, rows).

    Raises:
        FileError: a shard is absent, damaged, of another model, dataset or place, or asked for other things than the first;
            or together they do not hold the rows of samples.parquet.
    """
    header, storage, rows = _checked(parts, expected)
    if rows.ids != ids:
        raise FileError(
            f"the shards in {parts[0].parent} do not hold the rows of dataset {expected['dataset']!r}; delete that "
            "folder and run again."
        )
    columns = rows.ids, rows.source_ids, np.concatenate(rows.view), np.concatenate(rows.n_tokens)
    tokens = rows.input_ids if header.token_transform else None
    with atomic_path(path) as temporary, Writer(temporary, header, *columns, storage, compression, tokens) as writer:
        start = 0
        for part in parts:
            with Activations(part) as store:
                _copy(store, writer, start)
                start += len(store.ids)
            progress(start, len(ids))


@dataclasses.dataclass
class _Rows:
    """The columns of one row per sample, of all shards so far."""

    ids: list[str] = dataclasses.field(default_factory=list)
    source_ids: list[str] = dataclasses.field(default_factory=list)
    view: list[NDArray[np.int64]] = dataclasses.field(default_factory=list)
    n_tokens: list[NDArray[np.int64]] = dataclasses.field(default_factory=list)
    input_ids: list[list[int]] = dataclasses.field(default_factory=list)

    def add(self, store: Activations) -> None:
        self.ids += store.ids
        self.source_ids += store.source_ids
        self.view.append(store.view)
        self.n_tokens.append(store.n_tokens)
        self.input_ids += [ids.tolist() for ids in store.input_ids()] if store.header.token_transform else []


def _checked(parts: list[Path], expected: dict[str, Any]) -> tuple[Header, str, _Rows]:
    """The header that the shards share, how they store vectors, and the columns of all."""
    rows, storages = _Rows(), set[str]()
    headers: list[dict[str, Any]] = []
    for number, part in enumerate(parts, 1):
        with Activations(part) as store:
            header = dataclasses.asdict(store.header)
            place = header["provenance"].pop("shard", None)
            wanted = expected | {"shard": [number, len(parts)]} | (_shared(headers[0]) if headers else {})
            for key, value in (_shared(header) | {"shard": place}).items():
                if key in wanted and value != wanted[key]:
                    raise FileError(
                        f"{part} is of {key} {_short(value)}, {_short(wanted[key])} is expected; delete it and run again."
                    )
            headers.append(header)
            rows.add(store)
            storages |= {str(store.file[f"readout/{name}/000"].dtype) for name in store.readouts[:1]}
    if len(storages) > 1:
        raise FileError(f"the shards in {parts[0].parent} differ in 'storage'; delete that folder and run again.")
    counts = {key: sum(header["provenance"][key] for header in headers) for key in _COUNTS}
    whole = headers[0] | {"n_samples": sum(header["n_samples"] for header in headers)}
    whole["provenance"] = headers[0]["provenance"] | counts | {"shards": len(parts)}
    return Header(**whole), next(iter(storages), "float32"), rows


def _shared(header: dict[str, Any]) -> dict[str, Any]:
    """What the headers of all shards have in common."""
    provenance = {key: value for key, value in header["provenance"].items() if key not in _COUNTS}
    return {key: value for key, value in header.items() if key != "n_samples"} | {"provenance": provenance}


def _short(value: Any) -> str:  # noqa: ANN401
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _copy(store: Activations, writer: Writer, start: int) -> None:
    """Copy every array of a shard, a block of rows at a time, to the rows from ``start`` on."""
    kept = np.minimum(store.n_tokens, store.width)
    offsets = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    for name, shape in arrays(store.header, len(kept), int(offsets[-1])):
        row_bytes = 4 * (int(kept.max()) if "/spectrum/" in name else int(np.prod(shape[1:])))
        for begin in range(0, len(kept), max(1, _BLOCK_BYTES // row_bytes)):
            end = min(begin + max(1, _BLOCK_BYTES // row_bytes), len(kept))
            rows = slice(int(offsets[begin]), int(offsets[end])) if "/spectrum/" in name else slice(begin, end)
            writer.write(start + begin, {name: _block(store, name, rows)})


def _block(store: Activations, name: str, rows: slice) -> NDArray[Any]:
    try:
        return np.asarray(store.file[name][rows])
    except OSError as error:
        raise FileError(f"{store.path}: cannot read {name} ({error}); delete the file and run again.") from error
