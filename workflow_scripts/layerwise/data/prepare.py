"""Write a dataset: from a source, as a sample of another dataset, or as views of one."""

import os
from pathlib import Path
from typing import Any

import pandas as pd

from layerwise.atomic import atomic_path
from layerwise.data.conditions import make_conditions
from layerwise.data.registry import IMAGE_SOURCES, load_image_source, load_source, load_transform
from layerwise.data.source import Source
from layerwise.data.views import make_image_views, make_views
from layerwise.errors import DataError
from layerwise.records import read_record, write_record
from layerwise.samples import balanced_sample, digest, new_samples, read_samples, write_samples

NO_PAIRS = pd.DataFrame({"id_a": pd.Series(dtype=str), "id_b": pd.Series(dtype=str), "score": pd.Series(dtype=float)})


def from_source(folder: Path, name: str, kind: str, source: dict[str, Any], sample: dict[str, Any] | None) -> None:
    """Read a source, sample it, and write the dataset ``name`` to ``folder``.

    Args:
        folder: results/data/{name}.
        name: of the dataset, for messages.
        kind: word of the config, which names the file that reads it.
        source: the entry below that word.
        sample: ``n``, ``balance`` and ``seed``, or None for all of it.
    """
    image = kind in IMAGE_SOURCES
    read = load_image_source(kind).read(folder, **source) if image else load_source(kind).read(**source)
    _write(folder, name, read, sample, {"kind": kind, **source})


def from_dataset(folder: Path, name: str, parent: Path, sample: dict[str, Any] | None) -> None:
    """Write a sample of the dataset in folder ``parent``."""
    facts = read_record(parent / "manifest.json", "origin", "licence", "name")
    pairs = pd.read_parquet(parent / "pairs.parquet")
    samples = read_samples(parent / "samples.parquet")
    if "image" in samples:
        samples["image"] = [os.path.relpath(parent / image, folder) for image in samples["image"]]
    source = Source(samples, facts["licence"], facts["origin"], pairs)
    _write(folder, name, source, sample, {"dataset": facts["name"]})


def _write(folder: Path, name: str, source: Source, sample: dict[str, Any] | None, entry: dict[str, Any]) -> None:
    samples, pairs = source.samples, NO_PAIRS if source.pairs is None else source.pairs
    if sample is not None:
        try:
            samples = balanced_sample(samples, sample["n"], sample["seed"], sample["balance"])
        except DataError as error:
            raise DataError(f"dataset {name!r}: {error}") from None
        pairs = pairs[pairs["id_a"].isin(samples["id"]) & pairs["id_b"].isin(samples["id"])]
    facts = {"origin": source.origin, "licence": source.licence, "source": entry, "sample": sample}
    write_dataset(folder, name, new_samples(samples), facts, pairs)


def derived(folder: Path, name: str, parent: Path, options: dict[str, Any]) -> None:
    """Write views of the dataset in folder ``parent``, or copies of its samples for a transform of tokens.

    Args:
        folder: results/data/{name}.
        name: of the derived dataset.
        parent: folder of the dataset it comes from.
        options: ``transform``, ``sample``, ``seed`` and ``views``, ``columns``, ``size`` or ``conditions``.
    """
    facts = read_record(parent / "manifest.json", "origin", "licence", "name")
    frame = read_samples(parent / "samples.parquet")
    try:
        views = _copies(frame, (parent, folder), options)
    except DataError as error:
        raise DataError(f"dataset {name!r}: {error}") from None
    kept = {key: facts[key] for key in ("origin", "licence")}
    write_dataset(folder, name, new_samples(views), kept | {"source": {"dataset": facts["name"], **options}, "sample": None})


def _copies(frame: pd.DataFrame, folders: tuple[Path, Path], options: dict[str, Any]) -> pd.DataFrame:
    seed, sample = options["seed"], options["sample"]
    if "conditions" in options:
        return make_conditions(frame, options["conditions"], seed, sample)
    transform, count = load_transform(options["transform"]), options["views"]
    if "image" in frame:
        return make_image_views(frame, transform, folders, count, seed, options["size"], sample)
    return make_views(frame, transform, count, seed, options["columns"], sample)


def write_dataset(
    folder: Path,
    name: str,
    samples: pd.DataFrame,
    facts: dict[str, Any],
    pairs: pd.DataFrame = NO_PAIRS,
    empty_allowed: bool = False,
) -> None:
    """Write samples.parquet, pairs.parquet (empty where nothing was judged), and manifest.json last."""
    (folder / "manifest.json").unlink(missing_ok=True)  # one of the run before must not outlive its samples
    write_samples(folder / "samples.parquet", samples, name, empty_allowed)
    with atomic_path(folder / "pairs.parquet") as temporary:
        pairs.to_parquet(temporary, index=False)
    record = {
        "name": name,
        "n_samples": int(samples["source_id"].nunique()),
        "n_rows": len(samples),
        "columns": [str(column) for column in samples.columns],
        "digest": digest(samples),
        **facts,
    }
    write_record(folder / "manifest.json", record)
