"""Result files in their places, and the study's published curves as tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from layerwise.records import write_record
from layerwise.tables.frames import METRIC_COLUMNS, SCORE_COLUMNS, typed
from published_inputs import published_folder

TYPES = {
    "pair_classification": "SprintDuplicateQuestions TwitterSemEval2015 TwitterURLCorpus",
    "clustering": "ArxivClusteringS2S BiorxivClusteringS2S MedrxivClusteringS2S RedditClustering "
    "StackExchangeClustering TwentyNewsgroupsClustering",
    "reranking": "AskUbuntuDupQuestions MindSmallReranking SciDocsRR StackOverflowDupQuestions",
    "sts": "BIOSSES SICK-R STS12 STS13 STS14 STS15 STS16 STS17 STSBenchmark",
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Write a record where its stage would put it."""

    def _write(record: dict[str, Any], folder: str = "") -> Path:
        if "baselines" in record:
            path = tmp_path / "data" / record["task"] / "baselines.json"
        elif "metric" in record:
            path = tmp_path / "metrics" / record["model"] / record["dataset"] / f"{folder}{record['metric']}.json"
        else:
            path = tmp_path / "tasks" / record["model"] / f"{folder}{record['task']}.json"
        write_record(path, record)
        return path

    return _write


@pytest.fixture(scope="session")
def published() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pythia-410M of the study: metrics (value raw, normalized maxEntropy) and scores of subset 0, as our tables."""
    folder = published_folder()
    metrics, scores = (pd.read_csv(folder / name) for name in ("metrics.csv", "mteb_scores.csv"))
    metrics = metrics[(metrics["size"] == "410m") & (metrics["revision"] == "main") & (metrics["split"] == "test")]
    keys = ["task", "metric", "layer"]
    raw = metrics[(metrics["normalization"] == "raw") & metrics["task"].notna()]
    scaled = metrics[metrics["normalization"] == "maxEntropy"].set_index(keys)["value"]
    raw = raw.assign(normalized=scaled.reindex(pd.MultiIndex.from_frame(raw[keys])).to_numpy())
    names = {"entropy_dataset": "dataset_entropy", "entropy_prompt": "prompt_entropy"}
    raw = raw.assign(metric=raw["metric"].replace(names), model="pythia-410m", dataset=raw["task"] + "~sample")
    token = raw["metric"].isin(["prompt_entropy", "curvature"])
    raw = raw.assign(readout=np.where(token, "", "mean"), recipe=np.where(token, "centre_unit", ""))
    raw = raw.assign(variant="released", parameters="{}", tap="residual", depth=raw["layer"] / 24)
    scores = scores[(scores["size"] == "410m") & (scores["revision"] == "main") & (scores["subset_order"] == 0)]
    kinds = {task: kind for kind, tasks in TYPES.items() for task in tasks.split()}
    scores = scores.assign(model="pythia-410m", type=scores["task"].map(kinds).fillna("classification"), protocol="mteb")
    scores = scores.assign(
        readout="mean", tap="residual", depth=scores["layer"] / 24, score=scores["main_score"], baseline=""
    )
    return typed(raw.reindex(columns=[*METRIC_COLUMNS])), typed(scores.reindex(columns=[*SCORE_COLUMNS]))
