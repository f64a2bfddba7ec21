"""Saved tiny models, made once."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import close_session, constants

from tests import builders, vision_builders
from tests.hub_server import Hub, point_at, serve


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A Hugging Face folder of every text family, in float32."""
    root = tmp_path_factory.mktemp("models")
    return {family: builders.save(root / family, family) for family in builders.FAMILIES}


@pytest.fixture(scope="session")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of every vision family, as its library writes it."""
    root = tmp_path_factory.mktemp("vision")
    return {family: vision_builders.save(root / family, family) for family in vision_builders.EVERY}


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures."""
    return vision_builders.paint(tmp_path_factory.mktemp("pictures"))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub on a local port, asked by this process with an empty cache, no token and no pauses between tries."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    monkeypatch.setattr("layerwise.models.hub._PAUSES", (0.0, 0.0))
    patient = SimpleNamespace(sleep=lambda _seconds: None, time=time.time)
    monkeypatch.setattr("huggingface_hub.file_download.time", patient)
    monkeypatch.setattr("huggingface_hub.utils._http.time", patient)
    with serve(Hub()) as served:
        point_at(monkeypatch, served.url)
        yield served
    close_session()
