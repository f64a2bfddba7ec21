"""Opening an image file, whatever it holds, as the RGB picture a person would see."""

import struct
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from layerwise.errors import DataError

MOST_PIXELS = 64 * 2**20
LONGEST_SIDE_RATIO = 100
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")  # not EPS, for which Pillow would start Ghostscript


def open_image(path: Path) -> Image.Image:
    """Return the image in ``path``: turned as its EXIF says, 8 bits, RGB, transparency over white, first frame only.

    Raises:
        DataError: unreadable or broken, more than 64 Mi pixels (a decompression bomb), or more than 100 times
            longer than wide.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as opened:
                _check_shape(opened.size, path)
                return _rgb(ImageOps.exif_transpose(opened))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"image {path} decompresses to too many pixels; make it smaller or remove it.") from None
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, struct.error) as error:
        raise DataError(f"image {path} cannot be read ({type(error).__name__}: {error}); replace or remove it.") from error


def _check_shape(size: tuple[int, int], path: Path) -> None:
    width, height = size
    if width * height > MOST_PIXELS:
        raise DataError(f"image {path} has {width} x {height} pixels, at most {MOST_PIXELS:,} are read; make it smaller.")
    if max(size) > LONGEST_SIDE_RATIO * min(size):
        raise DataError(
            f"image {path} has {width} x {height} pixels: no crop of so long a strip shows what is in it; crop or remove it."
        )


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = _eight_bits(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        white = Image.new("RGBA", layer.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, layer)
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale 16-bit, 32-bit and float greyscale to 8 bits; where the depth is not said, by 2^16 where the values need it."""
    values = np.asarray(image, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("it holds values that are not numbers")
    top = values.max(initial=0.0)
    deep = image.mode.startswith("I;16") or top > 255
    scale = 255.0 / 65535.0 if deep else 255.0 if image.mode == "F" and top <= 1 else 1.0
    return Image.fromarray(np.clip(np.rint(values * scale), 0, 255).astype(np.uint8))
