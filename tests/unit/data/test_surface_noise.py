"""Views by surface noise: seeded by seed, id and view, within the study's caps (PAPER 1.10)."""

import re
import string

import numpy as np
import pytest
from layerwise.data.surface_noise import _NEIGHBOURS, _hit_neighbour, _split, _substitute, view_text

TEXT = "The quick brown foxes jumped over three sleeping dogs near that quiet river while children watched them carefully"
ALLOWED = set(string.ascii_letters + string.digits + "!@#$%^&*()_+")


def view(text: str = TEXT, identifier: str = "a", number: int = 0, seed: int = 0) -> str:
    return view_text({"id": identifier, "text": text}, number, seed, [])


def test_a_view_depends_on_seed_id_and_number_alone() -> None:
    assert view() == view()
    assert len({view(), view(number=1), view(identifier="b"), view(seed=1)}) == 4
    assert view(identifier="1", number=11) != view(identifier="11", number=1)
    np.random.default_rng(0).random(100)  # no shared state
    assert view(number=1) == view(number=1)


def test_a_view_reads_like_its_text() -> None:
    changed = [view(number=number) for number in range(20)]
    assert all(one != TEXT for one in changed)
    for one in changed:
        kept = set(TEXT.split()) & set(one.split())
        assert len(kept) >= 3
        assert set(one) <= ALLOWED | {" "}
        assert one == " ".join(one.split())


def test_each_operation_touches_at_most_ten_words_however_long_the_text() -> None:
    words = [f"{a}{b}xyzvwk" for a in string.ascii_lowercase for b in string.ascii_lowercase]  # 676 words, each once
    for number in range(5):
        found = view(" ".join(words), number=number).split()
        assert len(found) == len(words) + 10  # ten of them split in two
        assert 10 <= len(set(words) - set(found)) <= 30


@pytest.mark.parametrize(("n_words", "touched"), [(1, 1), (3, 1), (7, 2), (10, 3), (33, 9), (34, 10), (100, 10)])
def test_three_in_ten_words_are_split_at_least_one_at_most_ten(n_words: int, touched: int) -> None:
    found = view(" ".join(["abcdefgh"] * n_words)).split()
    assert len(found) == n_words + touched


def test_short_words_stay_as_they_are() -> None:
    short = "a an the to of it is he she we you and or"
    assert view(short) == short
    found = view(f"{short} extraordinary {short}").split()
    for word in short.split():
        assert found.count(word) >= 2


def test_a_text_without_long_words_is_kept_whole() -> None:
    for text in ("x", "to be or not to be", "是 的"):
        assert view(text) == text
    assert view("a  b\n c") == "a b c"


@pytest.mark.parametrize(
    "text",
    [
        "مرحبا بالعالم الجميل",
        "дорогие друзья",
        "\uff21\uff22\uff23\uff24",
        "x\x00y\x00zz",
        "👩‍👩‍👧‍👦 👩‍👩‍👧‍👦",
        "ééééé ööööö",
        "word " * 3000,
    ],
)
def test_any_text_gives_a_text(text: str) -> None:
    found = [view(text, number=number) for number in range(8)]
    assert all(one.strip() for one in found)
    assert len(set(found)) > 1


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_splitting_moves_no_character() -> None:
    for seed in range(50):
        one = _split("abcd", rng(seed))
        assert one.replace(" ", "") == "abcd"
        assert re.fullmatch(r"\w+ \w+", one)
    assert {_split("abcd", rng(seed)) for seed in range(50)} == {"a bcd", "ab cd", "abc d"}


@pytest.mark.parametrize("noise", [_substitute, _hit_neighbour])
@pytest.mark.parametrize(("length", "most"), [(4, 1), (7, 2), (10, 3), (33, 9), (60, 10)])
def test_three_in_ten_characters_change_at_least_one_at_most_ten(noise, length: int, most: int) -> None:
    word = ("qwertyuiop" * 6)[:length]
    counts = []
    for seed in range(40):
        one = noise(word, rng(seed))
        assert len(one) == length
        assert set(one) <= ALLOWED
        counts.append(sum(a != b for a, b in zip(word, one, strict=True)))
    assert max(counts) == most
    assert min(counts) >= most - 1  # a random character may be the same one


def test_a_neighbouring_key_is_hit_in_the_same_case() -> None:
    assert sorted(_NEIGHBOURS["g"]) == sorted("ftyhvb")
    assert sorted(_NEIGHBOURS["q"]) == sorted("12wa")
    assert all(key in _NEIGHBOURS[other] for key, others in _NEIGHBOURS.items() for other in others)
    for seed in range(20):
        assert re.fullmatch(r"[FTYHVB]GGG|G[FTYHVB]GG|GG[FTYHVB]G|GGG[FTYHVB]", _hit_neighbour("GGGG", rng(seed)))
    assert _hit_neighbour("是是是是", rng(0)) == "是是是是"


def test_noise_breaks_words_into_more_tokens() -> None:
    """Why captions say that these views change spelling: a vocabulary of whole words no longer knows them."""
    known = set(TEXT.lower().split())
    unknown = np.mean([[word.lower() not in known for word in view(number=n).split()].count(True) for n in range(50)])
    longer = np.mean([len(view(number=n).split()) for n in range(50)]) / len(TEXT.split())
    assert unknown > 5
    assert longer > 1.2
