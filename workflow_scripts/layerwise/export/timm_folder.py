"""A vision model as a timm folder: config.json with the depth that is left, and native weights."""

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

LIBRARY = "timm"
_STUDY = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "interpolation": "bicubic", "crop_mode": "center"}


def write(folder: Path, loaded: Any, form: Form, source: Path) -> dict[str, Any]:  # noqa: ANN401 - a VisionModel
    """Cut ``loaded`` and write its weights as timm names them, and a config.json that builds it.

    Args:
        folder: empty.
        loaded: module, stack, facts, prefix.
        form: what is kept, and how it is read.
        source: the folder the model was loaded from.

    Returns:
        What the code on the card must know: prefix tokens, the name of the final norm, the dtype, which timm does not read.
    """
    from safetensors.torch import save_file

    module, size = loaded.module, loaded.facts["size"]
    facts = {"prefix": loaded.prefix, "norm": name_of(module, loaded.final_norm), "dtype": loaded.facts["dtype"]}
    cut(module, loaded.stack, form.kept)
    save_file({key: value.contiguous() for key, value in module.state_dict().items()}, folder / "model.safetensors")
    given = dict(module.pretrained_cfg)
    kept = {key: given[key] for key in ("mean", "std", "interpolation", "crop_pct", "crop_mode") if key in given}
    if loaded.facts["preprocessing"] == "study":
        kept = {**_STUDY, "crop_pct": 224 / 256}
    own = json.loads((source / "config.json").read_text("utf-8")).get("model_args", {})
    described = {
        "architecture": given["architecture"],
        "num_classes": 0,
        "num_features": int(module.num_features),
        "model_args": {**own, "depth": form.kept, "img_size": size},
        "pretrained_cfg": {**kept, "input_size": [3, size, size], "fixed_input_size": True, "num_classes": 0},
    }
    (folder / "config.json").write_text(json.dumps(described, indent=1) + "\n", "utf-8")
    return facts


def vectors(
    folder: Path, samples: pd.DataFrame, where: Path, form: Form, facts: dict[str, Any]
) -> tuple[NDArray[np.float64], str]:
    """Return (N, D) of column ``image`` as the code on the card gives them, and the dtype that the folder loads in."""
    import timm

    model: Any = timm.create_model(f"local-dir:{folder.resolve()}", pretrained=True, num_classes=0).eval()
    model = model.to(getattr(torch, facts["dtype"]))
    if form.raw:
        without_norm(model, facts["norm"])
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=model))
    pixels = torch.stack([transform(Image.open(where / name).convert("RGB")) for name in samples["image"]])
    with torch.inference_mode():
        tokens = model.forward_features(pixels.to(next(model.parameters()).dtype)).float()
    return pool(tokens, form.readout, facts["prefix"]), str(next(model.parameters()).dtype).removeprefix("torch.")


def usage(name: str, form: Form, facts: dict[str, Any]) -> tuple[list[str], str]:
    """Return lines of Python for the card, and what is to be known about them."""
    half = "" if facts["dtype"] == "float32" else f".to(torch.{facts['dtype']})"
    return [
        "import timm, torch",
        f'model = timm.create_model("local-dir:{name}", pretrained=True, num_classes=0).eval(){half}',
        *([f"model.{facts['norm']} = torch.nn.Identity()"] if form.raw else []),
        "transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=model))",
        "with torch.inference_mode():",
        f"    tokens = model.forward_features(torch.stack([transform(image) for image in images]){half}).float()",
        f"vectors = {pool_code(form.readout, facts['prefix'])}",
    ], "`images` is a list of RGB pictures of PIL."
