"""Cutting a model after a block, for good or while something is measured."""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from torch import nn


class Stack(Protocol):
    """Where the blocks of a model are."""

    @property
    def blocks(self) -> nn.ModuleList | nn.Sequential:
        """In order."""
        ...

    @property
    def path(self) -> str:
        """Their name in the model."""
        ...


@contextlib.contextmanager
def shortened(module: nn.Module, stack: Stack, kept: int) -> Iterator[None]:
    """Let ``module`` run its first ``kept`` blocks only, inside this context."""
    parent, _, leaf = stack.path.rpartition(".")
    holder = module.get_submodule(parent)
    config: Any = getattr(module, "config", None)
    setattr(holder, leaf, type(stack.blocks)(*_as_arguments(stack.blocks, kept)))
    counted = hasattr(config, "num_hidden_layers")
    if counted:
        whole, config.num_hidden_layers = config.num_hidden_layers, kept
    try:
        yield
    finally:
        setattr(holder, leaf, stack.blocks)
        if counted:
            config.num_hidden_layers = whole


def _as_arguments(blocks: nn.ModuleList | nn.Sequential, kept: int) -> list[Any]:
    first = list(blocks)[:kept]
    return first if isinstance(blocks, nn.Sequential) else [first]


def cut(module: nn.Module, stack: Stack, kept: int) -> None:
    """Drop the blocks after the first ``kept``, and what the configuration says of them (lists with one entry a layer)."""
    whole = len(stack.blocks)
    del stack.blocks[kept:]
    config: Any = getattr(module, "config", None)
    if config is None:
        return
    for key, value in config.to_dict().items():
        if "layer" in key and isinstance(value, list) and len(value) == whole:
            setattr(config, key, value[:kept])
    config.num_hidden_layers = kept


def parameters(module: nn.Module) -> int:
    """Return how many numbers a model has."""
    return sum(parameter.numel() for parameter in module.parameters())
