"""One forward pass over a dataset: every layer read as its block finishes, reduced at once, written window by window."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from layerwise.activations.batching import TokenBudget, batches, windows
from layerwise.activations.passes import Part, Passes, prefix_carriers
from layerwise.activations.reduction import Reduction
from layerwise.activations.token_transforms import transformed
from layerwise.activations.window import Window
from layerwise.atomic import atomic_path
from layerwise.errors import ModelError
from layerwise.models.layered import Batch, Inputs, LayeredModel, OnLayer, TokenInputs, TokenModel
from layerwise.store import RESIDUAL, Header, Writer, place


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
    token_transform: dict[str, Any] = dataclasses.field(default_factory=dict)


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
    inputs, passes, ids = _prepared(model, samples, folder, request)
    lengths = inputs.lengths
    header = _header(model, samples, request, int((lengths == 1).sum()))
    columns = samples["id"].tolist(), samples["source_id"].tolist(), samples["view"].to_numpy("int64"), lengths
    with (
        atomic_path(path) as temporary,
        Writer(temporary, header, *columns, request.storage, request.compression, ids) as writer,
    ):
        done = 0
        budget = TokenBudget(request.batch_tokens)
        together = max(1, len(request.token_transform.get("conditions", [])))
        for rows in windows(len(samples), _row_bytes(header, int(lengths.max())), together=together):
            window = Window(rows, np.minimum(lengths, header.width))
            for batch_rows in batches(passes.needed(rows), lengths, budget):
                _read_rows(model, inputs, batch_rows, passes, window, request, budget)
                done += passes.carried(batch_rows)
                progress(done, len(samples))
            writer.write(window.start, window.arrays)


def _prepared(
    model: LayeredModel, samples: pd.DataFrame, folder: Path, request: Request
) -> tuple[Inputs, Passes, list[list[int]] | None]:
    """Turn samples into input; under a transform of tokens also say which rows share a pass, and give the ids to store."""
    inputs = model.prepare(samples, folder)
    transform = request.token_transform
    if not transform:
        return inputs, Passes(inputs.lengths), None
    if not isinstance(inputs, TokenInputs) or not isinstance(model, TokenModel):
        raise ModelError(f"transform {transform['transform']!r} changes tokens, model {request.model!r} reads none.")
    facts = transform | {"dataset": request.dataset}
    made = transformed(inputs.ids, inputs.special, samples, facts, model.ordinary_tokens, model.max_tokens)
    inputs = inputs.with_tokens([ids for ids, _ in made], [special for _, special in made])
    shared = transform["transform"] == "prefixes" and model.causal
    carrier = prefix_carriers(inputs.ids, samples["source_id"].tolist()) if shared else None
    return inputs, Passes(inputs.lengths, carrier), inputs.ids


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
    model: LayeredModel,
    inputs: Inputs,
    rows: list[int],
    passes: Passes,
    window: Window,
    request: Request,
    budget: TokenBudget,
) -> None:
    """Run a batch; where memory does not suffice, lower the budget and run its rows in smaller ones."""
    padded = len(rows) * int(inputs.lengths[rows].max())
    try:
        batch = inputs.batch(rows)
        _read_batch(model, batch, passes.parts(rows, batch.masks), window, request)
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
        _read_rows(model, inputs, part, passes, window, request, budget)


def _out_of_memory(error: BaseException) -> bool:
    """Whether PyTorch says so: CUDA has a class of its own, the CPU's allocator and mps only words."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(word in str(error) for word in words)


def _read_batch(model: LayeredModel, batch: Batch, parts: list[Part], window: Window, request: Request) -> None:
    """Run one batch and put the results of each layer into ``window`` as soon as it is reached."""
    # mps has no float64, which sums and spectra need; a model spread over GPUs gives its layers on several of them.
    device = torch.device("cpu") if model.device.type == "mps" else model.device
    reductions = [Reduction(part, request.readouts, request.recipes, device) for part in parts]

    def reader(tap: str) -> OnLayer:
        def on_layer(layer: int, states: Tensor) -> None:
            for reduction in reductions:
                for name, values in reduction.of(states, model.final_norm):
                    window.put(f"{place(tap)}{name}/{layer:03d}", reduction.part.rows, values.cpu().numpy())

        return on_layer

    model.run(batch, reader(RESIDUAL), {tap: reader(tap) for tap in request.taps if tap != RESIDUAL})
