"""A text model cut at a layer and opened by sentence-transformers gives the vectors of the study."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from layerwise.errors import ModelError
from safetensors import safe_open
from sentence_transformers import SentenceTransformer

from tests import builders
from tests.unit.export.conftest import Bench, largest_difference

OTHER_TOKENIZER = "qwen2"  # transformers replaces the generic tokenizer of a folder of this type
FAMILIES = [family for family in builders.FAMILIES if family != OTHER_TOKENIZER]


def encode(bench: Bench) -> torch.Tensor:
    model = SentenceTransformer(str(bench.model), device="cpu", local_files_only=True)
    return model.encode(bench.samples["text"].tolist(), batch_size=3, convert_to_tensor=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_its_vectors(text_bench: Callable[..., Bench], family: str) -> None:
    bench = text_bench(family)
    for layer, readout in ((2, "mean_normed"), (1, "weighted_mean"), (2, "mean")):
        manifest = bench.export(layer, readout)
        assert manifest["verified"]["difference"] <= 1e-5
        assert largest_difference(encode(bench), bench.stored(layer, readout)) <= 1e-5
        assert manifest["blocks"] in (layer, layer + 1)
        assert manifest["parameters"]["after"] <= manifest["parameters"]["before"]


@pytest.mark.parametrize(
    "readout", ["mean", "mean_normed", "weighted_mean", "weighted_normed", "last_normed", "first_normed"]
)
def test_every_standard_pooling(text_bench: Callable[..., Bench], readout: str) -> None:
    bench = text_bench("llama")
    bench.export(2, readout)
    assert largest_difference(encode(bench), bench.stored(2, readout)) <= 1e-5


def test_a_decoder_without_its_causal_mask(text_bench: Callable[..., Bench]) -> None:
    bench = text_bench("llama", attention="bidirectional")
    causal = text_bench("llama")
    bench.export(2, "mean_normed")
    assert largest_difference(encode(bench), bench.stored(2, "mean_normed")) <= 1e-5
    (bench.target.parent / "stored.h5").unlink()
    assert largest_difference(encode(bench), causal.stored(2, "mean_normed")) > 1e-3


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_it_loads_in_the_dtype_it_was_made_in(text_bench: Callable[..., Bench], dtype: str) -> None:
    bench = text_bench("llama", dtype=dtype)
    manifest = bench.export(2, "mean_normed")
    model = SentenceTransformer(str(bench.model), device="cpu", local_files_only=True)
    assert {str(parameter.dtype) for parameter in model.parameters()} == {f"torch.{dtype}"}
    assert manifest["verified"]["difference"] <= manifest["verified"]["allowed"] < 0.05
    assert manifest["bytes"]["after"] < manifest["bytes"]["before"] / 2


def test_only_the_kept_blocks_are_written(text_bench: Callable[..., Bench]) -> None:
    bench = text_bench("gemma3")
    bench.export(2, "mean_normed")
    with safe_open(bench.model / "model.safetensors", "pt") as file:
        blocks = {int(found[1]) for name in file.keys() if (found := re.search(r"layers\.(\d+)\.", name))}  # noqa: SIM118
    assert blocks == {0, 1}
    config = json.loads((bench.model / "config.json").read_text())
    assert config["num_hidden_layers"] == len(config["layer_types"]) == 2
    assert not [path for path in bench.model.rglob("*") if path.suffix in (".bin", ".pt", ".pkl", ".py")]


def test_a_chat_template_stays_behind_and_long_texts_are_cut(text_bench: Callable[..., Bench]) -> None:
    bench = text_bench("llama")
    (bench.folder / "chat_template.jinja").write_text("{% for m in messages %}w1 {{ m['content'] }}{% endfor %}")
    bench.export(2, "mean_normed")
    assert not list(bench.model.glob("*.jinja"))
    assert not json.loads((bench.model / "tokenizer_config.json").read_text()).get("chat_template")
    model = SentenceTransformer(str(bench.model), device="cpu", local_files_only=True)
    assert model.max_seq_length == bench.entry["max_tokens"]
    assert largest_difference(encode(bench), bench.stored(2, "mean_normed")) <= 1e-5  # one text is longer than that


def test_a_tokenizer_that_transformers_replaces_is_refused(text_bench: Callable[..., Bench]) -> None:
    bench = text_bench(OTHER_TOKENIZER)
    with pytest.raises(
        ModelError, match="opens the tokenizer in this folder as a Qwen2Tokenizer, which splits texts otherwise"
    ):
        bench.export(2, "mean_normed")
    assert not bench.model.exists()


def test_raw_tokens_of_the_last_layer_have_no_standard_form(text_bench: Callable[..., Bench]) -> None:
    bench = text_bench("llama")
    with pytest.raises(ModelError, match=r"readout 'mean' at the last layer has no standard form.*'mean_normed'"):
        bench.export(3, "mean")
    assert bench.export(3, "mean_normed")["blocks"] == 3
    (bench.target.parent / "stored.h5").unlink()
    assert text_bench("bert").export(3, "mean")["blocks"] == 3  # it has no final norm


def test_the_card_says_what_it_is_and_its_code_runs(text_bench: Callable[..., Bench], monkeypatch) -> None:
    bench = text_bench("llama")
    manifest = bench.export(2, "mean")
    card = (bench.model / "README.md").read_text("utf-8")
    for part in ("layer 2 of 3 of tiny", "| topic | 90.0 | 80.0 |", "license: mit", "library_name: sentence-transformers",
                 f"{manifest['parameters']['after']:,}", "given in the configuration", "holds 3 blocks"):  # fmt: skip
        assert part in card, part
    place = bench.target.parent / "results" / "export" / "cut"
    place.parent.mkdir(parents=True)
    place.symlink_to(bench.target)
    monkeypatch.chdir(bench.target.parent)
    scope: dict[str, object] = {}
    exec(card.split("```python\n")[1].split("```")[0], scope)
    assert scope["vectors"].shape == (2, builders.WIDTH)


def test_files_of_the_folder_are_in_the_manifest(text_bench: Callable[..., Bench]) -> None:
    bench = text_bench("bert")
    manifest = bench.export(1, "mean_normed")
    there = {str(path.relative_to(bench.model)) for path in bench.model.rglob("*") if path.is_file()}
    assert set(manifest["files"]) == there
    assert {"modules.json", "1_Pooling/config.json", "README.md", "model.safetensors"} <= there
    assert [path.name for path in Path(bench.target).iterdir() if path.name.startswith(".")] == []
