"""From a picture to the pixels a model takes: resize, centre crop, rescale, normalise."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

from PIL.Image import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

from layerwise.errors import ModelError

_STUDY_MEAN, _STUDY_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Pillow's resampling codes, as processors store them.
_RESAMPLING = {
    0: InterpolationMode.NEAREST,
    1: InterpolationMode.LANCZOS,
    2: InterpolationMode.BILINEAR,
    3: InterpolationMode.BICUBIC,
    4: InterpolationMode.BOX,
    5: InterpolationMode.HAMMING,
}


class Preprocess(Protocol):
    """From a picture to the (3, H, W) tensor a model takes."""

    def __call__(self, image: Image) -> Tensor:
        """Return the tensor."""
        ...


@dataclasses.dataclass(frozen=True)
class Chain:
    """Resize, centre crop, rescale and normalise an RGB picture; a step that is None is left out.

    Attributes:
        resize: pixels of the shortest side, or [height, width].
        crop: side of the square in the middle; zeros are added around a smaller picture.
        mode: how to resize.
        factor: each value of 0..255 is multiplied by it.
        mean, deviation: of each channel, after rescaling.
        even: where the middle is between two pixels, take the even one (torchvision) or the lower one (transformers).
    """

    resize: int | list[int] | None
    crop: int | None
    mode: InterpolationMode = InterpolationMode.BICUBIC
    factor: float = 1 / 255
    mean: Sequence[float] | None = None
    deviation: Sequence[float] | None = None
    even: bool = True

    def __call__(self, image: Image) -> Tensor:
        """Return float32 (3, H, W)."""
        if self.resize is not None:
            image = functional.resize(image, self.resize, interpolation=self.mode, antialias=True)
        if self.crop is not None:
            image = self._centre(image, self.crop)
        values = functional.pil_to_tensor(image).float() * self.factor
        if self.mean is None:
            return values
        return functional.normalize(values, list(self.mean), list(self.deviation or [1.0] * len(self.mean)))

    def _centre(self, image: Image, side: int) -> Image:
        left, top = image.width - side, image.height - side
        if self.even or min(left, top) < 0:
            return functional.center_crop(image, [side, side])
        return functional.crop(image, top // 2, left // 2, side, side)


def study_preprocess(size: int) -> Chain:
    """Return the study's single preprocessing: shortest side 256/224 of ``size``, crop, ImageNet's mean and spread."""
    return Chain(round(size * 256 / 224), size, mean=_STUDY_MEAN, deviation=_STUDY_DEVIATION)


def check_size(name: str, size: int, patch: int, trained: int | None) -> None:
    """Refuse a size that cuts patches, unless the model was trained so, as some SigLIP models are.

    Raises:
        ModelError: ``size`` is not a multiple of ``patch``.
    """
    if size % patch and size != trained:
        whole = max(1, size // patch) * patch
        raise ModelError(
            f"model {name!r} reads patches of {patch} pixels, and {size} is not a multiple; write 'image_size: {whole}'."
        )


def square(size: Any, name: str, what: str) -> int | None:  # noqa: ANN401 - an int, a pair or a mapping, by the library
    """Return the side of a square given as number, pair, or height and width; None where nothing is said.

    Raises:
        ModelError: not a square.
    """
    if isinstance(size, dict):
        size = size.get("shortest_edge") or [size.get("height"), size.get("width")]
    sides = {int(side) for side in (size if isinstance(size, list | tuple) else [size]) if side is not None}
    if len(sides) > 1:
        raise ModelError(f"model {name!r} has {what} of {size}; layerwise reads squares.")
    return sides.pop() if sides else None


def from_processor(processor: Any, name: str, trained: int | None, asked: int | None) -> tuple[Preprocess, int]:  # noqa: ANN401
    """Return what an image processor of transformers does, and the side of the square that comes out.

    Args:
        processor: any image processor.
        name: of the model, for messages.
        trained: side of the pictures that the model was trained on, where known.
        asked: side that is wanted instead of the processor's own; its resizing is scaled with it.

    Raises:
        ModelError: a processor that does something else.
    """
    resizes, crops = (bool(getattr(processor, key, False)) for key in ("do_resize", "do_center_crop"))
    given = {key: value for key, value in dict(processor.size or {}).items() if value is not None}
    if resizes and not (set(given) == {"shortest_edge"} or set(given) == {"height", "width"}):
        raise ModelError(
            f"model {name!r}: its processor resizes to {given}; layerwise resizes the shortest side, or to a height and "
            "width; write 'preprocessing: study'."
        )
    whole = square(given, name, "pictures") if resizes else None
    own = square(dict(processor.crop_size), name, "crops") if crops else whole or trained
    size = asked or own
    if size is None:
        raise ModelError(f"model {name!r}: its processor does not resize; write 'image_size: N'.")
    if whole is None:
        resize: int | list[int] | None = asked
    else:
        scaled = round(whole * size / own) if own and asked else whole
        resize = scaled if "shortest_edge" in given else [scaled, scaled]
    rescales, normalises = (getattr(processor, key, True) for key in ("do_rescale", "do_normalize"))
    chain = Chain(
        resize,
        size if crops or resizes or asked else None,
        _RESAMPLING[int(processor.resample)] if resizes else InterpolationMode.BICUBIC,
        float(processor.rescale_factor) if rescales else 1.0,
        _channels(processor.image_mean) if normalises else None,
        _channels(processor.image_std) if normalises else None,
        even=False,
    )
    return chain, size


def _channels(value: Any) -> list[float]:  # noqa: ANN401 - a number or one for each channel
    return [float(value)] * 3 if isinstance(value, int | float) else [float(v) for v in value]
