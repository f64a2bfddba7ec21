"""Image sources and views: pictures that are there, seeded, labelled, and refused by name where they cannot serve."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from layerwise.data import digits, glyphs, image_folder, simclr
from layerwise.data.prepare import derived, from_dataset, from_source
from layerwise.errors import DataError
from layerwise.images import open_image
from layerwise.samples import digest, new_samples, read_samples, validate
from PIL import Image
from sklearn.datasets import load_digits


def classes(root: Path, counts: dict[str, int]) -> Path:
    for label, count in counts.items():
        (root / label).mkdir(parents=True)
        for i in range(count):
            pixels = np.random.default_rng([len(label), i]).integers(0, 256, (20, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / label / f"{i:02d}.png")
    return root


def pixels(folder: Path, frame: pd.DataFrame) -> list[np.ndarray]:
    return [np.asarray(open_image(folder / name)) for name in frame["image"]]


def test_digits_are_scikit_learns(tmp_path: Path) -> None:
    frame = digits.read(tmp_path, 50, size=16).samples
    assert frame["id"].is_unique
    assert frame["digit"].value_counts().unique().tolist() == [5]
    bunch = load_digits()
    for row, picture in zip(frame.to_dict("records"), pixels(tmp_path, frame), strict=True):
        number = int(row["id"].split("-")[1])
        assert str(bunch.target[number]) == row["digit"]
        assert picture.shape == (16, 16, 3)
        small = np.asarray(Image.fromarray(picture).convert("L").resize((8, 8), Image.Resampling.BOX), dtype=float)
        assert np.corrcoef(small.ravel(), bunch.images[number].ravel())[0, 1] > 0.9
    validate(new_samples(frame), "digits")


def test_all_digits_can_be_asked_for(tmp_path: Path) -> None:
    assert len(digits.read(tmp_path, 5000, size=8).samples) == 1797


def test_glyphs_are_balanced_and_the_same_every_time(tmp_path: Path) -> None:
    first, second, other = (
        glyphs.read(tmp_path / name, 120, seed, 32).samples for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    pd.testing.assert_frame_equal(first, second)
    assert not set(first["sha256"]) & set(other["sha256"])
    assert first["id"].is_unique
    assert first["sha256"].is_unique
    for column, values in (("letter", 10), ("font", 6), ("quadrant", 4)):
        assert set(first[column].value_counts()) == {120 // values}
    assert all(
        np.array_equal(a, b) for a, b in zip(pixels(tmp_path / "a", first), pixels(tmp_path / "b", second), strict=True)
    )
    assert not first[["letter", "font", "quadrant"]].equals(other[["letter", "font", "quadrant"]])
    validate(new_samples(first), "glyphs")


@pytest.mark.parametrize("size", [8, 9, 31, 224])
def test_glyphs_of_every_size_can_be_drawn(tmp_path: Path, size: int) -> None:
    frame = glyphs.read(tmp_path, 7, 0, size).samples
    assert {open_image(tmp_path / name).size for name in frame["image"]} == {(size, size)}


def test_a_glyph_stands_in_its_quadrant(tmp_path: Path) -> None:
    place = {"upper left": [], "upper right": [], "lower left": [], "lower right": []}
    frame = glyphs.read(tmp_path, 200, 0, 48).samples
    for quadrant, picture in zip(frame["quadrant"], pixels(tmp_path, frame), strict=True):
        # A letter is one colour: where its neighbours differ least.
        rough = np.abs(np.diff(picture.astype(float), axis=1)).sum(-1)[:, :46] == 0
        rows, columns = np.nonzero(rough)
        if len(rows):
            place[quadrant].append((rows.mean(), columns.mean()))
    means = {quadrant: np.mean(found, axis=0) for quadrant, found in place.items()}
    assert means["upper left"][0] < means["lower left"][0]
    assert means["upper right"][0] < means["lower right"][0]
    assert means["upper left"][1] < means["upper right"][1]
    assert means["lower left"][1] < means["lower right"][1]


def test_a_folder_of_classes_is_listed_in_order_and_linked(tmp_path: Path) -> None:
    root = classes(tmp_path / "mine", {"dog": 2, "cat": 3})
    (root / "cat" / "notes.txt").write_text("no image")
    (root / "cat" / ".hidden.png").write_text("no image")
    (root / ".thumbnails").mkdir()
    (root / ".thumbnails" / "00.png").write_text("no image")
    (root / "loose.png").write_text("not in a class")
    folder = tmp_path / "data"
    frame = image_folder.read(folder, str(root)).samples
    assert frame["id"].tolist() == ["cat/00.png", "cat/01.png", "cat/02.png", "dog/00.png", "dog/01.png"]
    assert frame["label"].tolist() == ["cat"] * 3 + ["dog"] * 2
    assert (folder / "images").is_symlink()
    assert all((folder / name).is_file() for name in frame["image"])
    assert frame["sha256"].str.fullmatch("[0-9a-f]{64}").all()
    image_folder.read(folder, str(root))  # again, over its own link
    validate(new_samples(frame), "mine")


def test_a_class_with_one_image_is_refused(tmp_path: Path) -> None:
    root = classes(tmp_path / "mine", {"dog": 2, "cat": 1})
    with pytest.raises(DataError, match="class 'cat' has one image; two are needed"):
        image_folder.read(tmp_path / "data", str(root))
    assert not (tmp_path / "data").exists()


def test_an_unreadable_image_is_refused_by_name(tmp_path: Path) -> None:
    root = classes(tmp_path / "mine", {"dog": 2, "cat": 2})
    (root / "dog" / "01.png").write_text("this is text")
    with pytest.raises(DataError, match=r"image .*dog/01\.png cannot be read"):
        image_folder.read(tmp_path / "data", str(root))


@pytest.mark.parametrize("made", ["absent", "empty", "flat"])
def test_a_folder_without_classes_is_refused(tmp_path: Path, made: str) -> None:
    root = tmp_path / "mine"
    if made != "absent":
        root.mkdir()
    if made == "flat":
        Image.new("RGB", (9, 9)).save(root / "x.png")
    with pytest.raises(DataError, match="does not exist" if made == "absent" else "holds no class folders"):
        image_folder.read(tmp_path / "data", str(root))


def test_a_name_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    root = classes(tmp_path / "mine", {"dog": 2, "cat": 2})
    try:
        (root / "dog" / "01.png").rename(root / "dog" / b"\xff.png".decode("utf-8", "surrogateescape"))
    except OSError:
        pytest.skip("this file system takes valid names only")
    with pytest.raises(DataError, match="not valid UTF-8; rename it"):
        image_folder.read(tmp_path / "data", str(root))


def test_a_dataset_that_changes_its_kind_leaves_the_users_folder_alone(tmp_path: Path) -> None:
    """``images`` may be a link to a user's folder: pictures must replace the link, not be written through it."""
    root, folder = classes(tmp_path / "mine", {"dog": 2, "cat": 2}), tmp_path / "data"
    before = sorted(root.rglob("*"))
    image_folder.read(folder, str(root))
    drawn = glyphs.read(folder, 5, 0, 16).samples
    assert sorted(root.rglob("*")) == before
    assert sorted(p.name for p in (folder / "images").iterdir()) == [f"{i}.png" for i in drawn["id"]]
    glyphs.read(folder, 3, 0, 16)
    assert len(list((folder / "images").iterdir())) == 3  # none of the earlier five are left over
    image_folder.read(folder, str(root))  # and back, over a real folder
    assert (folder / "images").is_symlink()
    assert sorted(root.rglob("*")) == before


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    noise = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    path = tmp_path / "picture.png"
    Image.fromarray(noise).resize((70, 50), Image.Resampling.BICUBIC).save(path)
    return path


def test_a_view_depends_on_seed_id_and_number_only(picture: Path) -> None:
    def view(identifier: str = "a", number: int = 0, seed: int = 0) -> bytes:
        made = simclr.view_image(picture, identifier, number, seed, 32)
        assert (made.size, made.mode) == ((32, 32), "RGB")
        return made.tobytes()

    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first = view()
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(2)
    assert view() == first
    assert len({first, view(number=1), view(identifier="b"), view(seed=1), view("a\x1f0", 0)}) == 5


@pytest.mark.parametrize("size", [8, 10, 25, 64])
def test_views_of_every_size_and_of_one_pixel(tmp_path: Path, picture: Path, size: int) -> None:
    Image.new("RGB", (1, 1), "red").save(tmp_path / "dot.png")
    for path in (picture, tmp_path / "dot.png"):
        for number in range(6):
            assert simclr.view_image(path, "a", number, 0, size).size == (size, size)


def test_views_vary_as_simclr_does(picture: Path) -> None:
    made = np.stack([np.asarray(simclr.view_image(picture, "a", k, 0, 24), dtype=float) for k in range(200)])
    grey = (np.ptp(made, axis=-1).max((1, 2)) == 0).mean()
    assert 0.1 < grey < 0.3
    assert np.ptp(made.mean((1, 2, 3))) > 50  # brightness


def test_views_of_images_are_written_where_they_are_said_to_be(tmp_path: Path) -> None:
    parent, folder = tmp_path / "glyphs", tmp_path / "glyphs~views"
    from_source(parent, "glyphs", "glyphs", {"n": 30, "seed": 0, "size": 24}, None)
    options = {"transform": "simclr", "views": 3, "columns": [], "size": 16, "sample": 10, "seed": 0}
    derived(folder, "glyphs~views", parent, options)
    frame = read_samples(folder / "samples.parquet")
    assert len(frame) == 30
    assert frame["source_id"].nunique() == 10
    assert frame["view"].tolist() == [0, 1, 2] * 10
    assert frame["id"].is_unique
    assert frame["image"].is_unique
    assert set(frame["source_id"]) <= set(read_samples(parent / "samples.parquet")["id"])
    at = read_samples(parent / "samples.parquet").set_index("id")["image"]
    for row, found in zip(frame.to_dict("records"), pixels(folder, frame), strict=True):
        again = simclr.view_image(parent / at[row["source_id"]], row["source_id"], row["view"], 0, 16)
        np.testing.assert_array_equal(found, np.asarray(again))
    before = digest(frame)
    derived(folder, "glyphs~views", parent, options)
    assert digest(read_samples(folder / "samples.parquet")) == before


def test_views_of_a_linked_folder_have_names_that_are_files(tmp_path: Path) -> None:
    root = classes(tmp_path / "mine", {"dog": 3, "cat": 3})
    from_source(tmp_path / "own", "own", "image_folder", {"path": str(root)}, None)
    options = {"transform": "simclr", "views": 2, "columns": [], "size": 16, "sample": None, "seed": 0}
    derived(tmp_path / "own~views", "own~views", tmp_path / "own", options)
    frame = read_samples(tmp_path / "own~views" / "samples.parquet")
    assert len(pixels(tmp_path / "own~views", frame)) == 12
    assert len(list(root.rglob("*.png"))) == 6


def test_views_need_first_views(tmp_path: Path) -> None:
    from layerwise.data.views import make_image_views

    frame = pd.DataFrame({"id": ["a"], "view": [1], "image": ["a.png"], "split": "test"})
    with pytest.raises(DataError, match="no rows with view 0"):
        make_image_views(frame, simclr, (tmp_path, tmp_path), 2, 0, 16, None)


@pytest.mark.parametrize("kind", ["glyphs", "image_folder"])
def test_a_sample_of_a_sample_has_paths_that_exist(tmp_path: Path, kind: str) -> None:
    root = classes(tmp_path / "mine", {"dog": 8, "cat": 8})
    source = {"path": str(root)} if kind == "image_folder" else {"n": 20, "seed": 0, "size": 16}
    label = "label" if kind == "image_folder" else "quadrant"
    data = tmp_path / "data"
    from_source(data / "pool", "pool", kind, source, None)
    from_dataset(data / "some", "some", data / "pool", {"n": 12, "seed": 0, "balance": label})
    from_dataset(data / "few", "few", data / "some", {"n": 4, "seed": 0, "balance": label})
    pool, few = (read_samples(data / name / "samples.parquet") for name in ("pool", "few"))
    assert len(few) == 4
    assert not few["image"].str.startswith("/").any()
    by_id = dict(zip(pool["id"], pixels(data / "pool", pool), strict=True))
    for identifier, found in zip(few["id"], pixels(data / "few", few), strict=True):
        np.testing.assert_array_equal(found, by_id[identifier])
    moved = tmp_path / "moved"
    data.rename(moved)
    assert all((moved / "few" / name).is_file() for name in few["image"])
