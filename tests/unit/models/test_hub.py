"""The hub over real sockets: one commit, only what is needed, verified, resumed, from the cache without a request."""

import functools
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import download_model
import pytest
import torch
from huggingface_hub import constants
from layerwise.errors import LayerwiseError, ModelError
from layerwise.models import text
from layerwise.models.manifest import verified_weights
from layerwise.progress import Progress, rule_log
from transformers import LlamaModel

from tests import builders
from tests.hub_server import Hub, closed_port, point_at, serve

NAME = "org/tiny"
NEEDED = {"README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
UNNEEDED = {
    "pytorch_model.bin": b"pickle",
    "onnx/model.onnx": b"x",
    "onnx/config.json": b"{}",
    "flax_model.msgpack": b"x",
    "pytorch_model.bin.index.json": b"{}",
    "adapter_config.json": b"{}",
    "modeling_tiny.py": b"raise SystemExit",
    ".gitattributes": b"x",
    "../escape.json": b"{}",
    "a\\b.json": b"{}",
}


@pytest.fixture
def commit(hub: Hub, saved: dict[str, Path]) -> str:
    """The tiny Llama on the hub, as branch main and tag v1, beside files that nobody needs."""
    files = {file.name: file.read_bytes() for file in saved["llama"].iterdir()}
    card = {"README.md": b"---\nlicense: apache-2.0\n---\n# Tiny\n"}
    return hub.add(NAME, files | card | UNNEEDED, "main", "v1")


def fetch(tmp_path: Path, loader: str = "text", **source: Any) -> dict[str, Any]:
    manifest = tmp_path / "models" / "tiny" / "manifest.json"
    download_model.main(str(manifest), "tiny", {"hub": NAME, **source}, None, loader)
    return verified_weights(manifest)[1]


def refused(tmp_path: Path, sentence: str, loader: str = "text", **source: Any) -> str:
    with pytest.raises(LayerwiseError, match=sentence) as caught:
        fetch(tmp_path, loader, **source)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.__cause__ is None  # nothing that a server wrote reaches the log
    folder = tmp_path / "models" / "tiny"
    assert not folder.exists() or not list(folder.iterdir())
    return message


def cached(name: str) -> Path:
    return next(Path(constants.HF_HUB_CACHE).glob(f"models--*/snapshots/*/{name}"))


def test_a_model_arrives_whole_and_its_manifest_says_what_it_is(
    hub: Hub, commit: str, saved: dict[str, Path], tmp_path: Path
) -> None:
    record = fetch(tmp_path, revision=commit)
    folder = tmp_path / "models" / "tiny" / "weights"
    assert {file.name for file in folder.iterdir()} == NEEDED == set(record["files"]) == hub.downloaded()
    for file in saved["llama"].iterdir():
        assert (folder / file.name).read_bytes() == file.read_bytes()
    expected = {
        "revision": commit,
        "requested_revision": commit,
        "resolved_by": "config",
        "verified": True,
        "licence": "apache-2.0",
        "architecture": "LlamaModel",
        "n_layers": builders.LAYERS,
        "hidden_size": builders.WIDTH,
        "parameters": sum(weight.numel() for weight in builders.model("llama").parameters()),
        "source": {"hub": NAME, "revision": commit},
    }
    assert {key: record[key] for key in expected} == expected
    loaded = text.load(folder, "tiny", "float32", 16, "cpu").module.state_dict()
    for name, tensor in builders.model("llama").state_dict().items():
        torch.testing.assert_close(loaded[name], tensor, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["main", "v1", None])
def test_a_name_is_resolved_once_recorded_and_warned_about(
    hub: Hub, commit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str | None
) -> None:
    record = fetch(tmp_path, **({"revision": name} if name else {}))
    assert (record["revision"], record["requested_revision"]) == (commit, name or "main")
    assert record["resolved_by"] == "hub"
    assert f"write 'revision: {commit}'" in capsys.readouterr().out
    assert len([path for path in hub.paths("GET") if path.startswith("/api/models")]) == 1
    assert not [path for path in hub.paths("HEAD") if "/main/" in path or "/v1/" in path]


def test_a_branch_that_moved_is_read_at_its_new_commit(
    hub: Hub, commit: str, saved: dict[str, Path], tmp_path: Path
) -> None:
    first = fetch(tmp_path)
    builders.save(tmp_path / "other", "llama", torch.bfloat16)
    moved = hub.add(NAME, tmp_path / "other", "main")
    second = fetch(tmp_path)
    assert (first["revision"], second["revision"]) == (commit, moved)
    assert first["digest"] != second["digest"]


def test_a_commit_in_the_cache_needs_no_request(
    hub: Hub, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch(tmp_path, revision=commit)
    hub.asked.clear()
    second = fetch(tmp_path / "again", revision=commit)
    point_at(monkeypatch, f"http://127.0.0.1:{closed_port()}")
    third = fetch(tmp_path / "behind a firewall", revision=commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    fourth = fetch(tmp_path / "offline", revision=commit)
    assert hub.asked == []
    assert first == second == third == fourth


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {}])
def test_a_fresh_process_works_from_the_cache_alone(
    hub: Hub, commit: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    fetch(tmp_path, revision=commit)
    hub.asked.clear()
    code = """if True:
        import sys, download_model
        download_model.main(sys.argv[1], "tiny", {"hub": "org/tiny", "revision": sys.argv[2]}, None, "text")"""
    where = {"HF_ENDPOINT": f"http://127.0.0.1:{closed_port()}", "HF_HUB_CACHE": constants.HF_HUB_CACHE}
    path = {"PYTHONPATH": str(Path(download_model.__file__).parent)}
    manifest = tmp_path / "fresh" / "manifest.json"
    run = subprocess.run(
        [sys.executable, "-c", code, str(manifest), commit],
        env=os.environ | where | path | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(manifest.read_text("utf-8"))["revision"] == commit
    assert hub.asked == []


@pytest.mark.parametrize("why", ["offline", "closed"])
def test_a_name_without_network_is_what_the_cache_remembers(
    hub: Hub, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], why: str
) -> None:
    fetch(tmp_path)
    assert (cached("config.json").parents[2] / "refs" / "main").read_text() == commit  # as huggingface_hub writes it
    capsys.readouterr()
    if why == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        point_at(monkeypatch, f"http://127.0.0.1:{closed_port()}")
    record = fetch(tmp_path / "again")
    assert (record["revision"], record["requested_revision"], record["resolved_by"]) == (commit, "main", "cache")
    assert f"cannot be reached; 'main' is {commit} in the cache" in capsys.readouterr().out
    refused(tmp_path / "tag", "did not arrive from 127.0.0.1", revision="v2")


def test_without_network_and_cache_one_sentence_says_so(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for revision in ("main", "0" * 40):
        refused(tmp_path, r"\(HF_HUB_OFFLINE is set\): run again with a network, or give what it holds", revision=revision)


def test_a_cache_that_lacks_the_tokenizer_is_completed(hub: Hub, commit: str, tmp_path: Path) -> None:
    fetch(tmp_path, revision=commit)
    cached("tokenizer.json").unlink()
    hub.asked.clear()
    assert "tokenizer.json" in fetch(tmp_path, revision=commit)["files"]
    assert hub.asked


def test_a_folder_makes_no_request(hub: Hub, saved: dict[str, Path], tmp_path: Path) -> None:
    download_model.main(str(tmp_path / "m" / "manifest.json"), "tiny", {"path": str(saved["llama"])}, None, "text")
    assert hub.asked == []


def test_an_interrupted_file_is_resumed_where_it_stopped(
    hub: Hub, commit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.cut["model.safetensors"] = 1
    fetch(tmp_path, revision=commit)
    weights = [headers for method, path, headers in hub.asked if method == "GET" and path.endswith("model.safetensors")]
    starts = [int(headers["range"].split("=")[1].rstrip("-")) for headers in weights if "range" in headers]
    assert len(weights) == 2
    assert starts[0] >= 4096
    assert "the connection was lost, resuming" in capsys.readouterr().out


def test_a_file_that_always_stops_is_given_up(hub: Hub, commit: str, tmp_path: Path) -> None:
    hub.short.add("model.safetensors")
    refused(tmp_path, r"model.safetensors of org/tiny did not arrive from 127.0.0.1:\d+ \(RemoteProtocolError\)")
    assert len(hub.paths("GET")) < 30


def test_a_server_that_starts_over_for_ever_is_given_up(hub: Hub, commit: str, tmp_path: Path) -> None:
    hub.short.add("model.safetensors")
    hub.ignore_range = True
    refused(tmp_path, "model.safetensors was sent 5 times and is not whole; run again")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_with_another_hash_is_refused_and_removed(hub: Hub, commit: str, tmp_path: Path, name: str) -> None:
    hub.altered.add(name)
    refused(tmp_path, rf"^{name} of org/tiny is not what 127.0.0.1:\d+ lists: .* it was removed: run again", revision=commit)
    assert not list(Path(constants.HF_HUB_CACHE).glob(f"*/*/*/{name}"))
    hub.altered.clear()
    fetch(tmp_path, revision=commit)


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_cache_is_found_and_mended_by_the_next_run(hub: Hub, commit: str, tmp_path: Path, damage: str) -> None:
    fetch(tmp_path, revision=commit)
    blob = cached("model.safetensors").resolve()
    content = blob.read_bytes()
    blob.unlink()  # results/ holds a link to it
    blob.write_bytes(content[:-1] if damage == "cut" else content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    refused(tmp_path / "b", "it was removed: run again", revision=commit)
    fetch(tmp_path / "b", revision=commit)


FAILURES = {
    "401": (("resolve", 401, ""), "refused org/tiny .status 401.: .* see https://huggingface.co/org/tiny, and set HF_TOKEN"),
    "403": (("resolve", 403, ""), "refused org/tiny .status 403.: .* see https://huggingface.co/org/tiny, and set HF_TOKEN"),
    "gated": (
        ("resolve", 401, "GatedRepo"),
        "gated: accept its conditions at https://huggingface.co/org/tiny and set HF_TOKEN",
    ),
    "gated 403": (
        ("resolve", 403, "GatedRepo"),
        "gated: accept its conditions at https://huggingface.co/org/tiny and set HF_TO",
    ),
    "401 listing": (("/api/", 401, ""), "refused org/tiny .status 401.: .* set HF_TOKEN"),
    "403 listing": (("/api/", 403, ""), "refused org/tiny .status 403.: .* set HF_TOKEN"),
    "404 file": (
        ("tokenizer.json", 404, "EntryNotFound"),
        "org/tiny lists 'tokenizer.json' at [0-9a-f]{40} and does not serve",
    ),
    "500": (("/api/", 500, ""), "answered org/tiny with status 500; run again later"),
    "503 file": (("resolve", 503, ""), "answered org/tiny with status 503; run again later"),
    "429": (("/api/", 429, ""), "answered org/tiny with status 429; run again later"),
    "no hub": (("/api/", 404, ""), "org/tiny or its revision 'main' was not found at 127.0.0.1"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_refusing_server_is_reported_in_one_sentence(
    hub: Hub, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_markerMARKER")
    failure, sentence = FAILURES[case]
    hub.fail.append(failure)
    assert "MARKER" not in refused(tmp_path, sentence)


def test_what_does_not_exist_is_named(hub: Hub, commit: str, tmp_path: Path) -> None:
    refused(tmp_path, r"org/tiny has no revision 'v9'; https://huggingface.co/org/tiny/commits/main lists", revision="v9")
    refused(tmp_path, "org/tiny has no revision '0000", revision="0" * 40)
    refused(tmp_path, r"org/none or its revision 'main' was not found at 127.0.0.1:\d+ \(status 404\)", hub="org/none")


def test_weights_on_another_host_are_followed_without_the_token(
    hub: Hub, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_markerMARKER")
    store = Hub(commits=hub.commits, names=hub.names)
    with serve(store):
        hub.elsewhere = store.url
        assert fetch(tmp_path, revision=commit)["verified"]
    assert store.downloaded() == {"model.safetensors"}
    assert all("MARKER" in headers["authorization"] for _, path, headers in hub.asked if path.startswith("/api/models"))
    assert not any("MARKER" in str(headers) for _, _, headers in store.asked)


def test_a_slow_server_is_waited_for_and_a_silent_one_is_not(
    hub: Hub, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 1)
    fast = functools.partial(Progress, every=1, clock=lambda: 40 * time.monotonic())  # an estimate takes five seconds
    monkeypatch.setattr("layerwise.models.hub_progress.Progress", fast)
    hub.pause = 0.05
    fetch(tmp_path, revision=commit)
    lines = [line for line in capsys.readouterr().err.splitlines() if "bytes of org/tiny" in line]
    assert any("s left" in line and "/" in line for line in lines)
    hub.pause = 1.5
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 1)
    monkeypatch.setattr("layerwise.models.hub._PAUSES", ())
    refused(tmp_path / "b", r"did not arrive from 127.0.0.1:\d+ \(ReadTimeout\): run again with a network", revision="main")


def test_the_token_is_in_no_record_log_or_message(
    hub: Hub, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_markerMARKER")
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "level", logging.DEBUG)
    hub.cut["model.safetensors"] = 1
    log = tmp_path / "log.txt"
    with rule_log(str(log), "download_model tiny"):
        fetch(tmp_path)
    hub.fail.append(("/api/", 403, "hf_markerMARKER"))
    with pytest.raises(SystemExit), rule_log(str(tmp_path / "second.txt"), "download_model tiny"):
        fetch(tmp_path)
    written = log.read_text("utf-8") + (tmp_path / "second.txt").read_text("utf-8") + "".join(capfd.readouterr())
    assert "warning: 'main'" in written
    assert "set HF_TOKEN" in written
    files = [path for path in (tmp_path / "models").rglob("*") if path.is_file()]
    assert files
    assert "MARKER" not in written + "".join(path.read_text("utf-8", "replace") for path in files)


def test_sharded_weights_come_with_the_shards_that_the_index_names(hub: Hub, tmp_path: Path) -> None:
    model = builders.model("llama")
    model.save_pretrained(tmp_path / "shards", max_shard_size="40KB")
    builders.tokenizer().save_pretrained(tmp_path / "shards")
    files = {file.name: file.read_bytes() for file in (tmp_path / "shards").iterdir()}
    shards = {name for name in files if name.endswith(".safetensors")}
    assert len(shards) > 1
    hub.add(NAME, files | {"model-old.safetensors": b"x", "consolidated.safetensors": b"x"}, "main")
    record = fetch(tmp_path)
    assert {name for name in record["files"] if name.endswith(".safetensors")} == shards
    assert record["parameters"] == sum(weight.numel() for weight in model.parameters())
    weights = LlamaModel.from_pretrained(tmp_path / "models" / "tiny" / "weights").state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())


def test_the_loader_decides_what_is_needed(hub: Hub, saved: dict[str, Path], tmp_path: Path) -> None:
    weights = (saved["llama"] / "model.safetensors").read_bytes()
    described = json.dumps({"model_cfg": {"embed_dim": 8, "vision_cfg": {"layers": 3, "width": 32}}}).encode()
    both = {"model.safetensors": weights, "open_clip_model.safetensors": weights, "open_clip_config.json": described}
    hub.add(NAME, both, "main")
    record = fetch(tmp_path, "open_clip")
    assert set(record["files"]) == {"open_clip_config.json", "open_clip_model.safetensors"}
    assert (record["architecture"], record["n_layers"], record["hidden_size"]) == ("open_clip", 3, 32)
    del both["open_clip_model.safetensors"]
    hub.add(NAME, both, "main")
    assert "model.safetensors" in fetch(tmp_path, "open_clip")["files"]
    timm = json.dumps({"architecture": "vit_tiny_patch16_224", "num_features": 192}).encode()
    hub.add(NAME, {"config.json": timm, "model.safetensors": weights}, "main")
    record = fetch(tmp_path, "timm")
    assert (record["architecture"], record["n_layers"], record["hidden_size"]) == ("vit_tiny_patch16_224", None, 192)
    refused(tmp_path / "b", "holds no model.safetensors or model.safetensors.index.json; give", "text", hub=add_empty(hub))


def add_empty(hub: Hub) -> str:
    hub.add("org/empty", {"config.json": b"{}"}, "main")
    return "org/empty"


def test_a_cache_that_cannot_be_written_is_named(
    hub: Hub, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(blocked / "cache"))
    refused(tmp_path, "cannot be stored in .*/file/cache .*; set HF_HOME to a folder that can be written")


def test_errors_are_model_errors(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        fetch(tmp_path)
