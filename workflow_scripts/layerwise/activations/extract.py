"""One forward pass over a dataset: every layer read as its block finishes, reduced at once, written window by window."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from layerwise.activations import readout, token_statistics
from layerwise.activations.batching import TokenBudget, batches, windows
from layerwise.activations.window import Window
from layerwise.atomic import atomic_path
from layerwise.errors import ModelError
from layerwise.models.layered import Batch, Inputs, LayeredModel, OnLayer
from layerwise.store import CLAMPED_RECIPE, RESIDUAL, Header, Writer, place


@dataclasses.dataclass(frozen=True)
class Request:
    """What to collect and where it comes from; the parts of the file's header that extraction does not measure."""

    model: str
    model_revision: str
    dtype: str
    dataset: str
    dataset_digest: str
    readouts: list[dict[str, str]]
    recipes: list[str]
    provenance: dict[str, Any]
    taps: list[str] = dataclasses.field(default_factory=lambda: [RESIDUAL])
    batch_tokens: int = 4096
    storage: str = "float32"
    compression: str | None = None


def extract(
    path: Path,
    model: LayeredModel,
    samples: pd.DataFrame,
    folder: Path,
    request: Request,
    progress: Callable[[int, int], None],
) -> None:
    """Run ``model`` over ``samples`` and write the activation file at ``path``, whole or not at all.

    Args:
        path: final name of the file.
        model: a loaded model.
        samples: rows of samples.parquet.
        folder: where samples.parquet lies, to which image paths are relative.
        request: see ``Request``; empty ``recipes`` collects no token statistics, ``taps`` holds ``residual``.
        progress: called with (rows done, rows).
    """
    inputs = model.prepare(samples, folder)
    lengths = inputs.lengths
    header = _header(model, samples, request, int((lengths == 1).sum()))
    columns = samples["id"].tolist(), samples["source_id"].tolist(), samples["view"].to_numpy("int64"), lengths
    with (
        atomic_path(path) as temporary,
        Writer(temporary, header, *columns, request.storage, request.compression) as writer,
    ):
        done = 0
        budget = TokenBudget(request.batch_tokens)
        for rows in windows(len(samples), _row_bytes(header, int(lengths.max()))):
            window = Window(rows, np.minimum(lengths, header.width))
            for batch_rows in batches(rows, lengths, budget):
                _read_rows(model, inputs, batch_rows, window, request, budget)
                done += len(batch_rows)
                progress(done, len(samples))
            writer.write(window.start, window.arrays)


def _header(model: LayeredModel, samples: pd.DataFrame, request: Request, one_token: int) -> Header:
    empty = int(samples["text"].str.strip().eq("").sum()) if "text" in samples else 0
    shared = {field.name for field in dataclasses.fields(Header)} & {field.name for field in dataclasses.fields(Request)}
    counts = {"one_token_samples": one_token, "empty_texts": empty}
    return Header(
        **{name: getattr(request, name) for name in shared - {"provenance"}},
        provenance={**request.provenance, **counts, "input": model.facts},
        n_samples=int(samples["source_id"].nunique()),
        n_layers=model.n_layers,
        width=model.width,
        layer_names=model.layer_names,
        final_norm=model.final_norm is not None,
    )


def _row_bytes(header: Header, longest: int) -> int:
    floats = len(header.readouts) * header.width + len(header.recipes) * (min(longest, header.width) + 2)
    return 4 * (header.n_layers + 1) * len(header.taps) * floats


def _read_rows(
    model: LayeredModel, inputs: Inputs, rows: list[int], window: Window, request: Request, budget: TokenBudget
) -> None:
    """Run a batch; where memory does not suffice, lower the budget and run its rows in smaller ones."""
    padded = len(rows) * int(inputs.lengths[rows].max())
    try:
        _read_batch(model, inputs.batch(rows), rows, window, request)
        return
    except (RuntimeError, MemoryError) as error:
        if not _out_of_memory(error):
            raise
        if len(rows) == 1:
            raise ModelError(
                f"one sample of {padded} tokens does not fit into the memory of {model.device}; write a smaller "
                f"'max_tokens' or 'image_size', 'dtype: bfloat16', or another 'device' for model {request.model!r}."
            ) from error
    # Here the exception, and with it every tensor of the failed pass, is gone.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    budget.lower(padded)
    print(f"out of memory at {padded} tokens a batch: going on with at most {budget.tokens}", flush=True)
    for part in batches(rows, inputs.lengths, budget):
        _read_rows(model, inputs, part, window, request, budget)


def _out_of_memory(error: BaseException) -> bool:
    """Whether PyTorch says so: CUDA has a class of its own, the CPU's allocator and mps only words."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(word in str(error) for word in words)


def _read_batch(model: LayeredModel, batch: Batch, rows: list[int], window: Window, request: Request) -> None:
    """Run one batch and put the results of each layer into ``window`` as soon as it is reached."""
    # mps has no float64, which sums and spectra need; a model spread over GPUs gives its layers on several of them.
    device = torch.device("cpu") if model.device.type == "mps" else model.device
    masks = {name: mask.to(device) for name, mask in batch.masks.items()}
    weights = {entry["name"]: readout.token_weights(entry["tokens"], entry["pool"], masks) for entry in request.readouts}

    def reader(tap: str) -> OnLayer:
        def on_layer(layer: int, states: Tensor) -> None:
            normed: dict[str, Tensor] = {}
            for entry in request.readouts:
                norm = entry["norm"]
                if norm not in normed:
                    normed[norm] = readout.normed(states, norm, model.final_norm).to(device)
                pooled = readout.pool(normed[norm], weights[entry["name"]])
                window.put(f"{place(tap)}readout/{entry['name']}/{layer:03d}", rows, pooled.cpu().numpy())
            if request.recipes:
                tokens = states.to(device)
                for name, values in token_statistics.statistics(tokens, masks, request.recipes, CLAMPED_RECIPE).items():
                    window.put(f"{place(tap)}{name}/{layer:03d}", rows, values.cpu().numpy())

        return on_layer

    model.run(batch, reader(RESIDUAL), {tap: reader(tap) for tap in request.taps if tap != RESIDUAL})
