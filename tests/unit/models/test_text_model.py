"""Text models: what a sample's vector must not depend on, and what it must."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from layerwise.errors import ModelError
from layerwise.models.layered import Batch
from layerwise.models.text import TextModel, load
from transformers import LlamaConfig, LlamaModel

from tests import builders

LENGTHS = [1 + i * 7 % 23 for i in range(40)]


def load_tiny(folder: Path, **changes) -> TextModel:
    return load(folder, **({"name": "tiny", "dtype": "float32", "max_tokens": 32, "device": "cpu"} | changes))


def means(model: TextModel, frame: pd.DataFrame, batches: list[list[int]], spoil: str = "") -> np.ndarray:
    """Mean over real tokens, (rows, layers, width), by a loop of our own."""
    inputs = model.prepare(frame)
    result = np.full((len(frame), model.n_layers + 1, model.width), np.nan)
    for rows in batches:
        batch = inputs.batch(rows)
        if spoil == "attention":
            batch.inputs["attention_mask"] = torch.ones_like(batch.inputs["attention_mask"])
        mask = torch.ones_like(batch.masks["all"]) if spoil == "pool" else batch.masks["all"]

        def on_layer(layer: int, states: torch.Tensor, rows=rows, mask=mask) -> None:
            for i, row in enumerate(rows):
                result[row, layer] = states[i][mask[i]].double().mean(0).numpy()

        model.run(batch, on_layer)
    return result


def split(order: list[int], size: int) -> list[list[int]]:
    return [order[i : i + size] for i in range(0, len(order), size)]


def gap(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference, as a part of the largest value of each layer."""
    return float((np.abs(found - expected).max((0, 2)) / np.abs(expected).max((0, 2))).max())


@pytest.mark.parametrize("family", builders.FAMILIES)
def test_a_vector_does_not_depend_on_its_batch(saved: dict[str, Path], family: str) -> None:
    model, frame = load_tiny(saved[family]), builders.samples(LENGTHS)
    rows = list(range(len(frame)))
    alone = means(model, frame, split(rows, 1))
    shuffled = [int(i) for i in np.random.default_rng(0).permutation(rows)]
    for batches in (split(rows, 7), split(rows, 32), split(shuffled, 7)):
        assert gap(means(model, frame, batches), alone) <= 1e-5
    # The mask is what makes it so: without it the same comparison fails.
    spoil = "attention" if family in builders.ENCODERS else "pool"  # a causal model never looks at padding on the right
    assert gap(means(model, frame, split(rows, 32), spoil), alone) > 1e-2


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma3", "neox", "gpt2"])
def test_without_its_causal_mask_a_decoder_sees_the_whole_text(saved: dict[str, Path], family: str) -> None:
    frame = builders.samples([9, 4, 9, 7, 2])
    causal, both = load_tiny(saved[family]), load_tiny(saved[family], attention="bidirectional")
    changed = frame.assign(text=[text + " w1" for text in frame["text"]])
    for model, expected in ((causal, True), (both, False)):
        first = [layer_states(model, texts, 1)[:, :, 0] for texts in (frame, changed)]
        unmoved = torch.allclose(first[0][:, 1:], first[1][:, 1:], atol=1e-5)
        assert unmoved is expected  # does a later token move the first one's states?
    rows = list(range(len(frame)))
    assert gap(means(both, frame, [rows]), means(both, frame, split(rows, 1))) <= 1e-5
    assert both.facts["attention"] == "bidirectional"


def layer_states(model: TextModel, frame: pd.DataFrame, size: int) -> torch.Tensor:
    """(rows, layers, 2, width): states of the first two tokens."""
    inputs = model.prepare(frame)
    kept: list[list[torch.Tensor]] = []
    for row in range(0, len(frame), size):
        kept.append([])
        model.run(inputs.batch([row]), lambda _i, states: kept[-1].append(states[0, :2].clone()))
    return torch.stack([torch.stack(layers) for layers in kept])


def test_a_bidirectional_decoder_equals_attention_without_a_mask(saved: dict[str, Path]) -> None:
    """Against transformers' own switch, which goes another way: the configuration says that the model is not causal."""
    model, frame = load_tiny(saved["llama"], attention="bidirectional"), builders.samples([6, 9])
    config = LlamaConfig.from_pretrained(saved["llama"])
    config.is_causal = False
    reference = LlamaModel.from_pretrained(saved["llama"], config=config, attn_implementation="eager").eval()
    inputs = model.prepare(frame).batch([0, 1])
    with torch.inference_mode():
        theirs = reference(**inputs.inputs).last_hidden_state
    ours: list[torch.Tensor] = []
    model.run(inputs, lambda _i, states: ours.append(states.clone()))
    assert model.final_norm is not None
    with torch.inference_mode():
        real = inputs.masks["all"]
        torch.testing.assert_close(model.final_norm(ours[-1])[real], theirs[real], rtol=1e-5, atol=1e-5)


def test_a_model_without_an_attention_mask_cannot_be_made_bidirectional(saved: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match=r"'tiny' \(mamba\) has no attention mask to remove; write 'attention: model'"):
        load_tiny(saved["mamba"], attention="bidirectional")


def test_padding_cannot_leak_into_a_state_space(saved: dict[str, Path]) -> None:
    """Other ids in the padded places change nothing: the state runs left to right, and padding is on the right."""
    for family in ("mamba", "mamba2"):
        model = load_tiny(saved[family])
        batch = model.prepare(builders.samples([3, 20])).batch([0, 1])
        states = []
        for filler in (0, 17):
            batch.inputs["input_ids"][0, 3:] = filler
            found: list[torch.Tensor] = []
            model.run(batch, lambda _i, s, found=found: found.append(s[0, :3].clone()))
            states.append(torch.stack(found))
        torch.testing.assert_close(states[0], states[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", ["llama", "bert"])
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("asked", ["float32", "bfloat16", "float16"])
def test_the_dtype_asked_for_is_the_dtype_that_runs(tmp_path: Path, family: str, stored: torch.dtype, asked: str) -> None:
    model = load_tiny(builders.save(tmp_path / family, family, stored), dtype=asked)
    seen = set()
    model.run(model.prepare(builders.samples([3])).batch([0]), lambda _i, states: seen.add(states.dtype))
    assert seen == {getattr(torch, asked)} == {p.dtype for p in model.module.parameters()}


def test_tokens_and_padding_are_what_the_tokenizer_says(saved: dict[str, Path]) -> None:
    model = load_tiny(saved["bert"])
    inputs = model.prepare(pd.DataFrame({"text": ["w0 w1", "w3", "w4 nonsense w5"]}))
    assert inputs.lengths.tolist() == [4, 3, 5]
    batch = inputs.batch([2, 0])
    assert batch.inputs["input_ids"].tolist() == [[3, 9, 1, 10, 4], [3, 5, 6, 4, 0]]
    assert batch.masks["all"].tolist() == [[True] * 5, [True] * 4 + [False]]
    assert batch.masks["content"].tolist() == [[False, True, True, True, False], [False, True, True, False, False]]
    assert batch.inputs["attention_mask"].tolist() == [[1] * 5, [1, 1, 1, 1, 0]]


def test_padding_is_on_the_right_whatever_the_tokenizer_prefers(saved: dict[str, Path]) -> None:
    model = load_tiny(saved["llama"])
    model.tokenizer.padding_side = "left"
    assert model.prepare(builders.samples([4, 1])).batch([0, 1]).masks["all"][1].tolist() == [True, False, False, False]


def test_a_tokenizer_without_a_padding_token_serves(saved: dict[str, Path]) -> None:
    model = load_tiny(saved["neox"])
    expected = means(model, builders.samples([5, 2]), [[0, 1]])
    model.tokenizer = builders.tokenizer(pad=False)
    assert model.tokenizer.pad_token_id is None
    assert gap(means(model, builders.samples([5, 2]), [[0, 1]]), expected) <= 1e-6


def test_an_empty_text_becomes_one_special_token(saved: dict[str, Path]) -> None:
    inputs = load_tiny(saved["llama"]).prepare(pd.DataFrame({"text": ["", "w1 w2", "   "]}))
    assert inputs.lengths.tolist() == [1, 2, 1]
    batch = inputs.batch([0, 1])
    assert batch.inputs["input_ids"][0].tolist() == [2, 0]
    assert batch.masks["content"].tolist() == [[False, False], [True, True]]


def test_a_long_text_is_cut_with_its_special_tokens_kept(saved: dict[str, Path]) -> None:
    inputs = load_tiny(saved["bert"], max_tokens=6).prepare(
        pd.DataFrame({"text": ["w0 w1 w2 w3 w4 w5 w6 w7 w8", "w0 " * 300_000]})
    )
    assert inputs.lengths.tolist() == [6, 6]
    assert inputs.batch([0]).inputs["input_ids"].tolist() == [[3, 5, 6, 7, 8, 4]]


ODD = [
    "\x00",
    "a\x00b",
    "مرحبا بالعالم",
    "e\u0301\u0302\u0303",
    "👩‍👩‍👧‍👦",
    "\u2028",
    "\ufeff",
    "<eos>",
    "<pad> <pad>",
    "w1" * 5000,
]


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_odd_texts_give_finite_vectors(saved: dict[str, Path], family: str) -> None:
    found = means(load_tiny(saved[family]), pd.DataFrame({"text": ODD}), [list(range(len(ODD)))])
    assert np.isfinite(found).all()


def test_every_position_of_the_model_can_be_used(saved: dict[str, Path]) -> None:
    for family in builders.FAMILIES:
        model = load_tiny(saved[family], max_tokens=builders.POSITIONS)
        assert np.isfinite(means(model, builders.samples([builders.POSITIONS]), [[0]])).all()


def test_a_token_that_the_model_does_not_know_is_refused(saved: dict[str, Path]) -> None:
    model = load_tiny(saved["llama"])
    model.tokenizer.add_tokens(["new1", "new2", "new3", "new4", "new5"])
    assert model.prepare(pd.DataFrame({"text": ["new3"]})).ids == [[63]]  # the last row of the embedding
    with pytest.raises(ModelError, match="token 64 of 64 known ones"):
        model.prepare(pd.DataFrame({"text": ["w1", "w2 new4"]}))


def test_a_tokenizer_that_writes_nothing_is_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    """transformers 5 puts Qwen2's byte-level pipeline over the vocabulary of any tokenizer of a Qwen2 model."""
    shutil.copytree(saved["qwen2"], tmp_path / "m")
    config = tmp_path / "m" / "tokenizer_config.json"
    config.write_text(config.read_text("utf-8").replace("TokenizersBackend", "Qwen2Tokenizer"), "utf-8")
    model = load_tiny(tmp_path / "m")
    with pytest.raises(ModelError, match=r"tokenizer Qwen2Tokenizer writes no token for 2 of 2 texts"):
        model.prepare(builders.samples([3, 4]))


def test_a_batch_says_which_tokens_are_real(saved: dict[str, Path]) -> None:
    batch = load_tiny(saved["gpt2"]).prepare(builders.samples([3, 9, 1])).batch([2, 0, 1])
    assert isinstance(batch, Batch)
    assert batch.masks["all"].sum(1).tolist() == [1, 3, 9]
