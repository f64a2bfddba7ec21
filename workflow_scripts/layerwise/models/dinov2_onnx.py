"""Convert the DINOv2 ViT-S/14 backbone inside an ONNX file into a Hugging Face folder, once.

The export folded linear weights into anonymous MatMul constants; the bias that is added to each product still has its
name, which gives the weight's. The position table is two anonymous constants: one for CLS, one for the patches.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from layerwise.atomic import write_text
from layerwise.errors import ModelError
from layerwise.packages import file_digest

_PREFIX = "backbone."
_IMAGE, _PATCH, _WIDTH = 518, 14, 384
_PROCESSOR = {
    "image_processor_type": "BitImageProcessor",
    "do_resize": True,
    "size": {"shortest_edge": 256},
    "do_center_crop": True,
    "crop_size": {"height": 224, "width": 224},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
    "do_convert_rgb": True,
    "resample": 3,
}


def convert(file: Path, folder: Path) -> dict[str, Any]:
    """Write config, preprocessor and float32 safetensors of the backbone in ``file`` to ``folder``.

    Returns:
        Facts for the manifest: format, digest of the source, stored dtype, what is known of the weights' origin.

    Raises:
        ModelError: not ONNX, or not this backbone.
    """
    import onnx
    from safetensors.numpy import save_file
    from transformers import Dinov2Config, Dinov2Model

    try:
        graph = onnx.load(str(file)).graph
        save_file(_weights(graph), folder / "model.safetensors")
        config = Dinov2Config(
            hidden_size=_WIDTH, num_hidden_layers=12, num_attention_heads=6, image_size=_IMAGE, patch_size=_PATCH
        )
        config.architectures = ["Dinov2Model"]
        config.save_pretrained(folder)
        _, loading = Dinov2Model.from_pretrained(folder, output_loading_info=True)
        absent = sorted(loading["missing_keys"])
        if absent:
            raise ValueError(f"{len(absent)} weights are absent, first {absent[0]}")
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{file} does not hold a DINOv2 ViT-S/14 backbone ({type(error).__name__}: {reason}).") from error
    write_text(folder / "preprocessor_config.json", json.dumps(_PROCESSOR, indent=1) + "\n")
    return {
        "from": "onnx",
        "file": file.name,
        "sha256": file_digest(file),
        "stored_dtype": "float32",
        "note": "backbone of a saliency model, probably fine-tuned: not facebook/dinov2-small; the mask token is zero",
        "licence": "Apache-2.0 (DINOv2), MIT (package)",
    }


def _weights(graph: Any) -> dict[str, np.ndarray]:  # noqa: ANN401 - onnx.GraphProto
    from onnx import numpy_helper

    constants = {tensor.name: np.array(numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    consumers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name, []).append(node)
    state = {name.removeprefix(_PREFIX): array for name, array in constants.items() if name.startswith(_PREFIX)}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            bias = _bias_of(consumers[node.output[0]], constants)
            state[bias.removeprefix(_PREFIX).removesuffix("bias") + "weight"] = np.ascontiguousarray(
                constants[node.input[1]].T
            )
    tables = [
        a for name, a in constants.items() if name.startswith("onnx::") and a.ndim == 3 and a.shape[::2] == (1, _WIDTH)
    ]
    state["embeddings.position_embeddings"] = np.concatenate(sorted(tables, key=_length), axis=1)
    state["embeddings.mask_token"] = np.zeros((1, _WIDTH), dtype=np.float32)
    return state


def _bias_of(nodes: list[Any], constants: dict[str, np.ndarray]) -> str:
    """Name of the bias that is added to a product."""
    add = next(node for node in nodes if node.op_type == "Add")
    return next(str(name) for name in add.input if name in constants and name.endswith(".bias"))


def _length(table: np.ndarray) -> int:
    return int(table.shape[1])
