"""Texts that a model wrote, as a dataset: a row per sample of the dataset it continued."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from layerwise.data.prepare import write_dataset
from layerwise.data.views import first_views
from layerwise.errors import DataError
from layerwise.records import read_record
from layerwise.samples import balanced_sample, new_samples, read_samples


class Trace(Protocol):
    """What a model wrote for one sample."""

    @property
    def text(self) -> str:
        """The prompt and its continuation."""

    @property
    def n_tokens(self) -> int:
        """Tokens of both."""

    @property
    def finished(self) -> bool:
        """Whether the model ended by itself."""


def sources(parent: Path, sample: dict[str, Any] | None) -> pd.DataFrame:
    """Return the samples to continue: first views of the dataset in folder ``parent``, or a ``sample`` of them."""
    frame = first_views(read_samples(parent / "samples.parquet"))
    return frame if sample is None else balanced_sample(frame, sample["n"], sample["seed"], sample["balance"])


def write_traces(
    folder: Path, name: str, parent: Path, frame: pd.DataFrame, traces: Sequence[Trace], facts: dict[str, Any]
) -> None:
    """Write the dataset ``name``: ids, labels and split of ``frame``, the text of its traces.

    Args:
        folder: results/data/{name}.
        name: of the dataset.
        parent: folder of the dataset that was continued.
        frame: from ``sources``.
        traces: one per row of ``frame``.
        facts: ``options`` of the config, ``writer`` (model and digest).

    Raises:
        DataError: no trace has as many tokens as ``minimum_tokens`` asks for.
    """
    least = facts["options"]["minimum_tokens"]
    kept = [trace.n_tokens >= least and bool(trace.text.strip()) for trace in traces]
    if not any(kept):
        longest = max((trace.n_tokens for trace in traces), default=0)
        raise DataError(
            f"dataset {name!r}: none of {len(traces)} traces has {least} tokens, the longest has {longest}; write a smaller "
            "'minimum_tokens' or a larger 'max_new_tokens'."
        )
    made = frame.drop(columns=["text", "source_id", "view"]).assign(
        text=[trace.text for trace in traces],
        n_tokens=[trace.n_tokens for trace in traces],
        finished=[trace.finished for trace in traces],
    )
    origin = read_record(parent / "manifest.json", "origin", "licence", "name")
    record = {
        "origin": f"{origin['origin']}, continued by {facts['writer']['model']}",
        "licence": origin["licence"],
        "source": {"traces": facts["options"], "writer": facts["writer"]},
        "sample": facts["sample"],
        "left_out": len(kept) - sum(kept),
    }
    write_dataset(folder, name, new_samples(made[kept]), record)
