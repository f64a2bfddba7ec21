"""Synthetic result tables with smooth curves, shaped like those of the default study."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

READOUTS = ("mean", "mean_normed", "mean_skip_first", "weighted_mean")
RECIPES = ("raw", "centre_unit", "centre_unit_skip_first")
LAYERS = {"smollm2-135m": 31, "minilm-l6": 7, "smollm2-135m-untrained": 31}
TASKS = {
    "sentiment": "classification",
    "genre": "classification",
    "book": "clustering",
    "next-verse": "pair_classification",
    "lee": "sts",
}
LEVELS = {"sentiment": 0.68, "genre": 0.8, "book": 0.14, "next-verse": 0.72, "lee": 0.45}
SINKS = ("sink_norm_ratio", "sink_variance_share")
TOKEN = ("prompt_entropy", "curvature", "effective_rank")
POOLED = ("dataset_entropy", "effective_rank", "infonce", "lidar", "dime")
VIEWED = ("infonce", "lidar", "dime")
PARAMETERS = {
    "prompt_entropy": '{"alpha":1.0}',
    "dataset_entropy": '{"alpha":1.0}',
    "infonce": '{"temperature":0.1}',
    "lidar": '{"delta":0.0001}',
    "dime": '{"permutations":10}',
}
SHAPES = {
    "prompt_entropy": ("nats", 4.0, 4.6),
    "curvature": ("radians", 1.95, 2.094),
    "sink_norm_ratio": ("times the median", 150.0, 1.0),
    "sink_variance_share": ("share", 1.0, 0.01),
    "effective_rank": ("directions", 30.0, 190.0),
    "dataset_entropy": ("nats", 3.4, 5.5),
    "infonce": ("nats", 1.7, 4.6),
    "lidar": ("directions", 9.0, 60.0),
    "dime": ("nats", 0.12, 0.001),
}


def build(models: dict[str, int] | None = None, tasks: dict[str, str] | None = None) -> dict[str, pd.DataFrame]:
    """Return the tables; the same arguments give the same numbers."""
    models, tasks = LAYERS if models is None else models, TASKS if tasks is None else tasks
    return {
        "metrics": pd.DataFrame(_metrics(models, tasks)),
        "scores": pd.DataFrame(_scores(models, tasks)),
        "layer_costs": pd.DataFrame(_costs(models, tasks)),
        "layer_summary": pd.DataFrame(_summary(models, tasks)),
        "correlations": pd.DataFrame(_correlations(models, tasks)),
        "layer_selection": pd.DataFrame(_selection(models, len(tasks))),
    }


def _valley(n: int, name: str, layer_zero: float = 0.75) -> np.ndarray:
    depth = np.linspace(0, 1, n)
    floor = {"raw": 0.02, "centre_unit": 0.22, "mean": 0.3}.get(name, 0.84)
    dip = np.clip(np.minimum(depth * 9, 1) * np.minimum((1.06 - depth) * 4, 1), 0, 1)
    shift = 0.02 * (sum(map(ord, name)) % 5) * np.sin(5 * depth)
    return layer_zero + (floor - layer_zero) * dip + shift


def _metrics(models: dict[str, int], tasks: dict[str, str]) -> Iterator[dict[str, object]]:
    owners = {"lee": "", "verses": "", "verses~views": ""} | {f"{task}~sample": task for task in tasks}
    for model, n in models.items():
        for dataset, owner in owners.items():
            for metric in dict.fromkeys((*TOKEN, *POOLED, *SINKS)):
                if (metric in VIEWED) != dataset.endswith("~views"):
                    continue
                for variant in ("paper",) if metric in SINKS else ("paper", "released"):
                    levels = []
                    if metric in (*TOKEN, *SINKS):
                        levels += [("recipe", name) for name in (RECIPES[:1] if metric in SINKS else RECIPES)]
                    if metric in POOLED and metric != "curvature":
                        levels += [("readout", name) for name in READOUTS]
                    if variant == "released":
                        levels = [pair for pair in levels if pair[1] in ("centre_unit", "mean")]
                    for kind, name in levels:
                        yield from _metric_curve(model, n, dataset, owner, metric, variant, kind, name)


def _metric_curve(
    model: str, n: int, dataset: str, owner: str, metric: str, variant: str, kind: str, name: str
) -> Iterator[dict[str, object]]:
    unit, scale, null = SHAPES[metric]
    values = np.full(n, 0.8 * scale) if model.endswith("-untrained") else scale * _valley(n, name)
    if metric == "curvature":
        values = 2.05 - 0.12 * (1 - _valley(n, name))
    if variant == "released":
        values = np.log(values) if metric == "lidar" else values * 1.15 if metric != "curvature" else np.pi - values
        null = np.log(null) if metric == "lidar" else np.pi - null if metric == "curvature" else null
    values = values * (1 + 0.01 * len(dataset) / 10)
    top = {"prompt_entropy": 4.7, "dataset_entropy": np.log(299)}.get(metric, 5.0)
    share = np.log(values) / top if metric == "lidar" and variant == "paper" else values / top
    for layer in range(n):
        yield {
            "model": model,
            "dataset": dataset,
            "task": owner,
            "metric": metric,
            "variant": variant,
            "readout": name if kind == "readout" else "",
            "recipe": name if kind == "recipe" else "",
            "parameters": PARAMETERS.get(metric, "{}"),
            "layer": layer,
            "tap": "residual",
            "depth": layer / (n - 1),
            "value": values[layer],
            "normalized": share[layer],
            "null_value": null,
            "null_normalized": (np.log(null) if metric == "lidar" and variant == "paper" else null) / top,
            "null_broken_pairs": {"infonce": 4.9, "dime": 0.0}.get(metric, np.nan),
            "se": 0.03 * abs(values[layer]),
            "n": 50 if dataset == "lee" else 300,
            "n_excluded": 0,
            "split_half": 0.97,
            "saturated": metric == "lidar" and model == "minilm-l6",
            "unit": unit,
            "undefined": "",
        }


def score_curve(n: int, task: str, readout: str) -> np.ndarray:
    """Return a smooth score curve whose best layer lies before the last."""
    depth = np.linspace(0, 1, n)
    level = LEVELS.get(task, 0.3 + 0.01 * (sum(map(ord, task)) % 40))
    rank = READOUTS.index(readout) if readout in READOUTS else 1
    rise = [0.3, 1.0, 0.9, 0.5][rank] * np.sin(np.pi * np.minimum(depth * 1.35, 1.25) / 1.5)
    return level + 0.12 * rise + 0.006 * np.sin(17 * depth + rank)


def _scores(models: dict[str, int], tasks: dict[str, str]) -> Iterator[dict[str, object]]:
    shared: dict[str, object] = {"tap": "residual", "n_not_converged": 0, "baseline": ""}
    for task, kind in tasks.items():
        protocols = ("mteb", "standardised") if kind == "classification" else ("mteb",)
        for protocol in protocols:
            key = {"task": task, "type": kind, "protocol": protocol, "n_items": 700}
            for model, n in models.items():
                for readout in READOUTS:
                    curve = score_curve(n, task, readout) - (0.1 if model.endswith("-untrained") else 0)
                    for layer in range(n):
                        cell = {"model": model, "readout": readout, "layer": layer, "depth": layer / (n - 1)}
                        yield shared | key | cell | {"score": curve[layer]}
            floor = LEVELS.get(task, 0.3)
            for baseline, score in {"majority": floor - 0.12, "text_length": floor - 0.1, "tfidf": floor + 0.1}.items():
                if kind == "classification" or baseline != "majority":
                    empty = {"model": "", "readout": "", "layer": np.nan, "depth": np.nan, "tap": ""}
                    yield shared | key | empty | {"baseline": baseline, "score": score}


def _costs(models: dict[str, int], tasks: dict[str, str]) -> Iterator[dict[str, object]]:
    for model, n in models.items():
        for task in tasks:
            for layer in range(n):
                share = layer / max(n - 1, 1)
                cell = {"model": model, "task": task, "layer": layer, "depth": share, "tokens": 30.0, "undefined": ""}
                yield (
                    cell
                    | {"parameters": 1e7 * (1 + layer), "parameters_share": (1 + layer) / n}
                    | {
                        "flops": 1.5e8 * layer,
                        "flops_share": share,
                    }
                )


def _summary(models: dict[str, int], tasks: dict[str, str]) -> Iterator[dict[str, object]]:
    for model, n in models.items():
        for i, readout in enumerate(READOUTS):
            for j, (task, kind) in enumerate([*tasks.items(), ("all", "")]):
                gain = 0.01 * (2 + i - j % 3) if n > 7 else 0.004 * (j - i)
                best = max(0, n - 3 - 2 * j - i) if n > 7 else min(4, n - 1)
                yield {
                    "model": model,
                    "task": task,
                    "type": kind,
                    "protocol": {"classification": "standardised", "": "primary"}.get(kind, "mteb"),
                    "readout": readout,
                    "n_tasks": len(tasks) if task == "all" else 1,
                    "n_items": 700,
                    "n_layers": n - 1,
                    "last": 0.6,
                    "best": 0.6 + gain + 0.015,
                    "best_layer": best,
                    "best_depth": best / (n - 1),
                    "oracle": 0.66,
                    "tasks_won_by_last": 1,
                    "gain": gain + 0.015,
                    "gain_cross_fitted": gain,
                    "gain_low": gain - 0.018,
                    "gain_high": gain + 0.02,
                    "best_baseline": "tfidf",
                    "baseline_score": 0.7,
                }


def _levels() -> Iterator[tuple[str, str, str]]:
    for metric in TOKEN:
        for recipe in RECIPES:
            yield metric, recipe, ""
    for metric in POOLED:
        for readout in READOUTS:
            yield metric, "", readout


def _correlations(models: dict[str, int], tasks: dict[str, str]) -> Iterator[dict[str, object]]:
    for model, n in models.items():
        for index, (metric, recipe, readout) in enumerate(_levels()):
            for text in ("own", "verses") if metric not in VIEWED else ("verses~views",):
                for layers in ("all", "inner"):
                    rho = float(np.clip(np.cos(index * 1.7 + n), -0.93, 0.93))
                    yield {
                        "model": model,
                        "metric": metric,
                        "variant": "paper",
                        "recipe": recipe,
                        "metric_readout": readout,
                        "score_readout": readout or "mean_normed",
                        "parameters": PARAMETERS.get(metric, "{}"),
                        "protocol": "primary",
                        "pairing": "matched" if readout else "recipe",
                        "metric_text": text,
                        "layers": layers,
                        "n_layers": n,
                        "n_tasks": len(tasks),
                        "spearman": rho,
                        "kendall": rho * 0.7,
                        "dcor": abs(rho),
                        "dcor2_corrected": rho**2 - 0.1,
                        "low": max(-1, rho - 0.15) if index % 2 else np.nan,
                        "high": min(1, rho + 0.12) if index % 2 else np.nan,
                        "partial_spearman": rho * 0.3 - 0.1,
                        "residual_spearman": rho * 0.25 - 0.1,
                        "residual_low": max(-1, rho * 0.25 - 0.4) if index % 2 else np.nan,
                        "residual_high": min(1, rho * 0.25 + 0.2) if index % 2 else np.nan,
                        "q_task": min(1.0, 0.08 * (index % 9)) if index % 4 else np.nan,
                        "within_task": rho * 0.8,
                        "other_task": rho * 0.7,
                        "p_task": 0.04 * (index % 9) if index % 4 else np.nan,
                        "undefined": "",
                        "flag": "saturated" if metric == "lidar" and model == "minilm-l6" else "",
                    }


def _selection(models: dict[str, int], n_tasks: int) -> Iterator[dict[str, object]]:
    baselines = ["last", "middle", "random", "oracle", "other_tasks", "other_models"]
    baselines += [f"labels_{count}" for count in (16, 32, 64, 128)]
    for model, n in models.items():
        empty = {"metric": "", "variant": "", "recipe": "", "parameters": "", "direction": "", "metric_text": ""}
        for readout in READOUTS:
            for index, selector in enumerate(baselines):
                score = {"last": 0.58, "oracle": 0.66}.get(selector, 0.59 + 0.006 * index)
                yield _selected(model, n, readout, score, index, n_tasks) | empty | {"selector": selector}
            for index, (metric, recipe, own) in enumerate(_levels()):
                if own in ("", readout):
                    for step, direction in enumerate(("theory", "study")):
                        named = {
                            "selector": f"{('max', 'min')[step]}_{metric}",
                            "metric": metric,
                            "variant": "paper",
                            "recipe": recipe,
                        }
                        named |= {
                            "parameters": PARAMETERS.get(metric, "{}"),
                            "direction": direction,
                            "metric_text": "own",
                        }
                        score = 0.55 + 0.09 * abs(np.sin(3 * index + step + n))
                        row = _selected(model, n, readout, score, index, n_tasks) | named
                        if metric == "lidar" and model == "minilm-l6":
                            row |= {"score": np.nan, "picked_layer": np.nan, "undefined": "saturated"}
                        yield row


def _selected(model: str, n: int, readout: str, score: float, index: int, n_tasks: int) -> dict[str, object]:
    return {
        "model": model,
        "readout": readout,
        "protocol": "primary",
        "n_tasks": n_tasks,
        "score": score,
        "regret": 0.66 - score,
        "picked_layer": (index * 5) % n,
        "picked_depth": ((index * 5) % n) / (n - 1),
        "gain_over_last": score - 0.58,
        "gain_low": score - 0.58 - 0.02,
        "gain_high": score - 0.58 + 0.015,
        "n_others": np.nan,
        "q_gain": 0.2,
        "undefined": "",
    }
