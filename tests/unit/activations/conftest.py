"""Saved tiny models, made once, and slow references that look at one token after the other."""

from pathlib import Path

import pytest

from tests import builders


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A decoder with a final norm, and an encoder without one whose texts begin and end with special tokens."""
    root = tmp_path_factory.mktemp("models")
    return {family: builders.save(root / family, family) for family in ("llama", "bert", "neox")}
