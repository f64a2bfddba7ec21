"""What is kept of a model so that a standard folder gives one readout at one layer."""

import dataclasses
from collections.abc import Mapping

from layerwise.errors import ModelError

POOLINGS = {"mean": "mean", "weighted_mean": "weightedmean", "last": "lasttoken", "first": "cls"}  # sentence-transformers'
STRICT = 1e-5  # of the largest stored number, for float32; half precision rounds every token
LOOSE = {"float32": STRICT, "float16": 4e-3, "bfloat16": 3e-2}


@dataclasses.dataclass(frozen=True)
class Form:
    """How a folder gives the vectors of one layer.

    Attributes:
        layer: whose vectors they are.
        n_layers: L of the whole model.
        readout: the config's entry: name, norm, tokens, pool.
        kept: blocks in the folder: ``layer``, or one more where the state before a block is read.
        raw: the model has a final norm that this readout does without.
    """

    layer: int
    n_layers: int
    readout: Mapping[str, str]
    kept: int
    raw: bool

    @property
    def name(self) -> str:
        """Name of the readout."""
        return self.readout["name"]


def form(layer: int, n_layers: int, readout: Mapping[str, str], has_norm: bool, modality: str) -> Form:
    """Return the form, or say why there is none.

    sentence-transformers reads what a model gives after its final norm, so raw tokens of a text are read before the block
    that follows the cut: one block more than needed is kept. For images the norm is replaced in the code on the card.

    Args:
        layer: 1..L.
        n_layers: L.
        readout: the config's entry.
        has_norm: whether the model has a final norm.
        modality: "text" or "image".

    Raises:
        ModelError: layer 0, a layer the model has not, or raw tokens of a text at the last layer.
    """
    name = readout["name"]
    if layer < 1:
        raise ModelError("layer 0 is what enters the first block: a table of embeddings, no model; write another 'layer'.")
    if layer > n_layers:
        raise ModelError(f"there is no layer {layer}: the model has layers 0 to {n_layers}; write one of those.")
    raw = has_norm and readout["norm"] == "none"
    kept = layer + 1 if raw and modality == "text" else layer
    if kept > n_layers:
        raise ModelError(
            f"readout {name!r} at the last layer has no standard form: the model norms its last layer, and no block follows "
            "before which it could be read; write a readout with 'norm: final', such as 'mean_normed', or an earlier layer."
        )
    return Form(layer, n_layers, readout, kept, raw)


def tolerance(dtype: str, half_stored: bool) -> float:
    """Return the largest difference allowed, as a share of the largest stored number.

    Args:
        dtype: in which the model ran.
        half_stored: the activation file holds float16.
    """
    return max(LOOSE[dtype], LOOSE["float16"] if half_stored else 0.0)
