"""Text that a model writes: greedy, whatever shares its batch, and refused where it cannot."""

from pathlib import Path

import pytest
import torch
from layerwise.errors import ModelError
from layerwise.models.generation import Writer
from tokenizers import processors
from transformers import AutoModelForCausalLM

from tests import builders


def folder_of(path: Path, family: str = "llama", chat: str | None = None) -> Path:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(builders.FAMILIES[family])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)  # far from uniform, so that greedy choices do not hang on rounding
    model.generation_config.eos_token_id = 2
    model.save_pretrained(path)
    tokenizer = builders.tokenizer()
    tokenizer.chat_template = chat
    tokenizer.save_pretrained(path)
    return path


def writer(path: Path, **changes: str) -> Writer:
    return Writer(path, "w", changes.get("dtype", "float32"), "cpu")


def greedy(made: Writer, prompt: str, most: int) -> list[int]:
    """Token by token, without a cache, one prompt alone."""
    ids = made.tokenizer(prompt, return_tensors="pt")["input_ids"]
    start = ids.shape[1]
    for _ in range(most):
        with torch.inference_mode():
            token = made.module(input_ids=ids, use_cache=False).logits[0, -1].argmax()
        if int(token) == 2:
            break
        ids = torch.cat([ids, token[None, None]], dim=1)
    return ids[0, start:].tolist()


@pytest.mark.parametrize("family", ["llama", "neox"])
def test_it_is_greedy_whatever_shares_the_batch(tmp_path: Path, family: str) -> None:
    made = writer(folder_of(tmp_path, family))
    prompts = builders.texts([3, 12, 7, 1, 12])
    calls: list[tuple[int, int]] = []
    found = made.write(prompts, 10, 2, lambda done, total: calls.append((done, total)))
    assert calls == [(2, 5), (4, 5), (5, 5)]
    for prompt, written in zip(prompts, found, strict=True):
        expected = made.tokenizer.decode(greedy(made, prompt, 10), skip_special_tokens=True)
        assert written.text == prompt + expected
        assert written.text.startswith(prompt)
        assert written.n_tokens == len(made.tokenizer(written.text)["input_ids"])


def test_it_stops_where_the_model_ends(tmp_path: Path) -> None:
    made = writer(folder_of(tmp_path))
    ids = greedy(made, "w1 w2 w3", 10)
    whole = made.write(["w1 w2 w3"], 3, 1, lambda done, total: None)[0]
    assert (whole.finished, whole.text) == (False, "w1 w2 w3" + made.tokenizer.decode(ids[:3], skip_special_tokens=True))
    made.module.generation_config.eos_token_id = ids[2]
    cut = made.write(["w1 w2 w3", "w5 w6"], 10, 2, lambda done, total: None)[0]
    kept = ids[: ids.index(ids[2])]
    assert (cut.finished, cut.text) == (True, "w1 w2 w3" + made.tokenizer.decode(kept, skip_special_tokens=True))


def test_prompts_are_filled_and_chat_templates_used(tmp_path: Path) -> None:
    template = "{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}{% if add_generation_prompt %}>{% endif %}"
    made = writer(folder_of(tmp_path, chat=template))
    assert made.prompts(["a {b} %s"], "Q: {text} A:", False, "") == ["Q: a {b} %s A:"]
    assert made.prompts(["x"], "{text}?", True, "Think.") == ["[system] Think. [user] x? >"]
    assert made.prompts(["x"], "{text}?", True, "") == ["[user] x? >"]


def test_the_opening_token_of_a_chat_is_not_doubled(tmp_path: Path) -> None:
    """Llama 3's template writes it and its tokenizer adds it; SmolLM2's tokenizer adds none."""
    made = writer(folder_of(tmp_path, chat="<eos>{{ messages[0].content }}"))
    made.tokenizer.bos_token = "<eos>"
    assert made.prompts(["w1"], "{text}", True, "") == ["<eos>w1"]
    opened = made.tokenizer.backend_tokenizer
    opened.post_processor = processors.TemplateProcessing(single="<eos> $A", special_tokens=[("<eos>", 2)])
    assert made.prompts(["w1"], "{text}", True, "") == ["w1"]
    assert made.tokenizer("w1")["input_ids"].count(2) == 1


def test_a_missing_chat_template_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'w' has no chat template; write 'chat: false'\."):
        writer(folder_of(tmp_path)).prompts(["x"], "{text}", True, "")


def test_more_tokens_than_positions_are_refused(tmp_path: Path) -> None:
    made = writer(folder_of(tmp_path))
    with pytest.raises(ModelError, match=r"has 48 positions, a prompt of 40 tokens .* write 'max_new_tokens: 8' or fewer"):
        made.write(builders.texts([3, 40]), 20, 2, lambda done, total: None)


@pytest.mark.parametrize("family", ["bert", "neox"])
def test_a_model_without_its_head_is_refused(tmp_path: Path, family: str) -> None:
    builders.save(tmp_path, family)
    with pytest.raises(ModelError, match="model 'w' cannot write text"):
        writer(tmp_path)
