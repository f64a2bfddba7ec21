"""A Slurm for the tests of this folder, which run last and one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.slurm import Slurm, obstacle

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of this folder at the end."""
    items.sort(key=lambda item: HERE in item.path.parents)


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A running Slurm of one node; skips where none can be started."""
    reason = obstacle()
    if reason:
        pytest.skip(reason)
    slurm = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        slurm.up()
        yield slurm
    finally:
        slurm.down()
