"""What could run code or lead out of its folder is refused in one sentence, and its canary does not sing."""

import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import download_model
import pytest
from huggingface_hub import constants
from layerwise.errors import ModelError
from layerwise.models.manifest import describe
from safetensors.torch import load_file, save_file

from tests import builders
from tests.hub_server import Hub

NAME = "org/evil"
CODE = "asks to run code of its own .{}.; layerwise never does that"


class Canary:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (open, (str(self.path), "w"))


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "the canary sang"


@pytest.fixture
def folder(saved: dict[str, Path], tmp_path: Path, canary: Path) -> Path:
    """A good model beside code that leaves the canary's mark when it is imported."""
    shutil.copytree(saved["llama"], tmp_path / "evil")
    for name in ("modeling_evil.py", "tokenization_evil.py", "pipeline_evil.py", "__init__.py"):
        (tmp_path / "evil" / name).write_text(f"open({str(canary)!r}, 'w')\n", "utf-8")
    return tmp_path / "evil"


def change(path: Path, **entries: Any) -> None:
    content = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(content | entries), "utf-8")


def refused(tmp_path: Path, source: dict[str, Any], sentence: str, canary: Path, loader: str = "text") -> None:
    manifest = tmp_path / "models" / "evil" / "manifest.json"
    with pytest.raises(ModelError, match=sentence) as caught:
        download_model.main(str(manifest), "evil", source, None, loader)
    assert "\n" not in str(caught.value)
    assert not canary.exists()
    assert not list(manifest.parent.iterdir())


MAP = {"AutoModel": "modeling_evil.Evil", "AutoTokenizer": ["tokenization_evil.Evil", None]}
CONFIGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "model": ("config.json", {"auto_map": MAP}, "auto_map"),
    "a part of the model": ("config.json", {"text_config": {"inner": {"auto_map": MAP}}}, "auto_map"),
    "in a list": ("config.json", {"parts": [1, [{"auto_map": MAP}]]}, "auto_map"),
    "empty": ("config.json", {"auto_map": {}}, "auto_map"),
    "tokenizer": ("tokenizer_config.json", {"auto_map": MAP}, "auto_map"),
    "image processor": ("preprocessor_config.json", {"auto_map": {"AutoImageProcessor": "a.B"}}, "auto_map"),
    "processor": ("processor_config.json", {"image_processor": {"auto_map": {"AutoProcessor": "a.B"}}}, "auto_map"),
    "internal attention": ("config.json", {"_attn_implementation_internal": "org/kernel"}, "_attn_implementation_internal"),
    "attention of a hub": ("config.json", {"_attn_implementation": "org/kernel:evil"}, "_attn_implementation"),
    "attention of a part": ("config.json", {"attn_implementation": {"text_config": "org/kernel"}}, "attn_implementation"),
    "nested adapter": ("adapter_2_config.json", {"auto_mapping": {"parent_library": "evil"}}, "parent_library"),
    "pipelines": ("config.json", {"custom_pipelines": {"x": {"impl": "pipeline_evil.X"}}}, "custom_pipelines"),
    "generation": ("generation_config.json", {"auto_map": MAP}, "auto_map"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_configuration_that_names_code_is_refused(folder: Path, tmp_path: Path, canary: Path, case: str) -> None:
    file, entries, key = CONFIGS[case]
    change(folder / file, **entries)
    refused(tmp_path, {"path": str(folder)}, f"{file} {CODE.format(repr(key))}", canary)


def test_plain_attention_is_no_code(folder: Path) -> None:
    (folder / "data_config.json").write_text('[{"name": "sentence-transformers write such lists"}]', "utf-8")
    change(folder / "config.json", attn_implementation="sdpa", _attn_implementation="eager", auto_mapping=None)
    assert describe(folder)["n_layers"] == builders.LAYERS


@pytest.mark.parametrize("case", ["model", "tokenizer", "internal attention"])
def test_the_hub_is_left_before_the_weights(hub: Hub, folder: Path, tmp_path: Path, canary: Path, case: str) -> None:
    file, entries, key = CONFIGS[case]
    change(folder / file, **entries)
    hub.add(NAME, folder, "main")
    refused(tmp_path, {"hub": NAME}, CODE.format(repr(key)), canary)
    assert "config.json" in hub.downloaded()
    assert not any(name.endswith((".safetensors", ".py")) for name in hub.downloaded())


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl"])
@pytest.mark.parametrize("where", ["path", "hub"])
def test_pickled_weights_are_refused_unread(
    hub: Hub, folder: Path, tmp_path: Path, canary: Path, name: str, where: str
) -> None:
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Canary(canary)))
    hub.add(NAME, folder, "main")
    source = {"hub": NAME} if where == "hub" else {"path": str(folder)}
    refused(tmp_path, source, rf"holds pickled weights only \({name}\), which can run code", canary)
    assert hub.downloaded() == set()


def test_a_pickle_in_the_cache_is_refused_offline(
    hub: Hub, folder: Path, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0" * 40
    snapshot = Path(constants.HF_HUB_CACHE) / "models--org--evil" / "snapshots" / commit
    shutil.copytree(folder, snapshot)
    (snapshot / "model.safetensors").rename(snapshot / "pytorch_model.bin")
    (snapshot / "pytorch_model.bin").write_bytes(pickle.dumps(Canary(canary)))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused(tmp_path, {"hub": NAME, "revision": commit}, "did not arrive", canary)


def shard(folder: Path, rename: Callable[[str], str] = str) -> dict[str, Path]:
    """Split the weights in two files; the index names them through ``rename``."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(tensors)}
    for file in sorted(set(places.values())):
        save_file({name: tensors[name] for name in tensors if places[name] == file}, folder / file, {"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: rename(file) for name, file in places.items()}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    return {file: folder / file for file in set(places.values())}


PATHS = ["../{}", "/etc/{}", "a/../../{}", "..\\{}", "C:\\{}", "sub/{}", ".{}", "{}\0"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("where", ["path", "hub"])
def test_a_shard_outside_the_folder_is_refused(
    hub: Hub, folder: Path, tmp_path: Path, canary: Path, path: str, where: str
) -> None:
    shard(folder, path.format)
    hub.add(NAME, folder, "main")
    source = {"hub": NAME} if where == "hub" else {"path": str(folder)}
    refused(tmp_path, source, "names the shard .*, no safetensors file of its folder; do not use this model", canary)
    assert not any(name.endswith(".safetensors") for name in hub.downloaded())


def test_a_hub_that_lists_a_path_is_not_followed(hub: Hub, folder: Path, tmp_path: Path) -> None:
    """The names are the server's: only plain ones of known kinds are ever asked for."""
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    outside = {"../../x.json": b"{}", "/tmp/x.json": b"{}", "..\\x.json": b"{}", ".x.json": b"{}", "a/b.json": b"{}"}
    hub.add(NAME, files | outside, "main")
    manifest = tmp_path / "models" / "m" / "manifest.json"
    download_model.main(str(manifest), "m", {"hub": NAME}, None, "text")
    assert hub.downloaded() == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


@pytest.mark.parametrize("where", ["path", "hub"])
def test_a_missing_shard_is_refused(hub: Hub, folder: Path, tmp_path: Path, canary: Path, where: str) -> None:
    shards = shard(folder)
    assert describe(folder)["parameters"] == sum(w.numel() for w in builders.model("llama").parameters())
    shards["model-00002-of-00002.safetensors"].unlink()
    hub.add(NAME, folder, "main")
    source = {"hub": NAME} if where == "hub" else {"path": str(folder)}
    refused(
        tmp_path, source, "lacks the shard 'model-00002-of-00002.safetensors' that (its )?model.safetensors.index", canary
    )


def test_an_index_that_names_an_absent_tensor_is_refused(folder: Path, tmp_path: Path, canary: Path) -> None:
    shards = shard(folder)
    file = shards["model-00001-of-00002.safetensors"]
    tensors = load_file(file)
    lost = sorted(tensors)[0]
    save_file({name: tensor for name, tensor in tensors.items() if name != lost}, file, {"format": "pt"})
    refused(tmp_path, {"path": str(folder)}, f"00001-of-00002.safetensors lacks '{lost}', which .* places there", canary)


@pytest.mark.parametrize(
    "content", ["{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}', '{"weight_map": ["a"]}', "[", ""]
)
def test_an_index_that_is_none_is_refused(folder: Path, tmp_path: Path, canary: Path, content: str) -> None:
    shard(folder)
    (folder / "model.safetensors.index.json").write_text(content, "utf-8")
    refused(
        tmp_path, {"path": str(folder)}, "maps no weights to shards|holds no readable model.safetensors.index.json", canary
    )


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def with_header(header: dict[str, Any], body: bytes) -> bytes:
    described = json.dumps(header).encode()
    return struct.pack("<Q", len(described)) + described + body


def spoiled(content: bytes, how: str) -> bytes:
    header, body = header_of(content)
    names = [name for name in header if name != "__metadata__"]
    if how == "overlap":
        header[names[1]]["data_offsets"] = header[names[0]]["data_offsets"]
    elif how == "beyond the end":
        header[names[-1]]["data_offsets"][1] += 4096
    elif how == "backwards":
        header[names[0]]["data_offsets"].reverse()
    elif how == "another shape":
        header[names[0]]["shape"] = [10**9, 10**9]
    elif how == "another type":
        header[names[0]]["dtype"] = "PICKLE"
    else:
        changed = {"header length": struct.pack("<Q", 2**60) + content[8:], "truncated": content[:-100], "empty": b""}
        return (changed | {"header cut": content[:40], "git lfs": b"version https://git-lfs.github.com/spec/v1\n"})[how]
    return with_header(header, body)


DAMAGES = ["overlap", "beyond the end", "backwards", "another shape", "another type"]
DAMAGES += ["header length", "truncated", "empty", "header cut", "git lfs"]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("where", ["path", "hub"])
def test_damaged_safetensors_are_refused(hub: Hub, folder: Path, tmp_path: Path, canary: Path, how: str, where: str) -> None:
    """Also from a hub that lists the damaged file with its right hash."""
    file = folder / "model.safetensors"
    file.write_bytes(spoiled(file.read_bytes(), how))
    hub.add(NAME, folder, "main")
    source = {"hub": NAME} if where == "hub" else {"path": str(folder)}
    refused(tmp_path, source, "model.safetensors cannot be loaded from .* it is damaged or cut short", canary)


def test_an_adapter_is_no_model(hub: Hub, folder: Path, tmp_path: Path, canary: Path) -> None:
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    hub.add(NAME, folder, "main")
    refused(tmp_path, {"path": str(folder)}, "is an adapter; give the model it was trained on, and this under", canary)
    refused(tmp_path, {"hub": NAME}, "holds an adapter, not a model; write the model it was trained on as 'hub'", canary)


@pytest.mark.parametrize("depth", [10**5])
def test_a_configuration_nested_beyond_reason_is_refused(folder: Path, tmp_path: Path, canary: Path, depth: int) -> None:
    (folder / "config.json").write_text('{"a":' * depth + "1" + "}" * depth)
    refused(tmp_path, {"path": str(folder)}, "holds no readable config.json", canary)
