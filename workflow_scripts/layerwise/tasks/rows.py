"""The rows of a local task, drawn from the samples of a dataset: seeded, balanced, train and test kept apart."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from layerwise.errors import DataError
from layerwise.samples import balanced_sample

Rows = dict[str, pd.DataFrame]
Options = dict[str, Any]
Indices = tuple[int, int, int]  # two rows of the samples, and 1 where they belong together


def task_rows(name: str, options: Options, samples: pd.DataFrame, pairs: pd.DataFrame | None) -> Rows:
    """Return the rows of a task by split, with the columns that mteb's task of this type expects.

    Args:
        name: of the task, for messages.
        options: the config's entry.
        samples: of its dataset.
        pairs: ``id_a``, ``id_b``, ``score`` of its dataset, where it has judged pairs.

    Returns:
        classification: train and test with text (images: id), label. clustering: test with sentences, labels.
        pair_classification:
        test with sentence1, sentence2, labels. sts: test with sentence1, sentence2, score.

    Raises:
        DataError: a label column is missing or has gaps, a class occurs once or in test only, or there are too few rows.
    """
    for key in ("label", "group"):
        column = options.get(key)
        if column is not None and column not in samples:
            known = ", ".join(map(str, samples.columns))
            raise DataError(f"task {name!r}: its dataset has no column {column!r} (from {key!r}); its columns: {known}.")
        gaps = samples[column].isna() | samples[column].astype(str).str.strip().eq("") if column is not None else None
        if gaps is not None and gaps.any():
            first = samples["id"][gaps].iloc[0]
            raise DataError(f"task {name!r}: {gaps.sum()} samples have no {column!r}, first {first!r}; fill or remove them.")
    rows = _BUILDERS[options["type"]](name, options, samples, pairs)
    for split, frame in rows.items():
        if len(frame) < 10:
            raise DataError(f"task {name!r}: only {len(frame)} {split} rows can be drawn, at least 10 are needed.")
    return rows


def _classification(name: str, options: Options, samples: pd.DataFrame, _pairs: pd.DataFrame | None) -> Rows:
    label, group, seed = options["label"], options.get("group"), options["seed"]
    content, same = ("text", "text") if "text" in samples else ("id", "sha256")
    frame = samples.drop_duplicates(same).copy()
    frame["label"] = frame[label].map(str)
    if frame["label"].nunique() < 2:
        raise DataError(f"task {name!r}: column {label!r} has one class only ({frame['label'].iloc[0]!r}); two are needed.")
    if group is None:
        test = balanced_sample(frame, options["test"], seed, "label")
        rest = frame[~frame["id"].isin(test["id"])]
    else:
        in_test = frame[group].isin(_test_groups(frame, group, seed))
        test, rest = balanced_sample(frame[in_test], options["test"], seed, "label"), frame[~in_test]
    train = balanced_sample(rest, options["train"], seed, "label")
    unseen = set(test["label"]) - set(train["label"])
    if unseen:
        missing = f"label {min(unseen)!r} is in the test rows but in no train row"
        raise DataError(f"task {name!r}: {missing}; lower 'test' or add samples of it.")
    codes = {value: code for code, value in enumerate(sorted(frame["label"].unique()))}  # mteb wants integers
    parts = {"train": train, "test": test}
    return {
        split: pd.DataFrame({content: part[content], "label": part["label"].map(codes), "label_name": part["label"]})
        for split, part in parts.items()
    }


def _test_groups(frame: pd.DataFrame, group: str, seed: int) -> set[Any]:
    """Half of the groups of every label, so that no group is in both train and test."""
    rng = np.random.default_rng(seed)
    chosen: set[Any] = set()
    for _, part in frame.groupby("label", sort=True):
        groups = rng.permutation(sorted(part[group].unique()))
        wanted = max(1, len(groups) // 2) - sum(value in chosen for value in groups)  # groups may hold several labels
        chosen.update([value for value in groups if value not in chosen][: max(0, wanted)])
    return chosen


def _clustering(name: str, options: Options, samples: pd.DataFrame, _pairs: pd.DataFrame | None) -> Rows:
    label, wanted = options["label"], options.get("classes")
    frame = samples.drop_duplicates("text")
    counts = frame[label].value_counts().sort_index()
    classes = counts.index.to_numpy()
    if wanted is not None:
        share = options["test"] // wanted
        classes = counts[counts >= share].index.to_numpy()
        classes = np.random.default_rng(options["seed"]).permutation(classes)[:wanted]
    if len(classes) < 2:
        raise DataError(f"task {name!r}: column {label!r} has fewer than two classes that are large enough to cluster.")
    drawn = balanced_sample(frame[frame[label].isin(classes)], options["test"], options["seed"], label)
    return {"test": pd.DataFrame({"sentences": drawn["text"], "labels": drawn[label].astype(str)})}


def _pair_classification(name: str, options: Options, samples: pd.DataFrame, _pairs: pd.DataFrame | None) -> Rows:
    if options["pool"] is not None:
        samples = balanced_sample(samples, options["pool"], options["seed"], options["label"])
    build = {"next": _next_pairs, "same": _same_pairs}.get(options["pairs"])
    if build is None:
        raise DataError(
            f"task {name!r}: 'pairs: {options['pairs']}' is for sts; a pair_classification wants 'next' or 'same'."
        )
    rng = np.random.default_rng(options["seed"])
    indices = build(samples, options, rng)
    texts = samples["text"].to_numpy()
    rows = [(texts[first], texts[second], same) for first, second, same in indices]
    return {"test": pd.DataFrame(rows, columns=["sentence1", "sentence2", "labels"])}


def _next_pairs(samples: pd.DataFrame, options: Options, rng: np.random.Generator) -> list[Indices]:
    """Half of the pairs: a row and the next of its group; half: a row and another of its group that is not adjacent."""
    group = samples[options["group"]].to_numpy()
    sizes = samples.groupby(options["group"])[options["group"]].transform("size").to_numpy()
    followed = np.flatnonzero((group[:-1] == group[1:]) & (sizes[:-1] > 3))
    result: list[Indices] = []
    for k, first in enumerate(rng.permutation(followed)[: options["test"]]):
        others = np.flatnonzero(group == group[first])
        apart = others[np.abs(others - first) > 1]
        result.append((int(first), int(rng.choice(apart)), 0) if k % 2 else (int(first), int(first) + 1, 1))
    return result


def _same_pairs(samples: pd.DataFrame, options: Options, rng: np.random.Generator) -> list[Indices]:
    """Half of the pairs: two rows of one label but different groups; half: two rows of different labels."""
    label, group = samples[options["label"]].to_numpy(), samples[options["group"]].to_numpy()
    result: dict[frozenset[int], Indices] = {}
    for _ in range(20 * options["test"]):
        if len(result) >= options["test"]:
            break
        same = 1 - len(result) % 2
        first = int(rng.integers(len(samples)))
        partners = np.flatnonzero((group != group[first]) & ((label == label[first]) == bool(same)))
        if len(partners):
            second = int(rng.choice(partners))
            result.setdefault(frozenset((first, second)), (first, second, same))
    return list(result.values())


def _sts(name: str, options: Options, samples: pd.DataFrame, pairs: pd.DataFrame | None) -> Rows:
    if pairs is None:
        raise DataError(
            f"task {name!r}: its dataset {options['dataset']!r} has no judged pairs; use one that has, like lee."
        )
    text = samples.set_index("id")["text"]
    drawn = balanced_sample(pairs, options["test"], options["seed"])
    columns = {"sentence1": text.loc[drawn["id_a"]].to_numpy(), "sentence2": text.loc[drawn["id_b"]].to_numpy()}
    return {"test": pd.DataFrame(columns | {"score": drawn["score"].to_numpy()})}


_BUILDERS: dict[str, Callable[[str, Options, pd.DataFrame, pd.DataFrame | None], Rows]] = {
    "classification": _classification,
    "image_classification": _classification,
    "attention_probe": _classification,
    "clustering": _clustering,
    "pair_classification": _pair_classification,
    "sts": _sts,
}
