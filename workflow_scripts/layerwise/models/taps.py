"""Where inside a block a layer is read: the taps beside the residual stream (the study, Fig. 15).

attention_norm       output of the norm that belongs to the attention: before it (GPT-NeoX, Llama, ViT) or, in a block that
                     norms after each sum (BERT), after its residual
attention            what the attention adds to the residual stream (ViT with LayerScale: after the scale)
attention_residual   input of the block + attention
mlp                  what the MLP adds to the residual stream

The fifth place, the sum after the MLP, is ``residual``: the block's output, layer i itself (BERT: after its norm). Tap i is
that of block i = 1..L; before the first block there is none. Where attention and MLP read the same input (GPT-NeoX with
``use_parallel_residual``), the model never forms input + attention; ``attention_residual`` is that sum all the same.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from layerwise.errors import ModelError
from layerwise.models.layered import OnLayer

ATTENTION_RESIDUAL = "attention_residual"
TAPS = ("attention_norm", "attention", ATTENTION_RESIDUAL, "mlp")


@dataclasses.dataclass(frozen=True)
class Parts:
    """Paths of the submodules of a block whose outputs are taps."""

    attention_norm: str
    attention: str
    mlp: str


_DECODER = Parts("input_layernorm", "self_attn", "mlp")
_POST_NORM = Parts("attention.output.LayerNorm", "attention.output.dense", "output.dense")
_SCALED = Parts("norm1", "layer_scale1", "layer_scale2")
_PARTS = {
    "GPTNeoXLayer": Parts("input_layernorm", "attention", "mlp"),
    "LlamaDecoderLayer": _DECODER,
    "MistralDecoderLayer": _DECODER,
    "Qwen2DecoderLayer": _DECODER,
    "Qwen3DecoderLayer": _DECODER,
    "GPT2Block": Parts("ln_1", "attn", "mlp"),
    "BertLayer": _POST_NORM,
    "RobertaLayer": _POST_NORM,
    "ViTLayer": Parts("layernorm_before", "attention", "mlp"),
    "Dinov2Layer": _SCALED,
    "Dinov2WithRegistersLayer": _SCALED,
    "Block": Parts("norm1", "ls1", "ls2"),  # timm's ViT
}


def tap_hooks(blocks: Sequence[nn.Module], taps: Mapping[str, OnLayer]) -> list[RemovableHandle]:
    """Register hooks that call ``taps[name](i, states)`` with (B, T, D) for every block i = 1..L as each tap is reached.

    Args:
        blocks: of one model, in order.
        taps: readers by tap name; none registers nothing.

    Returns:
        The handles, to be removed after the forward pass.

    Raises:
        ModelError: a name that is no tap, or a kind of block whose parts are not known: here, before any forward pass; in
            the forward pass, a part that gives another shape than the block reads.
    """
    modules = [_modules(block, taps) for block in blocks] if taps else []
    handles = []
    for index, (block, parts) in enumerate(zip(blocks, modules, strict=False), 1):
        own = _Block(index, taps)
        handles.append(block.register_forward_pre_hook(own.enter, with_kwargs=True))
        handles += [parts[name].register_forward_hook(own.reader(name)) for name in taps if name in parts]
        if ATTENTION_RESIDUAL in taps:
            handles.append(parts["attention"].register_forward_hook(own.reader(ATTENTION_RESIDUAL)))
        handles.append(block.register_forward_hook(own.leave))
    return handles


class _Block:
    """The hooks of one block, which remember its input while it runs."""

    def __init__(self, index: int, taps: Mapping[str, OnLayer]) -> None:
        self.index, self.taps = index, taps
        self.input: Tensor | None = None

    def enter(self, _block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.input = args[0] if args else kwargs["hidden_states"]

    def leave(self, *_call: object) -> None:
        self.input = None

    def reader(self, tap: str) -> Any:  # noqa: ANN401 - torch's hook type
        def hook(module: nn.Module, _args: tuple[Any, ...], output: Tensor | tuple[Tensor, ...]) -> None:
            states = output[0] if isinstance(output, tuple) else output
            if self.input is None or states.shape != self.input.shape:
                raise ModelError(
                    f"{type(module).__name__} in block {self.index} gives the shape {tuple(states.shape)}, its block reads "
                    f"{tuple(self.input.shape) if self.input is not None else 'nothing'}; write 'taps: [residual]'."
                )
            self.taps[tap](self.index, self.input + states if tap == ATTENTION_RESIDUAL else states)

        return hook


def _modules(block: nn.Module, taps: Mapping[str, OnLayer]) -> dict[str, nn.Module]:
    """The submodules of a block by tap name."""
    unknown = [tap for tap in taps if tap not in TAPS]
    if unknown:
        raise ModelError(f"{unknown[0]!r} is no tap inside a block; write some of {', '.join(TAPS)}.")
    parts = _PARTS.get(type(block).__name__)
    try:
        return {name: block.get_submodule(path) for name, path in dataclasses.asdict(parts).items()}  # type: ignore[arg-type]
    except (AttributeError, TypeError):
        raise ModelError(
            f"blocks of type {type(block).__name__} have no known taps ({', '.join(taps)} asked for); write "
            f"'taps: [residual]' for this dataset, or add its parts to those of {', '.join(_PARTS)} in models/taps.py."
        ) from None
