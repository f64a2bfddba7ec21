"""What jobs ask for: more at every attempt, more for what is larger, and GPUs where there are some."""

import json
from pathlib import Path

import pytest
from layerwise.config import ModelEntry
from layerwise.costs import requests
from layerwise.costs.lengths import image_tokens, text_tokens
from layerwise.costs.sizes import ModelSize
from layerwise.costs.visible import visible_gpus

SMALL = ModelSize(n_layers=12, width=768, parameters=10**8, block_parameters=10**8)
LARGE = ModelSize(n_layers=32, width=4096, parameters=7 * 10**9, block_parameters=7 * 10**9)
COLLECT = {"readouts": [{"name": "mean"}], "recipes": ["raw"], "taps": ["residual"]}


def entry(**keys: object) -> ModelEntry:
    return ModelEntry.model_validate({"name": "m", "source": {"path": "somewhere"}, **keys})


def test_every_attempt_asks_for_more() -> None:
    assert [requests.memory(1000, attempt) for attempt in (1, 2, 3)] == [2000, 3900, 5900]
    assert [requests.minutes(600, attempt) for attempt in (1, 2, 3)] == [30, 60, 90]
    assert requests.minutes(0, 1, start=3) == 3


def test_a_larger_model_or_dataset_asks_for_more() -> None:
    costs = [requests.extraction(size, entry(), COLLECT, rows, 0) for size in (SMALL, LARGE) for rows in (100, 10_000)]
    assert costs[2][0] > costs[0][0] + 20_000  # MiB: 28 GB of weights in float32
    assert costs[0][1] < costs[1][1] < costs[3][1]
    half = requests.extraction(LARGE, entry(dtype="bfloat16"), COLLECT, 100, 0)
    assert half[0] < costs[2][0] - 10_000
    assert requests.metric(SMALL, 1000, 256, None)[0] > requests.metric(SMALL, 100, 256, None)[0]
    assert requests.scoring(LARGE, 1000)[1] > requests.scoring(SMALL, 1000)[1]


def test_memory_of_a_metric_does_not_grow_with_samples_beyond_its_limit() -> None:
    for most in (None, 4000):
        mib, more = (requests.metric(LARGE, rows, 256, most)[0] for rows in (100_000, 1_000_000))
        assert more - mib < 150  # ids and numbers of tokens
        assert mib < 4000
    assert requests.metric(SMALL, 100_000, 256, 4000)[1] > 10 * requests.metric(SMALL, 100_000, 256, 1000)[1]


def test_manifests_say_the_size_and_what_is_not_there_is_assumed(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    assumed = requests.model_size(manifest)
    assert requests.dataset_rows(manifest) > 100
    manifest.write_text(json.dumps({"n_layers": 2, "hidden_size": 8, "parameters": 1000, "n_rows": 7}))
    assert requests.model_size(manifest).parameters == 1000 != assumed.parameters
    assert requests.dataset_rows(manifest) == 7
    manifest.write_text("{")
    manifest.touch()
    assert requests.model_size(manifest) == assumed


@pytest.mark.parametrize(
    ("device", "size", "available", "here", "asked"),
    [
        ("cpu", LARGE, 4, False, 0),
        ("mps", LARGE, 4, True, 0),
        ("auto", SMALL, 0, True, 0),
        ("auto", SMALL, 4, True, 1),
        ("auto", ModelSize(80, 8192, 7 * 10**10, 7 * 10**10), 4, False, 4),
        ("cuda:1", LARGE, 4, True, 1),
        ("cuda", LARGE, 0, True, 0),
        ("split", SMALL, 4, True, 4),
        ("split", SMALL, 4, False, 1),
    ],
)
def test_gpus(device: str, size: ModelSize, available: int, here: bool, asked: int) -> None:
    assert requests.gpus(entry(device=device), size, available, here) == asked


@pytest.mark.parametrize(
    ("named", "seen"), [(None, 2), ("0", 1), ("0,1", 2), ("", 0), ("-1", 0), ("1,-1,0", 1), ("GPU-abc,GPU-def", 2)]
)
def test_visible_gpus_are_those_that_cuda_visible_devices_leaves(named: str | None, seen: int, tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    environment = {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
    assert visible_gpus(environment, tmp_path) == seen


def test_no_device_nodes_no_gpus(tmp_path: Path) -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "0"}, tmp_path) == 0


def test_lengths_of_texts_and_images() -> None:
    tokens = text_tokens(["word " * 42] * 1000, 32, 16, None)
    assert (tokens.rows, tokens.longest, tokens.total, tokens.kept) == (1000, 32, 32_000, 16_000)
    assert image_tokens(10, 17, 64).squares == 10 * 17**2


def test_changed_tokens_change_the_lengths() -> None:
    texts = [" ".join(["word"] * count) for count in (20, 40)]
    whole = text_tokens(texts, 512, 64, None)
    each = {level: [text for text in texts for _ in level] for level in ((0.5, 1.0), (8, 16), (64, 128))}
    for transform, level, total in (
        ("repeat_tokens", (0.5, 1.0), 2 * whole.total),
        ("prefixes", (0.5, 1.0), 1.5 * whole.total),
        ("prefixes", (8, 16), 2 * (8 + 16)),
        ("random_prompts", (64, 128), 2 * (64 + 128)),
    ):
        found = text_tokens(each[level], 512, 64, None, (transform, level * 2))
        assert found.rows == 4
        assert found.total == pytest.approx(total, abs=2)


@pytest.mark.parametrize("levels", [2, 3, 4, 7, 10])
def test_every_level_is_counted_where_only_some_texts_are(levels: int) -> None:
    shares = [(at + 1) / levels for at in range(levels)] * 1000
    texts = ["word " * 84] * len(shares)
    found = text_tokens(texts, 512, 64, None, ("prefixes", shares))
    assert found.total == pytest.approx(100 * sum(shares), rel=0.1)
