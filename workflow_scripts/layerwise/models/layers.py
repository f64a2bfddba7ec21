"""Where the layers of a model begin and end: the one place that knows.

Layer 0 is the residual stream that enters the first block, layer i the output of block i, layer L the output of the
last block without the model's final norm. Reading at block boundaries gives this for every architecture, whatever the
library puts into its own list of hidden states. Where inside a block it can be read besides: ``models.taps``.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from layerwise.errors import ModelError
from layerwise.models.layered import NO_TAPS, OnLayer
from layerwise.models.taps import tap_hooks

_STACKS = (
    "layers",
    "h",
    "blocks",
    "encoder.layer",
    "encoder.layers",
    "decoder.layers",
    "transformer.resblocks",
    "trunk.blocks",
    "model.layer",
)


@dataclasses.dataclass(frozen=True)
class LayerStack:
    """The blocks of a model in order, and its final norm where it has one."""

    blocks: nn.ModuleList | nn.Sequential
    final_norm: nn.Module | None
    path: str

    @property
    def layer_names(self) -> list[str]:
        """Name of each layer 0..L: where in the model it is read."""
        return [f"input of {self.path}.0", *(f"{self.path}.{i}" for i in range(len(self.blocks)))]


def find_layers(model: nn.Module, forward: Callable[[], object], n_blocks: int | None = None) -> LayerStack:
    """Find the stack of blocks and the final norm of ``model``.

    The final norm is the norm that reads every token of the last block's output. That is seen in a forward pass rather
    than guessed from names: CLIP's vision tower norms its pooled token only, BEiT's and many timm models have an identity
    in its place, and those have no final norm.

    Args:
        model: the backbone, without a head.
        forward: runs the model on any small input.
        n_blocks: how many blocks its config promises, where known.

    Raises:
        ModelError: no stack of blocks, one of another length than promised, or layers of different width.
    """
    for path in _STACKS:
        blocks = _get(model, path)
        if isinstance(blocks, nn.ModuleList | nn.Sequential) and len(blocks) and n_blocks in (None, len(blocks)):
            stack = LayerStack(blocks, None, path)
            return dataclasses.replace(stack, final_norm=_final_norm(model, stack, forward))
    raise ModelError(
        f"{type(model).__name__} has no stack of {n_blocks or 'equal'} blocks under {', '.join(_STACKS)}; layerwise reads "
        "models that are one sequence of blocks of equal width."
    )


def _final_norm(model: nn.Module, stack: LayerStack, forward: Callable[[], object]) -> nn.Module | None:
    last: list[Tensor] = []
    readers: list[nn.Module] = []

    def note(module: nn.Module, args: tuple[Any, ...]) -> None:
        if last and args and isinstance(args[0], Tensor) and torch.equal(args[0].cpu(), last[0].cpu()):
            readers.append(module)

    def keep_last(layer: int, states: Tensor) -> None:
        if layer == len(stack.blocks):
            last.append(states.detach().clone())

    inside = set(stack.blocks.modules())
    norms = [m for m in model.modules() if m not in inside and "norm" in type(m).__name__.lower()]
    handles = [module.register_forward_pre_hook(note) for module in norms]
    try:
        with reading(stack, keep_last):
            forward()
    finally:
        for handle in handles:
            handle.remove()
    return readers[0] if readers else None


@contextlib.contextmanager
def reading(stack: LayerStack, on_layer: OnLayer, taps: Mapping[str, OnLayer] = NO_TAPS) -> Iterator[None]:
    """Call ``on_layer(i, states)`` for layers 0..L while a forward pass runs inside this context.

    States are handed over as each block finishes, so that no more than one layer needs to be held.

    Args:
        stack: from ``find_layers``.
        on_layer: reads the residual stream.
        taps: readers of places inside the blocks, by tap name, each called for i = 1..L.

    Raises:
        ModelError: before the forward pass, where a tap is asked for that is not known for this kind of block; in it, where
            a block changes the width, as in hierarchical models.
    """
    width = 0

    def before_first(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        nonlocal width
        states = args[0] if args else kwargs["hidden_states"]
        width = states.shape[-1]
        on_layer(0, states)

    def after(index: int) -> Any:  # noqa: ANN401 - torch's hook type
        def hook(_module: nn.Module, _args: tuple[Any, ...], output: Tensor | tuple[Tensor, ...]) -> None:
            states = output[0] if isinstance(output, tuple) else output
            if states.shape[-1] != width:
                raise ModelError(
                    f"{stack.path}.{index - 1} turns width {width} into {states.shape[-1]}; layerwise reads models that "
                    "are one sequence of blocks of equal width."
                )
            on_layer(index, states)

        return hook

    handles = [*tap_hooks(list(stack.blocks), taps)]
    handles += [stack.blocks[0].register_forward_pre_hook(before_first, with_kwargs=True)]
    handles += [block.register_forward_hook(after(i)) for i, block in enumerate(stack.blocks, 1)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _get(module: nn.Module, path: str) -> object:
    for name in path.split("."):
        module = getattr(module, name, None)  # type: ignore[assignment]
    return module
