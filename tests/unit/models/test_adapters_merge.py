"""Adapters: W + scale B A by hand, in order, from a folder or the hub, and refused where they do not fit."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import download_model
import pytest
import torch
from huggingface_hub import constants
from layerwise.errors import ModelError
from layerwise.models import text
from layerwise.models.manifest import verified_weights
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification

from tests import builders
from tests.hub_server import Hub
from tests.unit.models.test_refusals import Canary

TARGETS = ["q_proj", "v_proj", "down_proj"]


def adapter(
    base: Path, folder: Path, kind: Any = AutoModel, seed: int = 1, **options: Any
) -> Path:  # a LoRA with weights that matter
    torch.manual_seed(seed)
    config = LoraConfig(**{"r": 2, "lora_alpha": 6, "target_modules": TARGETS} | options)
    model = get_peft_model(kind.from_pretrained(base), config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return folder


def merge(tmp_path: Path, base: Path, *adapters: dict[str, str] | Path) -> tuple[Path, dict[str, Any]]:
    entries = [{"path": str(entry)} if isinstance(entry, Path) else entry for entry in adapters]
    manifest = tmp_path / "models" / "merged" / "manifest.json"
    download_model.main(str(manifest), "merged", {"path": str(base), "adapters": entries}, None, "text")
    assert {path.name for path in manifest.parent.iterdir()} == {"manifest.json", "weights"}
    return verified_weights(manifest)


def refused(tmp_path: Path, base: Path, entry: dict[str, str] | Path, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as caught:
        merge(tmp_path, base, entry)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "models" / "merged").iterdir())


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def states(folder: Path) -> list[Tensor]:
    """All layers of three texts, as extraction reads them."""
    model, seen = text.load(folder, "tiny", "float32", 16, "cpu"), []
    inputs = model.prepare(builders.samples([5, 9, 7]))
    model.run(inputs.batch([0, 1, 2]), lambda _, states: seen.append(states.clone()))
    return seen


def by_hand(base: dict[str, Tensor], folder: Path, prefix: str, scale: float) -> dict[str, Tensor]:
    """The base with W + scale B A for each pair in the adapter's file, in float64."""
    tensors = load_file(folder / "adapter_model.safetensors")
    merged = {name: tensor.double() for name, tensor in base.items()}
    pairs = [key for key in tensors if key.endswith("lora_A.weight")]
    assert len(pairs) == builders.LAYERS * len(TARGETS)
    for key in pairs:
        a, b = tensors[key].double(), tensors[key.replace("lora_A", "lora_B")].double()
        name = key.removeprefix(f"base_model.model.{prefix}").replace("lora_A.weight", "weight")
        merged[name] = merged[name] + scale * b @ a
    return merged


@pytest.mark.parametrize(("kind", "prefix"), [(AutoModel, ""), (AutoModelForCausalLM, "model.")])
def test_the_merged_weights_are_those_by_hand(saved: dict[str, Path], tmp_path: Path, kind: Any, prefix: str) -> None:
    """LLM2Vec's adapters were trained on the decoder, most others with its head: their names differ."""
    base = saved["llama"]
    part = adapter(base, tmp_path / "lora", kind)
    assert f"base_model.model.{prefix}layers.0.self_attn.q_proj.lora_A.weight" in load_file(
        part / "adapter_model.safetensors"
    )
    folder, record = merge(tmp_path, base, part)
    expected = by_hand(weights(base), part, prefix, 6 / 2)
    assert set(weights(folder)) == set(expected)
    for name, tensor in weights(folder).items():
        torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-6, atol=1e-7)
    assert record["architecture"] == "LlamaModel"
    assert {"tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"} == set(record["files"])


def test_two_adapters_are_merged_in_order_and_recorded(saved: dict[str, Path], tmp_path: Path) -> None:
    """Merging is a sum, so the order shows where the second replaces a weight of the first."""
    base = saved["llama"]
    first = adapter(base, tmp_path / "mntp", modules_to_save=["embed_tokens"])
    second = adapter(base, tmp_path / "simcse", AutoModelForCausalLM, seed=2, r=4, lora_alpha=4, modules_to_save=["norm"])
    third = adapter(base, tmp_path / "supervised", seed=3, use_rslora=True, modules_to_save=["norm"])
    folder, record = merge(tmp_path, base, first, second, third)
    expected = by_hand(by_hand(by_hand(weights(base), first, "", 3), second, "model.", 1), third, "", 6 / 2**0.5)
    for part in (first, third):  # the norms of the second are replaced by those of the third
        stored = load_file(part / "adapter_model.safetensors")
        whole = {key.removeprefix("base_model.model."): stored[key].double() for key in stored if ".lora_" not in key}
        assert whole
        assert not any(torch.equal(tensor, weights(base)[name].double()) for name, tensor in whole.items())
        expected |= whole
    for name, tensor in weights(folder).items():
        torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-5, atol=1e-6)
    adapters = record["conversion"]["adapters"]
    assert [entry["path"] for entry in adapters] == [str(first), str(second), str(third)]
    assert all(len(sum_) == 64 for entry in adapters for sum_ in entry["files"].values())
    assert len({entry["files"]["adapter_model.safetensors"] for entry in adapters}) == 3
    other, _ = merge(tmp_path / "b", base, third, second, first)
    assert not torch.equal(weights(other)["norm.weight"], weights(folder)["norm.weight"])


@pytest.mark.parametrize(
    ("family", "more"), [("llama", {}), ("llama", {"use_dora": True}), ("gpt2", {}), ("neox", {}), ("bert", {})]
)
def test_the_states_are_those_of_the_unmerged_model(
    saved: dict[str, Path], tmp_path: Path, family: str, more: dict[str, bool]
) -> None:
    targets = {"gpt2": ["c_attn"], "neox": ["query_key_value"], "bert": ["query", "dense"]}.get(family, TARGETS)
    options = {"target_modules": targets, "fan_in_fan_out": family == "gpt2"} | more
    part = adapter(saved[family], tmp_path / "lora", **options)
    merged, _ = merge(tmp_path, saved[family], part)
    module = PeftModel.from_pretrained(AutoModel.from_pretrained(saved[family]), part).eval()
    seen: list[Tensor] = []
    blocks: Any = next(m for name, m in module.named_modules() if isinstance(m, nn.ModuleList))
    for block in blocks:
        block.register_forward_hook(lambda _m, _i, out: seen.append(out[0] if isinstance(out, tuple) else out))
    model = text.load(merged, "tiny", "float32", 16, "cpu")
    batch = model.prepare(builders.samples([5, 9, 7])).batch([0, 1, 2])
    with torch.inference_mode():
        module(**batch.inputs)
    found = states(merged)[1:]
    assert len(found) == len(seen) == builders.LAYERS
    plain = states(saved[family])[1:]
    mask = batch.masks["all"]
    for own, theirs, before in zip(found, seen, plain, strict=True):
        torch.testing.assert_close(own[mask], theirs[mask], rtol=1e-4, atol=1e-4)
        assert not torch.allclose(own[mask], before[mask], rtol=1e-2, atol=1e-2)


def test_a_classifier_beside_the_adapter_is_left_out(saved: dict[str, Path], tmp_path: Path) -> None:
    part = adapter(
        saved["bert"], tmp_path / "lora", AutoModelForSequenceClassification, task_type="SEQ_CLS", target_modules=["query"]
    )
    assert any("classifier" in key for key in load_file(part / "adapter_model.safetensors"))
    folder, _ = merge(tmp_path, saved["bert"], part)
    assert not torch.equal(states(folder)[-1], states(saved["bert"])[-1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dtype_of_the_base_is_kept(tmp_path: Path, saved: dict[str, Path], dtype: torch.dtype) -> None:
    base = builders.save(tmp_path / "base", "llama", dtype)
    part = adapter(saved["llama"], tmp_path / "lora")
    folder, record = merge(tmp_path, base, part)
    expected = by_hand(weights(base), part, "", 3)
    assert record["conversion"]["stored_dtype"] == str(dtype).removeprefix("torch.")
    for name, tensor in weights(folder).items():
        assert tensor.dtype == dtype
        torch.testing.assert_close(
            tensor, expected[name].float().to(dtype), rtol=1e-2 if dtype != torch.float32 else 1e-6, atol=1e-6
        )


def test_model_and_adapters_of_the_hub(hub: Hub, saved: dict[str, Path], tmp_path: Path) -> None:
    base = hub.add("org/base", saved["llama"], "main")
    part = adapter(saved["llama"], tmp_path / "lora")
    (part / "tokenizer.json").write_text("{}")
    (part / "training_args.bin").write_bytes(b"x")
    config = json.loads((part / "config.json").read_text()) if (part / "config.json").is_file() else {}
    (part / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "modeling_llm2vec.Bi"}}))
    tuned = hub.add("org/mntp", part, "main")
    source = {"hub": "org/base", "revision": base, "adapters": [{"hub": "org/mntp"}, {"path": str(part)}]}
    manifest = tmp_path / "models" / "m" / "manifest.json"
    download_model.main(str(manifest), "m", source, None, "text")
    folder, record = verified_weights(manifest)
    first, second = record["conversion"]["adapters"]
    assert (record["revision"], first["revision"], first["requested_revision"]) == (base, tuned, "main")
    assert (second["path"], first["files"]) == (str(part), second["files"])
    asked = {path for path in hub.paths("GET") if "org/mntp" in path and "resolve" in path}
    assert {path.rsplit("/", 1)[1] for path in asked} == {"adapter_config.json", "adapter_model.safetensors"}
    local, _ = merge(tmp_path, saved["llama"], part, part)
    assert all(torch.equal(tensor, weights(folder)[name]) for name, tensor in weights(local).items())


def test_pinned_parts_in_the_cache_need_no_request(
    hub: Hub, saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, part = hub.add("org/base", saved["llama"]), hub.add("org/mntp", adapter(saved["llama"], tmp_path / "lora"))
    source = {"hub": "org/base", "revision": base, "adapters": [{"hub": "org/mntp", "revision": part}]}
    download_model.main(str(tmp_path / "a" / "manifest.json"), "m", source, None, "text")
    hub.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    download_model.main(str(tmp_path / "b" / "manifest.json"), "m", source, None, "text")
    assert hub.asked == []
    digests = [json.loads((tmp_path / run / "manifest.json").read_text())["digest"] for run in "ab"]
    assert digests[0] == digests[1]


def change(part: Path, **entries: Any) -> None:
    path = part / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | entries), "utf-8")


def rewrite(part: Path, tensors: dict[str, Tensor]) -> None:
    save_file(tensors, part / "adapter_model.safetensors", {"format": "pt"})


FIT = "adapter '.*' does not fit the model"


def test_an_adapter_that_does_not_fit_is_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    base, whole = saved["llama"], adapter(saved["llama"], tmp_path / "whole")
    tensors = load_file(whole / "adapter_model.safetensors")
    key = "base_model.model.layers.1.mlp.down_proj.lora_B.weight"
    cases: dict[str, tuple[dict[str, Tensor], dict[str, Any], str]] = {
        "missing": ({k: v for k, v in tensors.items() if k != key}, {}, r"\(it lacks 'base_model.*1.mlp.down_proj.lora_B"),
        "missing layer": (
            {k: v for k, v in tensors.items() if "layers.2" not in k},
            {},
            r"\(it lacks 'base_model.*layers.2",
        ),
        "unexpected": (
            tensors | {key.replace("down", "up"): tensors[key].clone()},
            {},
            r"up_proj.lora_B.* has no place in the model",
        ),
        "another depth": ({k.replace("layers.2", "layers.9"): v for k, v in tensors.items()}, {}, "layers.2|layers.9"),
        "shape": (tensors | {key: torch.zeros(3, 2)}, {}, "size mismatch"),
        "rank": (tensors, {"r": 4}, "size mismatch"),
        "target absent": (tensors, {"target_modules": ["no_such_proj"]}, "no_such_proj"),
        "another model": ({k.replace("layers", "blocks"): v for k, v in tensors.items()}, {}, "it has no 'blocks.0"),
        "nothing": ({}, {}, "it has no 'nothing'"),
        "not finite": (tensors | {key: torch.full_like(tensors[key], torch.nan)}, {}, "NaNs"),
    }
    for case, (content, config, sentence) in cases.items():
        part = tmp_path / case
        shutil.copytree(whole, part)
        change(part, **config)
        rewrite(part, content)
        refused(tmp_path, base, part, f"{FIT}.*(?:{sentence})")


def test_what_is_no_plain_lora_is_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    base, whole = saved["llama"], adapter(saved["llama"], tmp_path / "whole")
    cases = {
        "IA3": ({"peft_type": "IA3"}, "is of type 'IA3'; only 'LORA' can be merged here"),
        "no type": ({"peft_type": None}, "is of type None"),
        "megatron": ({"megatron_config": {"a": 1}}, "sets 'megatron_config', which cannot be merged here"),
        "tokens": ({"alora_invocation_tokens": [1]}, "sets 'alora_invocation_tokens'"),
        "unknown": ({"invented_tomorrow": True}, "sets 'invented_tomorrow'"),
        "start": ({"init_lora_weights": "pissa"}, "sets 'init_lora_weights'"),
        "code": (
            {"auto_mapping": {"parent_library": "evil_package.models"}},
            "asks to run code of its own .'parent_library'",
        ),
        "auto_map": ({"auto_map": {"AutoModel": "a.B"}}, "asks to run code of its own"),
    }
    for case, (config, sentence) in cases.items():
        part = tmp_path / case
        shutil.copytree(whole, part)
        change(part, **config)
        refused(tmp_path, base, part, sentence)
    real = get_peft_model(AutoModel.from_pretrained(base), IA3Config(target_modules=["k_proj"], feedforward_modules=[]))
    real.save_pretrained(tmp_path / "ia3")
    refused(tmp_path, base, tmp_path / "ia3", "is of type 'IA3'")


def test_the_class_an_adapter_was_trained_on_is_not_imported(
    saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLM2Vec's adapters name their package, which is not needed; one that names it gets no code run either."""
    canary = tmp_path / "canary"
    (tmp_path / "site" / "llm2vec").mkdir(parents=True)
    (tmp_path / "site" / "llm2vec" / "__init__.py").write_text(f"open({str(canary)!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    part = adapter(saved["llama"], tmp_path / "lora")
    change(part, auto_mapping={"base_model_class": "LlamaBiModel", "parent_library": "llm2vec.models.bidirectional_llama"})
    merge(tmp_path, saved["llama"], part)
    assert not canary.exists()


def test_damaged_pickled_and_absent_adapters_are_refused(hub: Hub, saved: dict[str, Path], tmp_path: Path) -> None:
    base, canary = saved["llama"], tmp_path / "canary"
    part = adapter(base, tmp_path / "lora")
    refused(tmp_path, base, tmp_path / "none", "adapter folder '.*none' does not exist")
    file = part / "adapter_model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-10])
    refused(tmp_path, base, part, "adapter_model.safetensors cannot be loaded from")
    file.unlink()
    refused(tmp_path, base, part, "adapter '.*lora' holds no adapter_model.safetensors")
    (part / "adapter_model.bin").write_bytes(pickle.dumps(Canary(canary)))
    refused(tmp_path, base, part, "holds pickled weights only .adapter_model.bin., which can run code")
    hub.add("org/pickled", part, "main")
    refused(tmp_path, base, {"hub": "org/pickled"}, "org/pickled at .* holds pickled weights only .adapter_model.bin.")
    assert not canary.exists()
    file.write_bytes(content)
    (part / "adapter_config.json").unlink()
    refused(tmp_path, base, part, "holds no adapter_config.json")


def test_an_adapter_that_the_hub_does_not_give_is_refused(
    hub: Hub, saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    hub.add("org/mntp", adapter(saved["llama"], tmp_path / "lora"), "main")
    entry = {"hub": "org/mntp", "revision": "v2"}
    refused(tmp_path, saved["llama"], entry, "org/mntp has no revision 'v2'; https://huggingface.co/org/mntp/commits/main")
    hub.fail.append(("org/mntp", 401, "GatedRepo"))
    gated = "org/mntp is gated: accept its conditions at https://huggingface.co/org/mntp and set HF_TOKEN"
    refused(tmp_path, saved["llama"], {"hub": "org/mntp"}, gated)
