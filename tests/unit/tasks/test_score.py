"""Scores of the four types against a direct computation, and baselines."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from layerwise.tasks import text_task
from layerwise.tasks.encoder import text_key
from layerwise.tasks.score import ITEM_KINDS, gold, score
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, v_measure_score

from tests.task_builders import TYPES, encoder, rows, texts_of


def baselines(files) -> list[dict]:
    return text_task.baselines(files, pd.DataFrame({"text": texts_of(files)}), Path())


def noise(text: str, width: int = 8) -> np.ndarray:
    return np.random.default_rng(int(text_key(text)[:8], 16)).standard_normal(width)


def number(text: str) -> int:
    return int(text.split()[-1])


def planted(text: str, signal: float = 6.0) -> np.ndarray:
    """A vector that shows the class of a text: its number modulo three."""
    return noise(text) + signal * np.eye(8)[number(text) % 3]


def cosines(files, stored) -> np.ndarray:
    pairs = [(stored.vectors[stored.find([a])[0]], stored.vectors[stored.find([b])[0]]) for a, b in
             zip(files.dataset["test"]["sentence1"], files.dataset["test"]["sentence2"], strict=True)]  # fmt: skip
    return np.array([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs])


def near(text: str) -> np.ndarray:
    """Two texts of one number are the closer the larger it is."""
    shared = np.random.default_rng(number(text)).standard_normal(8)
    return shared * (number(text) / 20) + noise(text)


def test_sts_is_the_spearman_of_cosine_and_judgement(make) -> None:
    files = make("sts")
    stored = encoder(files, near)
    found = score(files, stored)
    expected = spearmanr(cosines(files, stored), files.dataset["test"]["score"]).statistic
    assert found.scores == {"mteb": pytest.approx(expected, abs=1e-6)}
    assert 0.2 < expected < 0.99
    np.testing.assert_allclose(found.items, cosines(files, stored), atol=1e-6)
    assert gold(files) == list(files.dataset["test"]["score"])


def test_pair_classification_is_the_average_precision(make) -> None:
    files = make("pair_classification")

    def unit(text: str) -> np.ndarray:
        shared = np.random.default_rng(number(text)).standard_normal(8) if number(text) % 2 else 0
        made = noise(text) + 0.8 * shared
        return made / np.linalg.norm(made)  # every similarity then orders pairs as the cosine does

    stored = encoder(files, unit)
    found = score(files, stored)
    expected = average_precision_score(files.dataset["test"]["labels"], cosines(files, stored))
    assert found.scores == {"mteb": pytest.approx(expected, abs=2e-2)}  # max over cosine, dot, manhattan, euclidean
    assert found.scores["mteb"] >= expected - 1e-9
    assert 0.55 < expected < 0.999
    np.testing.assert_allclose(found.items, cosines(files, stored), atol=1e-6)


def test_clustering_is_the_v_measure(make) -> None:
    files = make("clustering")
    perfect = score(files, encoder(files, planted))
    assert perfect.scores == {"mteb": pytest.approx(1.0), "standardised": pytest.approx(1.0)}
    blurred = score(files, encoder(files, lambda text: planted(text, 1.5)))
    assert blurred.scores["standardised"] == pytest.approx(v_measure_score(gold(files), blurred.items))
    assert 0.02 < blurred.scores["mteb"] < 0.9
    assert abs(blurred.scores["mteb"] - blurred.scores["standardised"]) < 0.25  # two k-means of the same vectors


def test_classification_is_the_accuracy(make) -> None:
    files = make("classification")
    assert score(files, encoder(files, planted)).scores == {"mteb": 1.0, "standardised": 1.0}
    found = score(files, encoder(files, noise))
    assert abs(found.scores["mteb"] - 1 / 3) < 0.2
    assert found.scores["standardised"] == pytest.approx(np.mean(found.items))
    assert set(found.items) == {0.0, 1.0}
    assert len(found.items) == len(gold(files)) == 60


def test_cross_validation_has_an_item_for_every_row(make) -> None:
    files = make("classification", folds=4)
    found = score(files, encoder(files, planted))
    assert found.items == [1.0] * 120
    assert gold(files) == [*files.dataset["train"]["label"], *files.dataset["test"]["label"]]


def test_fits_that_do_not_converge_are_counted_and_not_shown(make) -> None:
    files = make("classification")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert score(files, encoder(files, lambda text: planted(text, 0.3) * np.logspace(-3, 5, 8))).n_not_converged > 0
        assert score(files, encoder(files, planted)).n_not_converged == 0


@pytest.mark.parametrize("kind", TYPES)
def test_a_score_is_the_same_twice_and_belongs_to_its_vectors(make, kind: str) -> None:
    files = make(kind)
    vector = near if kind in ("sts", "pair_classification") else lambda text: planted(text, 1.0)
    one, two = (score(files, encoder(files, vector)) for _ in range(2))
    assert one == two
    assert score(files, encoder(files, lambda text: noise(text + "x"))) != one
    assert len(one.items) == len(gold(files))
    assert ITEM_KINDS[kind] in ("correct", "cluster", "similarity")


@pytest.mark.parametrize("kind", TYPES)
def test_the_order_of_the_stored_vectors_does_not_matter(make, kind: str) -> None:
    files = make(kind)
    stored = encoder(files, near if kind == "sts" else planted)
    expected = score(files, stored)
    order = np.random.default_rng(0).permutation(len(stored.vectors))
    stored.vectors = stored.vectors[order]
    place = {int(old): new for new, old in enumerate(order)}
    stored.rows = {key: place[row] for key, row in stored.rows.items()}
    assert score(files, stored) == expected


@pytest.mark.parametrize("vector", [np.zeros(4), np.ones(4)], ids=["zero", "constant"])
@pytest.mark.parametrize("kind", TYPES)
def test_vectors_that_say_nothing_get_a_score_and_no_crash(make, kind: str, vector: np.ndarray) -> None:
    """A readout of the first token is such a vector where every text begins with the same one."""
    files = make(kind)
    found = score(files, encoder(files, lambda _text: vector))
    assert np.isfinite([*found.items, *found.scores.values()]).all()
    constant = {"classification": 1 / 3, "clustering": 0.0, "pair_classification": 0.5, "sts": 0.0}[kind]
    assert found.scores["mteb"] == pytest.approx(constant, abs=1e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_every_baseline_has_a_score_between_0_and_1(make, kind: str) -> None:
    files = make(kind)
    found = baselines(files)
    assert {entry["baseline"] for entry in found} == {"majority", "text_length", "tfidf"}
    for entry in found:
        assert np.isfinite(entry["score"])
        assert -1 <= entry["score"] <= 1
    protocols = {"mteb", "standardised"} if kind in ("classification", "clustering") else {"mteb"}
    assert {entry["protocol"] for entry in found if entry["baseline"] == "tfidf"} == protocols


def by_name(found: list[dict], protocol: str = "mteb") -> dict[str, float]:
    return {entry["baseline"]: entry["score"] for entry in found if entry["protocol"] == protocol}


def test_baselines_find_what_they_can_find(make) -> None:
    made = rows("classification")
    words = ["river", "stone", "cloud"]
    for frame in made.values():
        frame["text"] = [f"{words[label]} {text}" for label, text in zip(frame["label"], frame["text"], strict=True)]
    files = make("classification", made)
    found = by_name(baselines(files), "standardised")
    assert found["tfidf"] > 0.95
    assert found["text_length"] < 0.6
    for frame in made.values():
        frame["text"] = [f"{'xyzzy' * (1 + 4 * label)} {i}" for i, label in enumerate(frame["label"])]
    made["train"]["text"] = "t" + made["train"]["text"]
    files = make("classification", made)
    assert by_name(baselines(files), "standardised")["text_length"] > 0.95


def test_the_majority_is_the_score_of_a_constant_answer(make) -> None:
    made = rows("classification")
    made["train"]["label"] = [0] * 40 + [1] * 10 + [2] * 10
    made["test"]["label"] = [0] * 15 + [1] * 30 + [2] * 15
    files = make("classification", made)
    assert by_name(baselines(files))["majority"] == 0.25  # the label most common in train
    pairs = rows("pair_classification")
    pairs["test"]["labels"] = [1] * 15 + [0] * 45
    files = make("pair_classification", pairs)
    constant = average_precision_score(files.dataset["test"]["labels"], np.ones(60))
    assert by_name(baselines(files))["majority"] == constant == 0.25


def test_equal_texts_and_texts_without_words_are_no_crash(make) -> None:
    pairs = rows("sts")
    pairs["test"]["sentence2"] = pairs["test"]["sentence1"]
    files = make("sts", pairs)
    assert all(np.isfinite(entry["score"]) for entry in baselines(files))
