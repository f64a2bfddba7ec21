"""Opening images: what a person would see, whatever the file holds, and a sentence where nothing can be seen."""

import io
import random
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from layerwise import images
from layerwise.errors import DataError
from layerwise.images import open_image
from PIL import Image


def noise(width: int = 6, height: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size=(height, width, 3), dtype=np.uint8)


def opened(path: Path) -> np.ndarray:
    picture = open_image(path)
    assert picture.mode == "RGB"
    return np.asarray(picture)


def saved(path: Path, image: Image.Image, **options) -> Path:
    image.save(path, **options)
    return path


@pytest.mark.parametrize("kind", ["png", "bmp", "ppm", "tif"])
def test_a_plain_picture_comes_back_as_it_is(tmp_path: Path, kind: str) -> None:
    np.testing.assert_array_equal(opened(saved(tmp_path / f"x.{kind}", Image.fromarray(noise()))), noise())


@pytest.mark.parametrize(
    ("orientation", "turn"),
    [
        (1, lambda a: a),
        (2, lambda a: a[:, ::-1]),
        (3, lambda a: a[::-1, ::-1]),
        (4, lambda a: a[::-1]),
        (5, lambda a: a.transpose(1, 0, 2)),
        (6, lambda a: np.rot90(a, -1)),
        (7, lambda a: a.transpose(1, 0, 2)[::-1, ::-1]),
        (8, lambda a: np.rot90(a, 1)),
    ],
)
def test_a_picture_is_turned_as_its_exif_says(tmp_path: Path, orientation: int, turn) -> None:
    exif = Image.Exif()
    exif[0x112] = orientation
    path = saved(tmp_path / "x.png", Image.fromarray(noise()), exif=exif)
    np.testing.assert_array_equal(opened(path), turn(noise()))


def test_greyscale_becomes_three_equal_channels(tmp_path: Path) -> None:
    grey = noise()[..., 0]
    np.testing.assert_array_equal(opened(saved(tmp_path / "x.png", Image.fromarray(grey))), np.stack([grey] * 3, -1))
    black_and_white = Image.fromarray(grey > 127)
    np.testing.assert_array_equal(opened(saved(tmp_path / "y.png", black_and_white))[..., 0], np.where(grey > 127, 255, 0))


def test_a_palette_is_looked_up(tmp_path: Path) -> None:
    indexed = Image.fromarray(np.array([[0, 1], [2, 1]], dtype=np.uint8), mode="P")
    indexed.putpalette([10, 20, 30, 200, 0, 5, 7, 8, 9])
    expected = np.array([[[10, 20, 30], [200, 0, 5]], [[7, 8, 9], [200, 0, 5]]])
    np.testing.assert_array_equal(opened(saved(tmp_path / "x.png", indexed)), expected)
    clear = saved(tmp_path / "y.png", indexed, transparency=1)
    expected[expected[..., 0] == 200] = 255
    np.testing.assert_array_equal(opened(clear), expected)


def test_transparency_lies_over_white(tmp_path: Path) -> None:
    alpha = np.array([[0, 128, 255]], dtype=np.uint8)
    colour = np.dstack([np.full((1, 3), 100, dtype=np.uint8)] * 3 + [alpha])
    expected = np.rint(100 * (alpha / 255) + 255 * (1 - alpha / 255))
    for name, picture in (("a", Image.fromarray(colour)), ("b", Image.fromarray(colour[..., 2:], mode="LA"))):
        found = opened(saved(tmp_path / f"{name}.png", picture))
        assert np.abs(found - expected[..., None]).max() <= 1
        np.testing.assert_array_equal(found[0, [0, 2]], [[255] * 3, [100] * 3])


@pytest.mark.parametrize("kind", ["png", "tif"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path, kind: str) -> None:
    deep = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    found = opened(saved(tmp_path / f"x.{kind}", Image.fromarray(deep)))
    np.testing.assert_array_equal(found[0, :, 0], [0, 1, 128, 255])
    dark = opened(saved(tmp_path / f"dark.{kind}", Image.fromarray(np.array([[0, 200, 255]], dtype=np.uint16))))
    np.testing.assert_array_equal(dark[0, :, 0], [0, 1, 1])  # nearly black, not stretched to white


def test_float_greyscale_is_scaled_and_what_is_no_number_refused(tmp_path: Path) -> None:
    unit = Image.fromarray(np.array([[0.0, 0.5, 1.0]], dtype=np.float32))
    np.testing.assert_array_equal(opened(saved(tmp_path / "x.tif", unit))[0, :, 0], [0, 128, 255])
    for value in (np.nan, np.inf):
        broken = saved(tmp_path / "nan.tif", Image.fromarray(np.full((2, 2), value, dtype=np.float32)))
        with pytest.raises(DataError, match=r"image .*nan\.tif cannot be read .*not numbers"):
            open_image(broken)


def test_cmyk_is_converted(tmp_path: Path) -> None:
    ink = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    red = opened(saved(tmp_path / "x.jpg", ink, quality=95))[8, 8]
    assert red[0] > 200 > 60 > max(red[1:])


def test_the_first_frame_of_an_animation_is_seen(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (5, 5), colour) for colour in ("red", "blue")]
    path = saved(tmp_path / "x.gif", frames[0], save_all=True, append_images=frames[1:])
    assert opened(path)[2, 2].tolist() == [255, 0, 0]


def test_one_pixel_is_a_picture(tmp_path: Path) -> None:
    assert opened(saved(tmp_path / "x.png", Image.new("RGB", (1, 1), (1, 2, 3)))).tolist() == [[[1, 2, 3]]]


@pytest.mark.parametrize("size", [(1, 10_000), (10_000, 1), (1, 101)])
def test_a_long_strip_is_refused(tmp_path: Path, size: tuple[int, int]) -> None:
    path = saved(tmp_path / "strip.png", Image.new("RGB", size))
    with pytest.raises(
        DataError, match=rf"image .*strip\.png has {size[0]} x {size[1]} pixels: no crop .* crop or remove it"
    ):
        open_image(path)


def jpeg() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(noise(64, 48)).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.mark.parametrize("content", [b"", b"just a text\n", b"<!DOCTYPE html>", jpeg()[:20], jpeg()[:-500]])
def test_broken_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken file.png"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"image .*broken file\.png cannot be read \(.*\); replace or remove it"):
        open_image(path)


def test_a_folder_and_a_missing_file_are_refused_by_name(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.png"):
        with pytest.raises(DataError, match=str(path)):
            open_image(path)


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims to be so large, in a hundred bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"0" * 99)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [8_200, 10_000, 60_000])
def test_a_decompression_bomb_is_refused_by_name(tmp_path: Path, side: int) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png_of(side, side))
    with pytest.raises(DataError, match=r"image .*bomb\.png (has|decompresses to)"):
        open_image(path)


def test_a_file_that_would_start_a_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *a, **_k: started.append(a) or Image.new("RGB", (9, 9)).im)
    path = tmp_path / "x.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    Image.open(path).load()
    assert len(started) == 1
    with pytest.raises(DataError, match=r"x\.png cannot be read"):
        open_image(path)
    assert len(started) == 1


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP", "PPM"])
def test_every_damaged_byte_is_a_picture_or_a_sentence(tmp_path: Path, kind: str) -> None:
    exif = Image.Exif()
    exif[0x112], exif[0x10E] = 6, "words"
    buffer, draw, path = io.BytesIO(), random.Random(0), tmp_path / "damaged"
    Image.fromarray(noise(24, 20)).save(buffer, kind, **({"exif": exif} if kind in ("PNG", "JPEG", "WEBP", "TIFF") else {}))
    for k in range(300):
        content = bytearray(buffer.getvalue())
        for _ in range(draw.choice([1, 2, 8])):
            content[draw.randrange(min(len(content), 200) if k % 2 else len(content))] = draw.randrange(256)
        path.write_bytes(content[: draw.randrange(len(content))] if k % 3 == 0 else content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                assert open_image(path).mode == "RGB"
            except DataError as error:
                assert str(path) in str(error)


def test_exif_that_holds_the_wrong_type_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "x.png", Image.fromarray(noise()))

    def broken(_image: Image.Image) -> Image.Image:
        raise struct.error("required argument is not an integer")

    monkeypatch.setattr(images.ImageOps, "exif_transpose", broken)
    with pytest.raises(DataError, match=r"x\.png cannot be read"):
        open_image(path)
