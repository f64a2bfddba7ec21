"""Encoding for all layers: one pass that reads every layer, against one pass of a truncated model for each layer.

The released code of the study evaluates layer l by running the model cut to l blocks. Both ways take turns on each batch.
"""

import time

import torch
from layerwise.activations.batching import TokenBudget, batches
from layerwise.activations.extract import _read_batch
from layerwise.activations.passes import Part
from layerwise.activations.window import Window
from layerwise.models.text import load
from torch import nn

from benchmarks.extraction import MODEL, mixed_texts, request


def main(n: int = 32) -> None:
    """Print seconds of both ways and their ratio; at least 10 is wanted."""
    torch.set_num_threads(1)
    model = load(MODEL, "smollm2-135m", "float32", 256, "cpu")
    inputs = model.prepare(mixed_texts(n))
    window, asked = Window(range(n), inputs.lengths), request([])
    blocks = model.module.layers
    seconds = {"one pass": 0.0, "a pass per layer": 0.0}
    for rows in batches(range(n), inputs.lengths, TokenBudget(1024)):
        batch = inputs.batch(rows)
        start = time.process_time()
        _read_batch(model, batch, [Part(rows, batch.masks)], window, asked)
        seconds["one pass"] += time.process_time() - start
        for depth in range(len(blocks) + 1):
            model.module.layers = nn.ModuleList(blocks[:depth])
            start = time.process_time()
            model._forward(batch)
            seconds["a pass per layer"] += time.process_time() - start
        model.module.layers = blocks
    for way, value in seconds.items():
        print(f"{way:20s} {value:8.1f} s")
    print(f"ratio {seconds['a pass per layer'] / seconds['one pass']:.1f} (at least 10 wanted)")


if __name__ == "__main__":
    main()
