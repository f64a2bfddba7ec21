"""What reading every layer costs over the bare forward pass of the same batches: time and memory, paired in one run.

    make bench

SmolLM2-135M (converted by the default study), 256 texts of mixed length, one thread. The three ways take turns on each
batch, in an order that rotates, so that a busy machine slows all of them alike; the ratio of the sums is what counts.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from layerwise.activations.batching import TokenBudget, batches
from layerwise.activations.extract import Request, _read_batch
from layerwise.activations.passes import Part
from layerwise.activations.window import Window
from layerwise.models.layered import Batch
from layerwise.models.text import TextModel, load

from benchmarks.live_memory import LiveMemory

MODEL = Path("results/models/smollm2-135m/weights")
TEXTS = Path("results/data/bible/samples.parquet")
READOUTS = [
    {"name": "mean", "norm": "none", "tokens": "all", "pool": "mean"},
    {"name": "mean_normed", "norm": "final", "tokens": "all", "pool": "mean"},
    {"name": "mean_skip_first", "norm": "none", "tokens": "skip_first", "pool": "mean"},
]
RECIPES = ["raw", "centre_unit", "centre_unit_skip_first"]
BOUNDS = {"readouts": 1.6, "readouts_recipes": 2.5, "memory_layers": 3.0}


def mixed_texts(n: int) -> pd.DataFrame:
    """Texts of 1 to 10 verses, so that lengths are mixed as in real corpora (about 30 to 256 tokens)."""
    verses = pd.read_parquet(TEXTS)["text"].tolist()
    rng = np.random.default_rng(0)
    starts, counts = rng.integers(0, len(verses) - 10, n), rng.integers(1, 11, n)
    return pd.DataFrame({"text": [" ".join(verses[s : s + c]) for s, c in zip(starts, counts, strict=True)]})


def request(recipes: list[str]) -> Request:
    """What to collect."""
    facts = {"model": "m", "model_revision": "", "dtype": "float32", "dataset": "d", "dataset_digest": "", "provenance": {}}
    return Request(**facts, readouts=READOUTS, recipes=recipes)


def ways(model: TextModel, lengths: np.ndarray) -> dict[str, Callable[[Batch, list[int]], None]]:
    """The bare forward pass, with readouts, and with readouts and token statistics."""
    every = range(len(lengths))

    def reading(recipes: list[str]) -> Callable[[Batch, list[int]], None]:
        window, asked = Window(every, np.minimum(lengths, model.width)), request(recipes)
        return lambda batch, rows: _read_batch(model, batch, [Part(rows, batch.masks)], window, asked)

    return {
        "bare": lambda batch, _rows: model._forward(batch),
        "readouts": reading([]),
        "readouts_recipes": reading(RECIPES),
    }


def compare(n: int, batch_tokens: int) -> dict[str, float]:
    """Return seconds of each way, ratios to the bare forward, and peak tensor memory in layers of one batch."""
    model = load(MODEL, "smollm2-135m", "float32", 256, "cpu")
    inputs = model.prepare(mixed_texts(n))
    plan = list(batches(range(n), inputs.lengths, TokenBudget(batch_tokens)))
    takes = ways(model, inputs.lengths)
    seconds = dict.fromkeys(takes, 0.0)
    for turn, rows in enumerate(plan):
        batch = inputs.batch(rows)
        names = list(takes)
        for name in names[turn % 3 :] + names[: turn % 3]:
            start = time.process_time()
            takes[name](batch, rows)
            seconds[name] += time.process_time() - start
        print(f"batch {turn + 1} of {len(plan)}", end="\r", flush=True)
    result = {"texts": float(n), "tokens": float(inputs.lengths.sum()), **{f"seconds_{k}": v for k, v in seconds.items()}}
    result |= {f"ratio_{name}": seconds[name] / seconds["bare"] for name in ("readouts", "readouts_recipes")}
    batch = inputs.batch(plan[0])
    layer = batch.masks["all"].numel() * model.width * 4
    peaks = {}
    for name, take in takes.items():
        with LiveMemory() as memory:
            take(batch, plan[0])
        peaks[name] = memory.peak
    return result | {
        f"extra_memory_layers_{k}": (peaks[k] - peaks["bare"]) / layer for k in ("readouts", "readouts_recipes")
    }


def main() -> None:
    """Print the comparison and say whether it is within the bounds; write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = compare(options.texts, options.batch_tokens)
    for name, value in found.items():
        print(f"{name:40s} {value:12.3f}")
    within = (
        found["ratio_readouts"] <= BOUNDS["readouts"]
        and found["ratio_readouts_recipes"] <= BOUNDS["readouts_recipes"]
        and max(v for k, v in found.items() if k.startswith("extra_memory")) <= BOUNDS["memory_layers"]
    )
    print("within bounds" if within else f"NOT within {BOUNDS}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
