"""Image views: the SimCLR chain with the strengths the study ran with (PAPER 5), by torchvision's transforms v2."""

import hashlib
from pathlib import Path

import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, v2

from layerwise.images import open_image


def view_image(path: Path, identifier: str, view: int, seed: int, size: int) -> Image.Image:
    """Return view number ``view`` of the image in ``path``; the same (seed, id, view) always gives the same picture.

    Random resized crop (8 % to 100 % of the area, bicubic), flip .5, colour jitter (.8, .8, .8, .2) with probability .8,
    grey .2, Gaussian blur (sigma .1 to 2) with probability .5.
    """
    key = hashlib.sha256(f"{seed}\x1f{identifier}\x1f{view}".encode()).digest()
    chain = v2.Compose(
        [
            v2.RandomResizedCrop(size, scale=(0.08, 1.0), interpolation=InterpolationMode.BICUBIC, antialias=True),
            v2.RandomHorizontalFlip(0.5),
            v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(kernel_size=size // 10 // 2 * 2 + 1, sigma=(0.1, 2.0))], p=0.5),
        ]
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int.from_bytes(key[:8], "big") % 2**63)
        picture: Image.Image = chain(open_image(path))
    return picture
