"""Jobs on one machine take different GPUs as long as there are enough."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from layerwise.models import device, own_gpu


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA that says there are two GPUs of 10 and 20 bytes, and locks in a folder of the test."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: SimpleNamespace(uuid=f"id-{i}"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda i: (20, 20) if i in (1, "cuda:1") else (10, 20))
    monkeypatch.setattr(own_gpu.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(own_gpu, "_HELD", [])


@pytest.mark.parametrize("word", ["auto", "cuda"])
def test_two_jobs_take_two_gpus_and_a_third_the_emptier(word: str, two_gpus: None) -> None:
    # a lock belongs to what opened it, so that this process can stand for three
    assert [device.resolve(word, 1) for _ in range(3)] == ["cuda:0", "cuda:1", "cuda:1"]


def test_a_model_too_large_for_its_gpu_is_split(two_gpus: None) -> None:
    assert device.resolve("auto", 9) == "split"
    assert device.resolve("auto", 15) == "cuda:1"


def test_a_named_device_is_kept(two_gpus: None) -> None:
    assert [device.resolve(word, 1) for word in ("cuda:0", "cpu", "split")] == ["cuda:0", "cpu", "split"]


def test_a_gpu_of_a_process_that_ended_is_free(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from layerwise.models.own_gpu import take; "
    code += "print(take(['a', 'b'], Path(sys.argv[1])))"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
        assert done.stdout.strip() == "0"


def test_where_the_allocator_has_no_such_option_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda option, value: asked.append((option, value)))
    monkeypatch.setattr("ctypes.CDLL", lambda _name: library)
    device.keep_freed_memory()
    assert [option for option, _ in asked] == [-3, -1]
    monkeypatch.setattr("ctypes.CDLL", lambda _name: SimpleNamespace())
    device.keep_freed_memory()
