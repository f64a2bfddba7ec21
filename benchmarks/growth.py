"""How time and memory of extraction and of every pooled metric grow with N, D, layers and tokens.

    make bench

Every point runs in a process of its own, one thread: seconds of CPU, and the peak of its memory above what its imports take.
Extraction stands beside the bare forward pass of the same batches, metrics beside LAPACK's eigenvalues of an N x N and of a
D x D matrix. Exponents are slopes of log time on log size over the larger half of a sweep. Written: docs/growth.md and
docs/figures/growth.png. ``--full`` goes to N = 8000 and D = 4096 (half an hour).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from layerwise.figures import style

POOLED = ("dataset_entropy", "effective_rank", "top_eigenvalue_share", "anisotropy", "intrinsic_dimension")
VIEWS = {"infonce": 2, "dime": 2, "lidar": 16}
FLOORS = ("eigvalsh_n", "eigvalsh_d")
SIZES = {"n": (250, 500, 1000, 2000), "d": (128, 256, 512, 1024, 2048)}
MORE = {"n": (4000, 8000), "d": (4096,)}
FIXED = {"n": 500, "d": 384}
EXTRACTION = {"n": 64, "d": 256, "layers": 4, "tokens": 64}
SWEEPS = {"n": (32, 64, 128, 256), "d": (128, 256, 512, 1024), "layers": (2, 4, 8, 16), "tokens": (32, 64, 128, 256)}
WORDS = {"n": "samples N", "d": "width D", "layers": "layers L", "tokens": "tokens T"}
COLOURS = dict(zip((*POOLED, *VIEWS, "extraction"), (*style.REST, "#0072B2"), strict=True))
PAGE, PLOT = Path("docs/growth.md"), Path("docs/figures/growth.png")


def peak_mib() -> float:
    """Peak memory of this process in MiB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text("utf-8"))
    return int(found[1]) / 1024 if found else float("nan")


def measured(work: Callable[[], object]) -> dict[str, float]:
    """CPU seconds of ``work`` (the least of up to three calls within ten seconds) and the memory it adds."""
    before, spent = peak_mib(), []
    while len(spent) < 3 and sum(spent) < 10:
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return {"seconds": min(spent), "mib": peak_mib() - before}


def metric_point(name: str, n: int, d: int) -> dict[str, float]:
    """One metric of one layer, at its defaults."""
    rng = np.random.default_rng(0)
    if name in FLOORS:
        size = n if name == "eigvalsh_n" else d
        rows = rng.standard_normal((size, size))
        return measured(lambda: np.linalg.eigvalsh(rows @ rows.T))
    from layerwise.metrics.cases import plan
    from layerwise.metrics.entries import preparation
    from layerwise.metrics.registry import load_metric

    module: Any = load_metric(name)
    case = plan(module.SPEC, {}).cases[0]
    rows = rng.standard_normal((n, 1, d)) + 0.5 * rng.standard_normal((n, VIEWS.get(name, 1), d))
    return measured(lambda: module.evaluate(module.summarise(preparation(module)(rows)), case, 0))


def extraction_point(n: int, d: int, layers: int, tokens: int) -> dict[str, float]:
    """Extraction by a random Llama, and the bare forward pass of the same batches before it."""
    import pandas as pd
    import torch
    from layerwise.activations.batching import TokenBudget, batches
    from layerwise.activations.extract import Request, extract
    from layerwise.models.text import TextModel
    from layerwise.samples import new_samples
    from transformers import LlamaConfig, LlamaModel

    from tests import builders

    torch.set_num_threads(1)
    config = LlamaConfig(
        hidden_size=d, num_hidden_layers=layers, num_attention_heads=d // 64, intermediate_size=4 * d, vocab_size=64
    )
    config._attn_implementation = "sdpa"
    model = TextModel(LlamaModel(config).eval(), builders.tokenizer(), tokens)
    frame = new_samples(pd.DataFrame({"id": map(str, range(n)), "text": builders.texts([tokens] * n)}))
    readouts = [{"name": "mean", "norm": "none", "tokens": "all", "pool": "mean"}]
    recipes = ["raw", "centre_unit", "centre_unit_skip_first"]
    request = Request("m", "", "float32", "d", "", readouts, recipes, {}, batch_tokens=1024)
    inputs = model.prepare(frame)
    plan = list(batches(range(n), inputs.lengths, TokenBudget(1024)))
    bare = measured(lambda: [model._forward(inputs.batch(rows)) for rows in plan])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "activations.h5"
        whole = measured(lambda: extract(path, model, frame, Path(), request, lambda _done, _total: None))
    return {"seconds": whole["seconds"], "mib": bare["mib"] + whole["mib"], "bare": bare["seconds"], "bare_mib": bare["mib"]}


def run_point(kind: str, sizes: dict[str, int]) -> dict[str, float]:
    """Measure one point in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.growth", "--point", kind, json.dumps(sizes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of log value on log size over the larger half, at least three points."""
    half = max(3, len(sizes) // 2)
    return float(np.polyfit(np.log(sizes[-half:]), np.log(np.maximum(values[-half:], 1e-6)), 1)[0])


def sweeps(full: bool) -> list[dict[str, Any]]:
    """Measure every sweep; a row is one quantity of one sweep."""
    jobs = [(name, axis) for name in (*POOLED, *VIEWS, *FLOORS) for axis in ("n", "d")]
    jobs = [job for job in jobs if job not in (("eigvalsh_n", "d"), ("eigvalsh_d", "n"))]
    rows = []
    for number, (name, axis) in enumerate(jobs, 1):
        sizes = list(SIZES[axis] + (MORE[axis] if full else ()))
        found = [run_point(name, {**FIXED, axis: size}) for size in sizes]
        rows.append({"what": name, "axis": axis, "sizes": sizes, "found": found})
        print(f"{number} of {len(jobs) + len(SWEEPS)}: {name} against {axis}", flush=True)
    for number, (axis, sizes_of) in enumerate(SWEEPS.items(), len(jobs) + 1):
        found = [run_point("extraction", {**EXTRACTION, axis: size}) for size in sizes_of]
        bare = [{"seconds": point["bare"], "mib": point["bare_mib"]} for point in found]
        rows.append({"what": "extraction", "axis": axis, "sizes": list(sizes_of), "found": found})
        rows.append({"what": "bare forward", "axis": axis, "sizes": list(sizes_of), "found": bare})
        print(f"{number} of {len(jobs) + len(SWEEPS)}: extraction against {axis}", flush=True)
    return rows


def page(rows: list[dict[str, Any]]) -> str:
    """The table as Markdown."""
    fixed = ", ".join(f"{word.split()[-1]} = {EXTRACTION[axis]}" for axis, word in WORDS.items())
    lines = [
        "# How cost grows",
        "",
        "Written by `make bench` (`benchmarks/growth.py`), on one thread of two shared cores. A metric is of one layer, at",
        "its defaults, without null and standard error. What does not vary: for metrics",
        f"N = {FIXED['n']}, D = {FIXED['d']} and 2 views (LiDAR 16); for extraction {fixed},",
        "by a random Llama, with three recipes and one readout. MiB: peak above what the process had before.",
        "Metrics of pooled vectors take the smaller of N x N and D x D, so they grow with N up to D only; DiME needs N x N,",
        "LiDAR D x D.",
        "In a study memory has a limit: beyond 256 MiB a layer's vectors are read block by block, and DiME, InfoNCE, LiDAR",
        "and TwoNN take a seeded subsample of 4,000 samples unless `max_samples` says otherwise.",
        "Exponent: slope of log seconds on log size over the larger sizes; small sizes pay fixed costs, so that it can lie",
        "below the asymptote (3 for eigenvalues).",
        "",
        "| what | against | from, to | seconds | MiB | exponent |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        seconds, mib = ([point[key] for point in row["found"]] for key in ("seconds", "mib"))
        sizes = row["sizes"]
        lines.append(
            f"| {row['what']} | {WORDS[row['axis']]} | {sizes[0]}, {sizes[-1]} | {seconds[0]:.3g}, {seconds[-1]:.3g} "
            f"| {mib[0]:.0f}, {mib[-1]:.0f} | {exponent(sizes, seconds):.1f} |"
        )
    return "\n".join([*lines, "", "![seconds against size](figures/growth.png)", ""])


def plot(rows: list[dict[str, Any]]) -> None:
    """Seconds against size, a panel per axis, direct labels."""
    import matplotlib as mpl

    mpl.use("Agg")
    from layerwise.figures.labels import end_labels

    panels = [(rows_of, axis) for rows_of in ("metric", "extraction") for axis in WORDS if _of(rows, rows_of, axis)]
    room = style.Room(left=0.62, right=1.3, between=(1.85, 0.6), above=0.3)
    made = style.sheet(
        "How cost grows", ["Seconds of one thread. Both axes logarithmic."], -(-len(panels) // 2), 2, 2.0, room
    )
    flat = style.flow(made, [len(panels)])[0]
    for axes, (kind, axis) in zip(flat, panels, strict=True):
        own = _of(rows, kind, axis)
        every = [point["seconds"] for row in own for point in row["found"]]
        style.value_axis(axes, every, "seconds", "log")
        style.panel_title(axes, f"{'metric of one layer' if kind == 'metric' else 'extraction'} against {WORDS[axis]}")
        sizes = own[0]["sizes"]
        places = np.log(sizes) - np.log(sizes[0])
        places /= places[-1]  # up to 1, where the end labels begin
        ends = []
        for row in own:
            floor = row["what"] in (*FLOORS, "bare forward")
            colour = style.GREY if floor else COLOURS[row["what"]]
            seconds = [point["seconds"] for point in row["found"]]
            axes.plot(places, seconds, color=colour, linestyle="--" if floor else "-", marker="o", markersize=2)
            ends.append((row["what"].replace("_", " "), colour, seconds[-1]))
        axes.set_xlim(-0.05, 1.05)
        axes.set_xticks(places, [str(size) for size in sizes])
        end_labels(axes, ends, 1.3)
    PLOT.parent.mkdir(exist_ok=True)
    made.figure.savefig(PLOT, dpi=110)


def _of(rows: list[dict[str, Any]], kind: str, axis: str) -> list[dict[str, Any]]:
    extraction = ("extraction", "bare forward")
    return [row for row in rows if row["axis"] == axis and (row["what"] in extraction) == (kind == "extraction")]


def main() -> None:
    """Measure one point, or all of them and write the page and the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--point", nargs=2, metavar=("KIND", "SIZES"))
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    if options.point:
        kind, sizes = options.point[0], json.loads(options.point[1])
        print(json.dumps(extraction_point(**sizes) if kind == "extraction" else metric_point(kind, **sizes)))
        return
    rows = sweeps(options.full)
    print(json.dumps(rows))
    plot(rows)
    PAGE.write_text(page(rows), "utf-8")


if __name__ == "__main__":
    main()
