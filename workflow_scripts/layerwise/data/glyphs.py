"""Letters in matplotlib's own fonts on coloured noise, at random place, angle and colour: three tasks in one picture."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw, ImageFont

from layerwise.data.pictures import write_pictures
from layerwise.data.source import Source

LETTERS = tuple("ABCDEFGHJK")
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-Bold", "STIXGeneral")
# Sum over the three channels between a letter's colour and the mean of its background: below it a person cannot read it.
CONTRAST = 150
QUADRANTS = ("upper left", "upper right", "lower left", "lower right")


class _Glyph(NamedTuple):
    letter: str
    font: str
    quadrant: str


def read(folder: Path, n: int = 500, seed: int = 0, size: int = 112) -> Source:
    """Render ``n`` pictures of ``size`` x ``size`` pixels below ``folder``; letters, fonts and quadrants are balanced.

    Returns:
        Columns id, image, sha256, letter, font and quadrant.
    """
    from matplotlib import __version__, get_data_path

    fonts = {name: Path(get_data_path()) / "fonts" / "ttf" / f"{name}.ttf" for name in FONTS}
    rng = np.random.default_rng(seed)
    columns = [rng.permutation(np.resize(np.array(names), n)) for names in (LETTERS, FONTS, QUADRANTS)]
    glyphs = [_Glyph(*map(str, row)) for row in zip(*columns, strict=True)]
    ids = [f"glyph-{i:04d}" for i in range(n)]
    pictures = (
        (identifier, _render(glyph, fonts, size, np.random.default_rng([seed, k])))
        for k, (identifier, glyph) in enumerate(zip(ids, glyphs, strict=True))
    )
    samples = write_pictures(folder, pictures)
    return Source(
        samples.join(pd.DataFrame(glyphs)), "fonts of matplotlib (BSD-style)", f"matplotlib {__version__} fonts, seed {seed}"
    )


def _render(glyph: _Glyph, fonts: dict[str, Path], size: int, rng: np.random.Generator) -> Image.Image:
    """A letter of .3 to .45 of the picture's height, turned up to 40 degrees, in one quadrant, over noise."""
    background = rng.uniform(60, 195, size=3)
    noise = rng.normal(background, 55, size=(size // 4, size // 4, 3))
    picture = Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8)).resize((size, size), Image.Resampling.BILINEAR)
    height = int(rng.integers(size * 3 // 10, size * 9 // 20))
    mask = Image.new("L", (2 * height, 2 * height), 0)
    font = ImageFont.truetype(str(fonts[glyph.font]), height)
    ImageDraw.Draw(mask).text((height, height), glyph.letter, fill=255, font=font, anchor="mm")
    mask = mask.rotate(float(rng.uniform(-40, 40)), resample=Image.Resampling.BICUBIC)
    index = QUADRANTS.index(glyph.quadrant)
    jitter = rng.integers(-size // 12, size // 12 + 1, size=2)
    centre = np.array([size // 4 + (index % 2) * size // 2, size // 4 + (index // 2) * size // 2]) + jitter
    colour = rng.integers(0, 256, size=3)
    while np.abs(colour - background).sum() < CONTRAST:
        colour = rng.integers(0, 256, size=3)
    picture.paste(tuple(map(int, colour)), (int(centre[0]) - height, int(centre[1]) - height), mask)
    return picture
