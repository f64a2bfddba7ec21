"""Saved tiny models, made once."""

from pathlib import Path

import pytest

from tests import builders


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A Hugging Face folder of every family, in float32."""
    root = tmp_path_factory.mktemp("models")
    return {family: builders.save(root / family, family) for family in builders.FAMILIES}
