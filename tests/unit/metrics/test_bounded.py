"""What metrics do with more samples than they hold: the same numbers from blocks, or a seeded subsample that is recorded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layerwise.errors import ConfigError
from layerwise.metrics import blocks
from layerwise.metrics.curves import metric_records
from layerwise.metrics.registry import METRICS, load_metric
from layerwise.metrics.resampling import draw_subset
from layerwise.store import Header, Writer

from tests.unit.metrics._metric_inputs import FakeActivations

READOUTS, RECIPES = ["mean", "other"], ["raw", "centre_unit", "centre_unit_skip_first"]
IN_BLOCKS = ["anisotropy", "dataset_entropy", "effective_rank", "top_eigenvalue_share"]
PAIRWISE = ["dime", "infonce", "intrinsic_dimension", "lidar"]
TOKENS = ["curvature", "effective_rank", "prompt_entropy", "sink_norm_ratio"]


def records(metric: str, activations: FakeActivations, **parameters: Any) -> list[dict[str, Any]]:
    parameters = {"null_draws": 3, "subsamples": 4, **parameters}
    return metric_records(metric, activations, READOUTS, RECIPES, parameters, seed=1)


def numbers(record: dict[str, Any]) -> list[float]:
    keys = ("value", "normalized", "standard_error")
    found = [record["null_value"], record["null_normalized"], record["split_half"]]
    return [np.nan if x is None else x for x in [*found, *(layer[key] for layer in record["layers"] for key in keys)]]


def test_every_metric_is_bounded_one_way_or_the_other() -> None:
    for name in METRICS:
        module = load_metric(name)
        pooled = set(module.SPEC.needs) & {"pooled", "views"}
        assert not pooled or hasattr(module, "accumulate") != (module.SPEC.max_samples is not None), name
    assert {name for name in METRICS if hasattr(load_metric(name), "accumulate")} == set(IN_BLOCKS)
    assert {name for name in METRICS if load_metric(name).SPEC.max_samples} == set(PAIRWISE)


@pytest.mark.parametrize("metric", IN_BLOCKS)
def test_blocks_give_what_all_vectors_at_once_give(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variants = list(load_metric(metric).SPEC.variants)
    activations = FakeActivations(n=60)
    whole = records(metric, activations, variants=variants)
    monkeypatch.setattr(blocks, "HELD_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 7 * 8 * activations.width)  # seven rows a block

    def refuse(readout: str, layer: int) -> None:
        raise AssertionError("all vectors were read at once")

    monkeypatch.setattr(activations, "pooled", refuse)
    monkeypatch.setattr(FakeActivations, "among", unpatched(FakeActivations.among))
    parts = records(metric, activations, variants=variants)
    assert [record.keys() for record in parts] == [record.keys() for record in whole]
    for part, one in zip(parts, whole, strict=True):
        np.testing.assert_allclose(numbers(part), numbers(one), rtol=1e-9, atol=1e-12)
        assert (part["n_samples"], part["n_available"]) == (60, 60)


def unpatched(among: Any) -> Any:
    """Rows of some samples may be read, whatever the test forbids for all of them."""

    def call(self: FakeActivations, samples: np.ndarray) -> FakeActivations:
        assert len(samples) <= 7
        other: FakeActivations = among(self, samples)
        other.__dict__.pop("pooled", None)
        return other

    return call


def test_a_constant_layer_in_blocks_is_undefined_and_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    activations = FakeActivations(n=60)
    activations.view_arrays[2][:] = activations.view_arrays[2][:1]
    monkeypatch.setattr(blocks, "HELD_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 7 * 8 * activations.width)
    for metric in ("dataset_entropy", "effective_rank"):
        layers = records(metric, activations)[0]["layers"]
        assert [layer["value"] is None for layer in layers] == [False, False, True, False, False]
        assert "equal" in layers[2]["undefined"]


@pytest.mark.parametrize("metric", TOKENS)
def test_token_metrics_read_a_few_samples_at_a_time(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    activations = FakeActivations(n=30)
    whole = [record for record in records(metric, activations) if "recipe" in record]
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 7 * 8 * activations.width)
    monkeypatch.setattr(FakeActivations, "among", unpatched(FakeActivations.among))
    parts = [record for record in records(metric, activations) if "recipe" in record]
    assert whole
    for part, one in zip(parts, whole, strict=True):
        np.testing.assert_allclose(numbers(part), numbers(one), rtol=1e-12)


@pytest.mark.parametrize("metric", [*PAIRWISE, "dataset_entropy"])
def test_a_subsample_is_the_same_for_every_readout_and_is_recorded(metric: str) -> None:
    activations = FakeActivations(n=60)
    chosen = draw_subset(60, 40, seed=1)
    assert chosen is not None
    drawn = records(metric, activations, max_samples=40)
    alone = records(metric, activations.among(chosen))
    for one, other in zip(drawn, alone, strict=True):
        assert (one["n_samples"], one["n_available"]) == (40, 60)
        assert (other["n_samples"], other["n_available"]) == (40, 40)
        assert one["layers"] == other["layers"]
        assert one["null_value"] == other["null_value"]


def test_a_larger_subset_contains_the_smaller() -> None:
    small, large = draw_subset(1000, 10, 3), draw_subset(1000, 400, 3)
    assert small is not None and large is not None
    assert set(small.tolist()) < set(large.tolist())
    assert (np.diff(large) > 0).all()
    assert draw_subset(1000, 10, 4).tolist() != small.tolist()
    assert draw_subset(400, 400, 3) is None
    assert draw_subset(1000, None, 3) is None


@pytest.mark.parametrize("value", [0, 2, 9, 10.5, "many", True])
def test_a_limit_that_is_no_number_or_too_low_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="intrinsic_dimension: max_samples must be a whole number of at least 10"):
        records("intrinsic_dimension", FakeActivations(), max_samples=value)


PEAK = """
import re, sys
from pathlib import Path
from layerwise.metrics import blocks
from layerwise.metrics.curves import metric_records
from layerwise.store import Activations
blocks.HELD_BYTES = blocks.BLOCK_BYTES = 2**22
with Activations(sys.argv[1]) as store:
    for metric, limit in [(name, int(most)) for name, most in (pair.split("=") for pair in sys.argv[2:])]:
        parameters = {"null_draws": 1, "subsamples": 2} | ({"max_samples": limit} if limit else {})
        for record in metric_records(metric, store, ["mean"], [], parameters, 0):
            assert all(layer["value"] is not None for layer in record["layers"])
print(int(re.search("VmHWM:\\\\s+(\\\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def peak(path: Path, asked: list[str]) -> float:
    command = [sys.executable, "-c", PEAK, str(path), *asked]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1"}).stdout)


def written(path: Path, n: int, views: int, width: int = 512) -> Path:
    rng = np.random.default_rng(0)
    header = Header(
        "m", "r", "float32", "d", "x", n, 1, width, ["in", "h.0"], ["residual"], True, [{"name": "mean"}], [], {}
    )
    ids = [f"{sample}~{view}" for sample in range(n) for view in range(views)]
    rows = np.repeat(rng.standard_normal((n, width), dtype=np.float32), views, axis=0)
    numbered = np.tile(np.arange(views), n)
    sources = [name.split("~")[0] for name in ids]
    with Writer(path, header, ids, sources, numbered, np.full(len(ids), 3)) as writer:
        for layer in range(2):
            noisy = rows + rng.standard_normal(rows.shape, dtype=np.float32)
            writer.write(0, {f"readout/mean/{layer:03d}": noisy})
    return path


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("views", "asked"),
    [(1, [f"{name}=0" for name in IN_BLOCKS] + ["intrinsic_dimension=300"]), (2, ["lidar=300", "infonce=300", "dime=300"])],
)
def test_memory_does_not_grow_with_the_samples(views: int, asked: list[str], tmp_path: Path) -> None:
    few = peak(written(tmp_path / "few.h5", 2_000, views), asked)
    many = peak(written(tmp_path / "many.h5", 20_000, views), asked)
    vectors = 18_000 * views * 512 * 8 / 2**20  # MiB that ten times the samples take more: 70, or 141
    assert many - few < vectors / 4
