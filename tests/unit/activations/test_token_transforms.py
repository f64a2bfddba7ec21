"""Transforms of tokens, and prefixes that share one pass, on real tiny models."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from layerwise.activations.extract import Request, extract
from layerwise.activations.passes import Passes, prefix_carriers
from layerwise.activations.token_transforms import prefix, random_tokens, repeat_tokens, transformed
from layerwise.data.conditions import make_conditions
from layerwise.errors import DataError, FileError, ModelError
from layerwise.models import text
from layerwise.samples import new_samples
from layerwise.store import Activations

from tests import builders

READOUTS = [
    {"name": "mean", "norm": "none", "tokens": "all", "pool": "mean"},
    {"name": "skip", "norm": "final", "tokens": "skip_first", "pool": "weighted_mean"},
]
VOCABULARY = np.arange(10, 90)


def conditions(levels: list[float], draws: int = 1) -> list[dict[str, float]]:
    return [{"level": level, "draw": draw} for level in levels for draw in range(draws)]


def copies(frame: pd.DataFrame, found: list[dict[str, float]]) -> pd.DataFrame:
    return new_samples(make_conditions(frame, found, 0, None))


def loaded(folder: Path, family: str, attention: str = "model", max_tokens: int = 40) -> text.TextModel:
    return text.load(builders.save(folder / family, family), family, "float32", max_tokens, "cpu", attention)


def run(path: Path, model: text.TextModel, frame: pd.DataFrame, transform: str, levels: list[float], draws: int = 1) -> None:
    found = conditions(levels, draws)
    facts = {"transform": transform, "seed": 3, "conditions": found}
    recipes = ["raw", "centre_unit"]
    request = Request("m", "r", "float32", "d", "x", READOUTS, recipes, {}, token_transform=facts, batch_tokens=64)
    extract(path, model, copies(frame, found), path.parent, request, lambda done, total: None)


def test_a_token_of_the_prompt_is_repeated_and_the_rest_stays() -> None:
    ids = np.arange(1000)
    rng = np.random.default_rng(0)
    made = repeat_tokens(ids, 0.25, VOCABULARY, rng)
    changed = made != ids
    assert len(set(made[changed])) == 1
    assert made[changed][0] in ids
    assert changed.mean() == pytest.approx(0.25, abs=0.05)
    assert len(set(repeat_tokens(ids, 1.0, VOCABULARY, rng))) == 1
    assert (repeat_tokens(ids, 0.0, VOCABULARY, rng) == ids).all()


def test_random_tokens_are_uniform_over_the_vocabulary() -> None:
    ids = np.full(80_000, 5)
    made = random_tokens(ids, 0.5, VOCABULARY, np.random.default_rng(1))
    changed = made[made != 5]
    assert len(changed) / len(ids) == pytest.approx(0.5, abs=0.01)
    counts = np.bincount(changed, minlength=90)[10:90]
    assert counts.min() > 350 and counts.max() < 650  # 500 expected


def test_levels_of_one_draw_are_nested_and_draws_differ() -> None:
    found = conditions([0.1, 0.5, 1.0], 2)
    frame = copies(new_samples(pd.DataFrame({"id": ["a", "b"], "text": "x"})), found)
    ids = [list(range(200, 300))] * len(frame)
    special = [[1] + [0] * 98 + [1]] * len(frame)
    facts = {"transform": "random_tokens", "seed": 0, "conditions": found, "dataset": "d"}
    made = [tokens for tokens, _ in transformed(ids, special, frame, facts, VOCABULARY, 100)]
    again = [tokens for tokens, _ in transformed(ids[::-1], special[::-1], frame[::-1], facts, VOCABULARY, 100)][::-1]
    assert made == again  # by id, not by order
    cells = [(source, c["level"], c["draw"]) for source in "ab" for c in found]
    rows = {cell: np.array(tokens) for cell, tokens in zip(cells, made, strict=True)}
    original = np.array(ids[0])
    for source in "ab":
        low, middle, full = (rows[source, level, 0] for level in (0.1, 0.5, 1.0))
        changed = low != original
        assert changed.any()
        assert (middle[changed] == low[changed]).all()
        assert (full[1:-1] != original[1:-1]).all()
        assert (full[[0, -1]] == original[[0, -1]]).all()  # special tokens stay
        assert (rows[source, 0.5, 0] != rows[source, 0.5, 1]).any()
    assert (rows["a", 1.0, 0] != rows["b", 1.0, 0]).any()


@pytest.mark.parametrize(
    ("ids", "special", "level", "expected"),
    [
        ([1, 2, 3, 4], [0, 0, 0, 0], 0.5, [1, 2]),
        ([1, 2, 3, 4], [0, 0, 0, 0], 0.01, [1]),
        ([1, 2, 3, 4], [0, 0, 0, 0], 1.0, [1, 2, 3, 4]),
        ([9, 2, 3, 4, 8], [1, 0, 0, 0, 1], 0.34, [9, 2, 8]),
        ([9, 2, 3, 4, 8], [1, 0, 0, 0, 1], 4, [9, 2, 3, 8]),
        ([9, 2, 3, 4], [1, 0, 0, 0], 2, [9, 2]),
        ([9], [1], 0.5, [9]),
    ],
)
def test_prefixes_lie_between_the_special_tokens(
    ids: list[int], special: list[int], level: float, expected: list[int]
) -> None:
    assert prefix(ids, special, level)[0] == expected


@pytest.mark.parametrize(
    ("special", "level", "words"), [([0, 0, 0], 4, "has 3 tokens, fewer"), ([1, 0, 1], 2, "none of its own")]
)
def test_a_prefix_that_does_not_fit_is_refused(special: list[int], level: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        prefix([1, 2, 3], special, level)


@pytest.mark.parametrize("family", ["neox", "mamba", "llama"])
def test_one_pass_gives_the_prefixes_of_a_causal_model(tmp_path: Path, family: str) -> None:
    """Equal to a pass of their own, in batches, for every layer, readout and token statistic."""
    model = loaded(tmp_path, family)
    assert model.causal
    frame = builders.samples([38, 3, 17, 29, 5])
    levels = [0.2, 0.5, 0.8, 1.0]
    calls = []
    forward = model._forward
    model._forward = lambda batch: (calls.append(batch.masks["all"].sum().item()), forward(batch))[1]  # type: ignore[method-assign]
    run(tmp_path / "one.h5", model, frame, "prefixes", levels)
    once, calls[:] = sum(calls), []
    model.__dict__["causal"] = False
    run(tmp_path / "each.h5", model, frame, "prefixes", levels)
    with Activations(tmp_path / "one.h5") as one, Activations(tmp_path / "each.h5") as each:
        full = one.under(3).n_tokens.sum()
        assert once == full < sum(calls)
        assert (one.n_tokens == each.n_tokens).all()
        assert all((a == b).all() for a, b in zip(one.input_ids(), each.input_ids(), strict=True))
        for layer in one.layers:
            for name in ("mean", "skip"):
                expected = each.rows(name, layer)
                assert np.abs(one.rows(name, layer) - expected).max() <= 1e-5 * np.abs(expected).max()
            np.testing.assert_allclose(one.spectra("raw", layer), each.spectra("raw", layer), atol=1e-4)
            np.testing.assert_allclose(one.token_norms(layer), each.token_norms(layer), rtol=1e-4)


@pytest.mark.parametrize(("family", "attention"), [("bert", "model"), ("llama", "bidirectional")])
def test_a_model_that_looks_ahead_runs_every_prefix(tmp_path: Path, family: str, attention: str) -> None:
    model = loaded(tmp_path, family, attention)
    assert not model.causal
    frame = builders.samples([20, 30])
    run(tmp_path / "p.h5", model, frame, "prefixes", [0.5, 1.0])
    with Activations(tmp_path / "p.h5") as store:
        half = store.under(0)
        ids = [store.input_ids()[row] for row in (0, 2)]
        rows = [list(map(int, row)) for row in ids]
        alone = text.TextInputs(rows, [[0] * len(row) for row in rows], 0, torch.device("cpu")).batch([0, 1])
        states = []
        model.run(alone, lambda layer, found: states.append(found))
        expected = states[-1][0, : len(ids[0])].mean(0).numpy()
        np.testing.assert_allclose(half.pooled("mean", store.n_layers)[0], expected, rtol=1e-4, atol=1e-5)


def test_readers_see_one_condition(tmp_path: Path) -> None:
    model = loaded(tmp_path, "neox")
    run(tmp_path / "r.h5", model, builders.samples([12, 20, 7]), "random_tokens", [0, 0.5], draws=2)
    with Activations(tmp_path / "r.h5") as store:
        assert store.conditions == conditions([0, 0.5], 2)
        parts = [store.under(number) for number in range(4)]
        assert parts[2].ids == [name for name in store.ids if name.endswith("~2")]
        for layer in store.layers:
            rows = store.rows("mean", layer)
            for number, part in enumerate(parts):
                assert (part.pooled("mean", layer) == rows[number::4]).all()
                assert (part.angles("raw", layer) == store.angles("raw", layer)[number::4]).all()
                spectra = store.spectra("raw", layer)[number::4]
                assert (part.spectra("raw", layer) == spectra[:, : part.spectra("raw", layer).shape[1]]).all()
        assert (parts[0].pooled("mean", 2) == parts[1].pooled("mean", 2)).all()  # p = 0 changes nothing, whatever the draw
        assert (parts[2].pooled("mean", 2) != parts[3].pooled("mean", 2)).any()
        with pytest.raises(FileError, match="none is number 4"):
            store.under(4)


def test_random_prompts_have_their_length_and_no_special_token(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    run(tmp_path / "r.h5", model, builders.samples([5, 6]), "random_prompts", [8, 32], draws=1)
    with Activations(tmp_path / "r.h5") as store:
        assert store.n_tokens.tolist() == [8, 32, 8, 32]
        ids = store.input_ids()
        assert not set(np.concatenate(ids)) & set(model.tokenizer.all_special_ids)
        assert (ids[0] == ids[1][:8]).all()


def test_prompts_longer_than_the_model_reads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="prompts of 64 tokens are asked for, the model reads 40; write 'max_tokens: 64'"):
        run(tmp_path / "r.h5", loaded(tmp_path, "neox"), builders.samples([5]), "random_prompts", [8, 64])


def test_a_prefix_longer_than_the_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dataset 'd': sample '.*~1' has 5 tokens, fewer than the prefix of 30"):
        run(tmp_path / "r.h5", loaded(tmp_path, "neox"), builders.samples([35, 5]), "prefixes", [4, 30])
    assert not (tmp_path / "r.h5").exists()


def test_pictures_have_no_tokens_to_change(tmp_path: Path) -> None:
    class Pictures:
        max_tokens = 0

        def prepare(self, samples: pd.DataFrame, folder: Path) -> object:
            return object()

    with pytest.raises(ModelError, match="changes tokens, model 'm' reads none"):
        run(tmp_path / "r.h5", Pictures(), builders.samples([5]), "repeat_tokens", [0.5])  # type: ignore[arg-type]


def test_carriers_are_the_longest_rows_that_begin_alike() -> None:
    ids = [[1, 2, 3], [1, 2], [1, 9], [1, 2], [4]]
    carrier = prefix_carriers(ids, ["a", "a", "a", "b", "b"])
    assert carrier.tolist() == [0, 0, 2, 3, 4]
    passes = Passes(np.array([3, 2, 2, 2, 1]), carrier)
    assert passes.needed(range(5)) == [0, 2, 3, 4]
    assert passes.carried([0, 2]) == 3
    masks = {"all": torch.tensor([[True, True, False], [True, True, True]])}
    parts = passes.parts([2, 0], masks)
    assert [part.rows for part in parts] == [[2, 0], [1]]
    assert parts[1].masks["all"].tolist() == [[True, True]]
    states = torch.arange(6.0).reshape(2, 3, 1)
    assert parts[1].of(states).flatten().tolist() == [3.0, 4.0]
    assert parts[0].of(states) is states
