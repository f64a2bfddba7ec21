"""Text views by surface noise: split words, substitute random characters, hit neighbouring keys.

The study's three operations in its order and with the defaults it ran with (PAPER 1.10): 30 % of the words, at least
one and at most ten per operation, words of four characters or more; within a word 30 % of its characters, one to ten.
They touch spelling and not meaning, and break words into more tokens: captions say so.
"""

import hashlib
import string
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

_SHARE, _MOST, _SHORTEST = 0.3, 10, 4
_CHARACTERS = string.ascii_letters + string.digits + "!@#$%^&*()_+"
_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")

WordNoise = Callable[[str, np.random.Generator], str]


def view_text(row: Mapping[Hashable, Any], view: int, seed: int, columns: list[str]) -> str:
    """Return view number ``view`` of ``row["text"]``; the same (seed, id, view) always gives the same text.

    ``columns`` is not used. A text without a word of four characters comes back as it is.
    """
    key = hashlib.sha256(f"{seed}\x1f{row['id']}\x1f{view}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(key, dtype=np.uint32))
    words = str(row["text"]).split()
    for noise in (_split, _substitute, _hit_neighbour):
        words = _apply(words, noise, rng)
    return " ".join(words)


def _apply(words: list[str], noise: WordNoise, rng: np.random.Generator) -> list[str]:
    long = [i for i, word in enumerate(words) if len(word) >= _SHORTEST]
    count = min(_count(len(words)), len(long))
    chosen = set(rng.choice(long, size=count, replace=False).tolist()) if count else set()
    changed = [noise(word, rng) if i in chosen else word for i, word in enumerate(words)]
    return " ".join(changed).split()


def _count(size: int) -> int:
    return min(max(int(_SHARE * size), 1), _MOST)


def _split(word: str, rng: np.random.Generator) -> str:
    cut = int(rng.integers(1, len(word)))
    return f"{word[:cut]} {word[cut:]}"


def _substitute(word: str, rng: np.random.Generator) -> str:
    letters = list(word)
    for position in rng.choice(len(word), size=min(_count(len(word)), len(word)), replace=False):
        letters[position] = str(rng.choice(list(_CHARACTERS)))
    return "".join(letters)


def _hit_neighbour(word: str, rng: np.random.Generator) -> str:
    letters = list(word)
    for position in rng.choice(len(word), size=min(_count(len(word)), len(word)), replace=False):
        neighbours = _NEIGHBOURS.get(word[position].lower())
        if neighbours:
            key = str(rng.choice(neighbours))
            letters[position] = key.upper() if word[position].isupper() else key
    return "".join(letters)


def _keyboard() -> dict[str, list[str]]:
    """Map each key to the keys around it on a QWERTY keyboard, whose rows are shifted by half a key."""
    places = {key: (row, column + row / 2) for row, keys in enumerate(_ROWS) for column, key in enumerate(keys)}
    return {
        key: [other for other, (r, c) in places.items() if other != key and abs(r - row) <= 1 and abs(c - column) <= 1]
        for key, (row, column) in places.items()
    }


_NEIGHBOURS = _keyboard()
