"""The synthetic study, built once, and a way to look at the text of a figure."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import synthetic


@pytest.fixture(scope="session")
def study() -> dict[str, pd.DataFrame]:
    """Two models and an untrained twin, five tasks, all metrics."""
    return synthetic.build()


@pytest.fixture(scope="session")
def small() -> dict[str, pd.DataFrame]:
    """One model of seven layers and two tasks."""
    return synthetic.build({"minilm-l6": 7}, {"sentiment": "classification", "lee": "sts"})
