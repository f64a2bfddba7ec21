"""The results tree that the study released, as the rows of its CSV form.

Assumed layout, from the authors' repository (github.com/OFSkean/information_flow, ``experiments/results``):

- ``{family}/{size}/{revision}/mteb/layer_{l}/{Task}.json``: a result of mteb 1.14, ``scores.test`` a list of subsets
  in the order in which the study saw them; it used the first.
- ``{family}/{size}/{revision}/metrics/{dataset}/{split}/{metric}.pkl``: a pickled mapping of normalizations to one
  value per layer, from layer 0. ``dataset`` may have several parts (``mteb/banking77``); ``split`` may be absent.

Only the three parts before ``mteb`` or ``metrics`` and the part ``layer_{l}`` matter: the folder may be given at any
height, and more folders may lie around the files. A metric belongs to the task whose dataset it was taken on.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from layerwise.errors import FileError
from layerwise.tables.reading import objects
from layerwise.tables.safe_pickle import read_curves

Row = dict[str, Any]

_LAYER = re.compile(r"layer[_-](\d{1,4})\Z")
_SPLITS = ("test", "train", "validation", "dev")
_META = "model_meta.json"

# metadata of mteb 1.14: path of the dataset -> task. No two tasks of the study share a dataset.
TASK_OF_DATASET = {
    f"mteb/{dataset}": task
    for dataset, task in (
        ("amazon_counterfactual", "AmazonCounterfactualClassification"),
        ("amazon_massive_intent", "MassiveIntentClassification"),
        ("amazon_massive_scenario", "MassiveScenarioClassification"),
        ("amazon_reviews_multi", "AmazonReviewsClassification"),
        ("arxiv-clustering-s2s", "ArxivClusteringS2S"),
        ("askubuntudupquestions-reranking", "AskUbuntuDupQuestions"),
        ("banking77", "Banking77Classification"),
        ("biorxiv-clustering-s2s", "BiorxivClusteringS2S"),
        ("biosses-sts", "BIOSSES"),
        ("emotion", "EmotionClassification"),
        ("medrxiv-clustering-s2s", "MedrxivClusteringS2S"),
        ("mind_small", "MindSmallReranking"),
        ("mtop_domain", "MTOPDomainClassification"),
        ("mtop_intent", "MTOPIntentClassification"),
        ("reddit-clustering", "RedditClustering"),
        ("scidocs-reranking", "SciDocsRR"),
        ("sickr-sts", "SICK-R"),
        ("sprintduplicatequestions-pairclassification", "SprintDuplicateQuestions"),
        ("stackexchange-clustering", "StackExchangeClustering"),
        ("stackoverflowdupquestions-reranking", "StackOverflowDupQuestions"),
        ("sts12-sts", "STS12"),
        ("sts13-sts", "STS13"),
        ("sts14-sts", "STS14"),
        ("sts15-sts", "STS15"),
        ("sts16-sts", "STS16"),
        ("sts17-crosslingual-sts", "STS17"),
        ("stsbenchmark-sts", "STSBenchmark"),
        ("toxic_conversations_50k", "ToxicConversationsClassification"),
        ("tweet_sentiment_extraction", "TweetSentimentExtractionClassification"),
        ("twentynewsgroups-clustering", "TwentyNewsgroupsClustering"),
        ("twittersemeval2015-pairclassification", "TwitterSemEval2015"),
        ("twitterurlcorpus-pairclassification", "TwitterURLCorpus"),
    )
}


def read_tree(folder: str | os.PathLike[str]) -> tuple[list[Row], list[Row], int]:
    """Read every score and metric below a folder.

    Returns:
        Rows of the scores and of the metrics, with the columns of the CSV form and ``path``; and how many JSON files
        and pickles were passed over because they do not lie where the study put its results.

    Raises:
        FileError: a file is truncated, no result of mteb, or no pickle of numbers.
    """
    scores: list[Row] = []
    metrics: list[Row] = []
    passed_over = 0
    for path in sorted(Path(folder).resolve().rglob("*")):
        if path.suffix == ".json" and path.name != _META and path.is_file():
            place = _score_place(path)
            scores += _scores(path, place) if place else []
        elif path.suffix == ".pkl" and path.is_file():
            place = _metric_place(path)
            metrics += _metrics(path, place) if place else []
        else:
            continue
        passed_over += place is None
    return scores, metrics, passed_over


def _model(parts: tuple[str, ...], anchor: str) -> tuple[Row, tuple[str, ...]] | None:
    """Family, size and revision before the last folder named ``anchor``, and the parts below it."""
    if anchor not in parts[:-1]:
        return None
    at = len(parts) - 2 - parts[-2::-1].index(anchor)
    above = parts[1:at]  # without the root
    if len(above) < 3:
        return None
    return dict(zip(("family", "size", "revision"), above[-3:], strict=True)), parts[at + 1 :]


def _score_place(path: Path) -> Row | None:
    found = _model(path.parts, "mteb")
    if found is None:
        return None
    layers = [match for part in found[1][:-1] if (match := _LAYER.match(part))]
    return found[0] | {"layer": int(layers[0].group(1))} if len(layers) == 1 else None


def _metric_place(path: Path) -> Row | None:
    found = _model(path.parts, "metrics")
    if found is None or len(found[1]) < 2:
        return None
    *dataset, _ = found[1]
    split = dataset.pop() if len(dataset) > 1 and dataset[-1] in _SPLITS else ""
    name = "/".join(dataset)
    return found[0] | {"dataset": name, "task": TASK_OF_DATASET.get(name, ""), "split": split, "metric": path.stem}


def _scores(path: Path, place: Row) -> Iterator[Row]:
    try:
        result = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path} is truncated or no JSON ({error}); fetch it again.") from error
    splits = result.get("scores") if isinstance(result, dict) else None
    if not isinstance(splits, dict) or "test" not in splits or not isinstance(result.get("task_name"), str):
        raise FileError(f"{path} is no result of mteb 1.14 with a task_name and scores of a test split; remove it.")
    shared = place | {"task": result["task_name"], "path": str(path)}
    shared |= {field: str(result.get(field, "")) for field in ("mteb_version", "dataset_revision")}
    for order, subset in enumerate(objects(splits["test"], path, "scores.test")):
        score = subset.get("main_score")
        if isinstance(score, bool) or not isinstance(score, int | float | None):
            raise FileError(f"{path} has main_score {score!r} in subset {order}, a number expected; fetch it again.")
        number = float("nan") if score is None or not math.isfinite(score) else float(score)
        yield shared | {"subset_order": order, "subset": str(subset.get("hf_subset", "")), "main_score": number}


def _metrics(path: Path, place: Row) -> Iterator[Row]:
    for normalization, values in read_curves(path).items():
        shared = place | {"normalization": normalization, "path": str(path)}
        yield from (shared | {"layer": layer, "value": float(value)} for layer, value in enumerate(values))
