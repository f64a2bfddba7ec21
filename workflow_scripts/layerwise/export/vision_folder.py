"""A vision model as a transformers folder: the cut model, and a processor that makes the pixels that were studied."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image

from layerwise.export.cut import cut
from layerwise.export.form import Form
from layerwise.export.tokens import name_of, pool, pool_code, without_norm

LIBRARY = "transformers"
_STAGES = ("stage_names", "out_features", "out_indices")  # names of all layers, for use as a backbone of a detector


def write(folder: Path, loaded: Any, form: Form, _source: Path) -> dict[str, Any]:  # noqa: ANN401 - a VisionModel
    """Cut ``loaded`` and write it, with the preprocessing at the size that was studied.

    Args:
        folder: empty.
        loaded: module, stack, preprocess (a chain of steps), prefix.
        form: what is kept, and how it is read.
        _source: the folder the model was loaded from.

    Returns:
        What the code on the card must know: prefix tokens, the name of the final norm, whether positions interpolate.
    """
    facts = {"prefix": loaded.prefix, "norm": name_of(loaded.module, loaded.final_norm)}
    facts["interpolates"] = "interpolate_pos_encoding" in inspect.signature(loaded.module.forward).parameters
    cut(loaded.module, loaded.stack, form.kept)
    loaded.module.save_pretrained(folder)
    file = folder / "config.json"
    described = json.loads(file.read_text("utf-8"))
    described = {key: value for key, value in described.items() if key not in _STAGES}
    file.write_text(json.dumps(described, indent=1) + "\n", "utf-8")
    processor = _processor(loaded.preprocess)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n", "utf-8")
    return facts


def _processor(chain: Any) -> dict[str, Any]:  # noqa: ANN401 - models.preprocessing.Chain
    """The chain of steps in the words of transformers' image processors."""
    content: dict[str, Any] = {"image_processor_type": "CLIPImageProcessor", "do_convert_rgb": True}
    content |= {"do_resize": chain.resize is not None, "do_center_crop": chain.crop is not None}
    if chain.resize is not None:
        sides = {"shortest_edge": chain.resize}
        if not isinstance(chain.resize, int):
            sides = dict(zip(("height", "width"), chain.resize, strict=True))
        content |= {"size": sides, "resample": int(getattr(Image.Resampling, chain.mode.name))}
    if chain.crop is not None:
        content |= {"crop_size": {"height": chain.crop, "width": chain.crop}}
    content |= {"do_rescale": True, "rescale_factor": chain.factor, "do_normalize": chain.mean is not None}
    if chain.mean is not None:
        content |= {"image_mean": list(chain.mean), "image_std": list(chain.deviation or [1.0] * len(chain.mean))}
    return content


def vectors(
    folder: Path, samples: pd.DataFrame, where: Path, form: Form, facts: dict[str, Any]
) -> tuple[NDArray[np.float64], str]:
    """Return (N, D) of column ``image`` as the code on the card gives them, and the dtype that the folder loads in."""
    from transformers import AutoImageProcessor, AutoModel

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil", **options)
    model = AutoModel.from_pretrained(folder, use_safetensors=True, **options).eval()
    if form.raw:
        without_norm(model, facts["norm"])
    images = [Image.open(where / name).convert("RGB") for name in samples["image"]]
    pixels = processor(images=images, return_tensors="pt")["pixel_values"].to(model.dtype)
    extra = {"interpolate_pos_encoding": True} if facts["interpolates"] else {}
    with torch.inference_mode():
        tokens = model(pixel_values=pixels, **extra).last_hidden_state.float()
    return pool(tokens, form.readout, facts["prefix"]), str(model.dtype).removeprefix("torch.")


def usage(name: str, form: Form, facts: dict[str, Any]) -> tuple[list[str], str]:
    """Return lines of Python for the card, and what is to be known about them."""
    extra = ", interpolate_pos_encoding=True" if facts["interpolates"] else ""
    norm = [f"model.{facts['norm']} = torch.nn.Identity()"] if form.raw else []
    return [
        "import torch",
        "from transformers import AutoImageProcessor, AutoModel",
        f'processor = AutoImageProcessor.from_pretrained("{name}", backend="pil")',
        f'model = AutoModel.from_pretrained("{name}").eval()',
        *norm,
        'pixels = processor(images=images, return_tensors="pt")["pixel_values"].to(model.dtype)',
        "with torch.inference_mode():",
        f"    tokens = model(pixel_values=pixels{extra}).last_hidden_state.float()",
        f"vectors = {pool_code(form.readout, facts['prefix'])}",
    ], "`images` is a list of RGB pictures of PIL."
