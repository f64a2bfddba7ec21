"""Vision models in Hugging Face folders."""

from pathlib import Path
from typing import Any

from transformers import AutoImageProcessor

from layerwise.errors import ModelError
from layerwise.models.backbone import load_backbone
from layerwise.models.preprocessing import Preprocess, check_size, from_processor, square, study_preprocess
from layerwise.models.vision_model import VisionModel

# Where a folder describes its preprocessing: newer ones put it beside that of the texts.
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")


class _Processor:
    """Opens a folder's image processor, or None where it has none: the study's preprocessing needs none."""

    @staticmethod
    def from_pretrained(folder: Path, **options: Any) -> Any:  # noqa: ANN401 - any image processor
        if not any((folder / name).is_file() for name in _PROCESSORS):
            return None
        return AutoImageProcessor.from_pretrained(folder, **options)


def load_entry(folder: Path, entry: dict[str, Any], device: str) -> VisionModel:
    """Load as the config's ``entry`` says; see ``load``."""
    return load(folder, entry["name"], entry["dtype"], device, entry["preprocessing"], entry["image_size"])


def load(
    folder: Path, name: str, dtype: str, device: str, preprocessing: str = "model", image_size: int | None = None
) -> VisionModel:
    """Load a vision model, or the vision tower of a model with two, from a Hugging Face folder, without remote code.

    Args:
        folder: holds config, preprocessor_config and safetensors files.
        name: of the model, for messages.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", "cuda:N", "mps" or "split".
        preprocessing: "model", what its processor does; "study", one for all models.
        image_size: side of the square the model sees; its processor's own where None.

    Raises:
        ModelError: missing or damaged files, an architecture that is not one sequence of equal blocks, a size that cuts
            patches or that the model has no positions for.
    """
    module, processor = load_backbone(folder, name, dtype, _Processor, "vision", device)
    config: Any = module.config
    if hasattr(config, "mask_ratio"):
        config.mask_ratio = 0.0  # every patch is read, as MAE's own encoder does after training
    patch = square(getattr(config, "patch_size", None), name, "patches")
    if patch is None:
        raise ModelError(
            f"model {name!r} ({config.model_type}) has no patch size: layerwise reads models of one patch grid."
        )
    trained = square(getattr(config, "image_size", None), name, "images")
    preprocess, size = _preprocess(processor, name, preprocessing, trained, image_size)
    check_size(name, size, patch, trained)
    facts = {"preprocessing": preprocessing, "size": size, "trained_size": trained, "patch": patch, "dtype": dtype}
    facts |= {"architecture": type(module).__name__, "processor": processor.to_dict() if processor is not None else None}
    return VisionModel(module, preprocess, facts, getattr(config, "num_hidden_layers", None))


def _preprocess(
    processor: Any,  # noqa: ANN401 - any image processor
    name: str,
    preprocessing: str,
    trained: int | None,
    asked: int | None,
) -> tuple[Preprocess, int]:
    """What is done to pictures, and the side of the square that comes out."""
    if processor is not None:
        own, size = from_processor(processor, name, trained, asked)
        return (study_preprocess(size) if preprocessing == "study" else own), size
    size = asked or trained or 0
    if preprocessing != "study" or not size:
        raise ModelError(
            f"model {name!r} has no preprocessor_config.json in its folder; add its own, or write 'preprocessing: study'"
            f"{'' if size else ' and an image_size'}."
        )
    return study_preprocess(size), size
