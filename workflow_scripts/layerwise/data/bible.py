"""Verses of two public-domain Bible translations, aligned by verse, read from package files without importing them."""

import ast

import pandas as pd

from layerwise.data.source import Source
from layerwise.errors import DataError
from layerwise.packages import package_path, package_version

# Last book of each genre, in canonical order; Acts counts as history, Revelation as prophecy.
_GENRES = {
    5: "law",
    17: "history",
    22: "poetry",
    39: "prophecy",
    43: "gospel",
    44: "history",
    65: "epistle",
    66: "prophecy",
}
_BOOKS = (
    "Genesis Exodus Leviticus Numbers Deuteronomy Joshua Judges Ruth 1-Samuel 2-Samuel 1-Kings 2-Kings 1-Chronicles "
    "2-Chronicles Ezra Nehemiah Esther Job Psalms Proverbs Ecclesiastes Song-of-Songs Isaiah Jeremiah Lamentations Ezekiel "
    "Daniel Hosea Joel Amos Obadiah Jonah Micah Nahum Habakkuk Zephaniah Haggai Zechariah Malachi Matthew Mark Luke John "
    "Acts Romans 1-Corinthians 2-Corinthians Galatians Ephesians Philippians Colossians 1-Thessalonians 2-Thessalonians "
    "1-Timothy 2-Timothy Titus Philemon Hebrews James 1-Peter 2-Peter 1-John 2-John 3-John Jude Revelation"
).split()


def read(text: str, paraphrase: str) -> Source:
    """Return the verses that both packages hold, in canonical order.

    Args:
        text: package whose verses become column ``text``.
        paraphrase: package whose verses become column ``paraphrase``.

    Returns:
        Columns id, text, paraphrase, book, genre, chapter, verse.

    Raises:
        DataError: a package is missing or holds something else.
    """
    first, second = _verses(text), _verses(paraphrase)
    common = [key for key in first if first[key] and second.get(key)]
    books = [key // 1_000_000 for key in common]
    frame = pd.DataFrame(
        {
            "id": [f"{_BOOKS[book - 1]}.{key // 1000 % 1000}.{key % 1000}" for book, key in zip(books, common, strict=True)],
            "text": [first[key] for key in common],
            "paraphrase": [second[key] for key in common],
            "book": [_BOOKS[book - 1] for book in books],
            "genre": [_genre(book) for book in books],
            "chapter": [key // 1000 % 1000 for key in common],
            "verse": [key % 1000 for key in common],
        }
    )
    versions = " and ".join(f"{name} {package_version(name)}" for name in (text, paraphrase))
    return Source(frame, "public domain", versions)


def _genre(book: int) -> str:
    return next(genre for last, genre in _GENRES.items() if book <= last)


def _verses(package: str) -> dict[int, str]:
    """Map verse numbers (book * 10^6 + chapter * 10^3 + verse) to texts: slices of one long text."""
    module = package.replace("-", "_")
    path = package_path(package, f"{module}/plain_text_readers_bible.py")
    calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
    try:
        whole, starts, ends = (ast.literal_eval(argument) for argument in next(calls).args[1:4])
        return {key: whole[starts[key] : ends[key]].strip() for key in sorted(starts)}
    except (StopIteration, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path.name} of package {package!r} is no Bible text ({error}); write a pythonbible-* package, version 0.0.2."
        ) from error
