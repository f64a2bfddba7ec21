"""A GPU gives the numbers of the CPU."""

from pathlib import Path

import numpy as np
import pytest
import torch
from layerwise.activations.extract import extract
from layerwise.models.text import load
from layerwise.store import Activations

from tests import builders
from tests.faults.conftest import quiet, request


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_what_the_cpu_gives(weights: Path, tmp_path: Path) -> None:
    for device in ("cpu", "cuda"):
        model = load(weights, name="m", dtype="float32", max_tokens=24, device=device)
        extract(
            tmp_path / f"{device}.h5",
            model,
            builders.samples([3, 24, 9, 1, 17]),
            tmp_path,
            request(batch_tokens=64),
            quiet,
        )
    with Activations(tmp_path / "cpu.h5") as cpu, Activations(tmp_path / "cuda.h5") as cuda:
        for layer in cpu.layers:
            expected = cpu.rows("mean", layer)
            assert np.abs(cuda.rows("mean", layer) - expected).max() <= 1e-3 * np.abs(expected).max()
            np.testing.assert_allclose(cuda.spectra("raw", layer), cpu.spectra("raw", layer), atol=1e-3)
