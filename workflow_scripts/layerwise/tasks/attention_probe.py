"""The attention probe: one learned query reads the tokens of a layer; all layers are trained from one pass per epoch."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from layerwise.errors import DataError, ModelError

OnLayer = Callable[[int, Tensor], None]
Pass = Callable[[list[int], OnLayer], None]
"""Runs a frozen model on these rows and calls ``on_layer(i, states)`` with (B, T, D) for every layer i = 0..L."""

EPSILON = 1e-6
_QUERY_SCALE = 0.02


@dataclasses.dataclass(frozen=True)
class Training:
    """How probes are trained; the defaults are the study's (its code, adapted from Apple's ml-aim).

    Attributes:
        seeds: of the initial weights, one probe each; ``order_seed``: of the batches, which all probes share.
        batch: images; statistics and steps are taken over one batch.
        heads: where the width is no multiple of it, its largest divisor below is used.
    """

    seeds: tuple[int, ...] = (0,)
    order_seed: int = 0
    epochs: int = 1
    batch: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    heads: int = 8


@dataclasses.dataclass(frozen=True)
class Probed:
    """What the probes got.

    Attributes:
        correct: (L + 1, S, N) whether the probe of a layer and seed is right about a test image.
        train_loss: (L + 1, S) mean cross-entropy over the images of the last epoch, each before the step on it; nats.
        heads: how many heads every probe has.
    """

    correct: NDArray[np.bool_]
    train_loss: NDArray[np.float64]
    heads: int


class AttentionProbe(nn.Module):
    """A query attends to tokens with ``heads`` heads; a linear layer reads the class from what it gathers."""

    def __init__(self, width: int, n_classes: int, heads: int) -> None:
        """Draw the initial weights from PyTorch's generator, in the order query, key, value, linear."""
        super().__init__()
        self.heads = heads
        self.query = nn.Parameter(torch.randn(width) * _QUERY_SCALE)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.linear = nn.Linear(width, n_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (B, C) logits for (B, T, D) tokens.

        There is one query, so keys and values of single tokens are never needed: ``key`` is applied to the query and
        ``value`` to the weighted sums of tokens, which costs T times less and is the same.
        """
        width = tokens.shape[-1]
        split = (self.heads, width // self.heads, width)
        query = self.query.view(split[:2]) * split[1] ** -0.5
        directions = torch.einsum("hd,hdf->hf", query, self.key.weight.view(split))
        attention = (tokens @ directions.T).softmax(dim=1)  # (B, T, H)
        gathered = attention.transpose(1, 2) @ tokens  # (B, H, D)
        heads = torch.einsum("bhf,hdf->bhd", gathered, self.value.weight.view(split))
        logits: Tensor = self.linear(heads.flatten(1))
        return logits


class LayerProbes:
    """The probes of one layer, one for each seed, and the statistics of its tokens, which they share."""

    def __init__(self, states: Tensor, n_classes: int, how: Training) -> None:
        """Make the probes on the device of ``states`` (B, T, D); those of one seed start equal at every layer."""
        width = states.shape[-1]
        self.heads = next(heads for heads in range(min(how.heads, width), 0, -1) if width % heads == 0)
        # The average over all batches, not PyTorch's decaying one, which after few batches still is its initial value.
        self.norm = nn.BatchNorm1d(width, eps=EPSILON, affine=False, momentum=None).to(states.device)
        self.probes = []
        for seed in how.seeds:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.probes.append(AttentionProbe(width, n_classes, self.heads).to(states.device))
        parameters = [parameter for probe in self.probes for parameter in probe.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=how.learning_rate, weight_decay=how.weight_decay)
        self.losses: list[Tensor] = []

    def step(self, states: Tensor, labels: Tensor) -> None:
        """Train every probe on one batch and keep the sum of its losses over images."""
        tokens, labels = self._normed(states), labels.to(states.device)
        losses = torch.stack([functional.cross_entropy(probe(tokens), labels) for probe in self.probes])
        self.optimizer.zero_grad()
        losses.sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.losses.append(losses.detach() * len(labels))

    def predict(self, states: Tensor) -> Tensor:
        """Return the (S, B) predicted classes."""
        tokens = self._normed(states)
        return torch.stack([probe(tokens).argmax(dim=1) for probe in self.probes]).cpu()

    def _normed(self, states: Tensor) -> Tensor:
        return self.norm(states.float().flatten(0, 1)).view(states.shape)


class Probes:
    """The probes of all layers, made as the layers are first seen."""

    def __init__(self, labels: NDArray[np.int64], n_train: int, how: Training) -> None:
        """Keep the (N,) classes; the first ``n_train`` rows are trained on, the others tested."""
        self.labels, self.n_train, self.how = torch.from_numpy(labels), n_train, how
        self.n_classes = int(labels.max()) + 1
        self.layers: dict[int, LayerProbes] = {}
        self.correct: dict[int, NDArray[np.bool_]] = {}

    def start_epoch(self) -> None:
        """Forget the losses of the epoch before."""
        for probes in self.layers.values():
            probes.losses.clear()

    def train(self, rows: list[int], layer: int, states: Tensor) -> None:
        """Train the probes of a layer on the states (B, T, D) of these rows."""
        if states.shape[0] * states.shape[1] < 2:
            raise ModelError("an attention probe cannot be trained on one token of one image; write 'batch: 2' or more.")
        if layer not in self.layers:
            self.layers[layer] = LayerProbes(states, self.n_classes, self.how)
        self.layers[layer].step(states, self.labels[rows])

    def start_test(self) -> None:
        """Use the statistics of the train images from now on."""
        shape = len(self.how.seeds), len(self.labels) - self.n_train
        for layer, probes in self.layers.items():
            probes.norm.eval()
            self.correct[layer] = np.zeros(shape, dtype=np.bool_)

    def test(self, rows: list[int], layer: int, states: Tensor) -> None:
        """Note whether the probes of a layer are right about these rows."""
        right = self.layers[layer].predict(states) == self.labels[rows]
        self.correct[layer][:, [row - self.n_train for row in rows]] = right.numpy()

    def outcome(self) -> Probed:
        """Return what the probes got.

        Raises:
            ModelError: the loss of a layer is no number.
        """
        losses = []
        for layer, probes in sorted(self.layers.items()):
            loss = torch.stack(probes.losses).cpu().double().sum(dim=0).numpy() / self.n_train
            if not np.isfinite(loss).all():
                raise ModelError(
                    f"an attention probe of layer {layer} came to the loss {loss.max()}; write 'dtype: float32' for the "
                    "model or a smaller 'learning_rate' for the task."
                )
            losses.append(loss)
        correct = [right for _, right in sorted(self.correct.items())]
        return Probed(np.stack(correct), np.stack(losses), self.layers[0].heads)


def train_and_test(
    run: Pass, labels: NDArray[np.int64], n_train: int, how: Training, progress: Callable[[int, int], None]
) -> Probed:
    """Train a probe for every layer and seed from one pass per epoch, and test all of them in one more.

    One layer of one batch is held at a time, beside the probes (float32) and their optimizers.

    Args:
        run: see ``Pass``.
        labels: (N,) classes 0..C-1 of all rows.
        n_train: the first so many rows are trained on, the others tested.
        how: see ``Training``.
        progress: called with (images done, images of all passes).

    Raises:
        DataError: one class only.
        ModelError: states of one token of one image, a loss that is no number, or a batch that does not fit into memory.
    """
    if len(set(labels[:n_train].tolist())) < 2:
        raise DataError("the train images of an attention probe have one class only, two are needed; name another 'label'.")
    probes, n_test = Probes(labels, n_train, how), len(labels) - n_train
    total, done = how.epochs * n_train + n_test, 0
    for epoch in range(how.epochs):
        probes.start_epoch()
        order = np.random.default_rng([how.order_seed, epoch]).permutation(n_train).tolist()
        for rows in batches(order, how.batch):
            _run(run, rows, functools.partial(probes.train, rows), grad=True)
            progress(done := done + len(rows), total)
    probes.start_test()
    for rows in batches(list(range(n_train, len(labels))), how.batch):
        _run(run, rows, functools.partial(probes.test, rows), grad=False)
        progress(done := done + len(rows), total)
    return probes.outcome()


def batches(rows: list[int], size: int) -> list[list[int]]:
    """Cut ``rows`` into batches; a last one of a single image, which has no spread, joins the one before it."""
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [parts[-2] + parts[-1]]
    return parts


def _run(run: Pass, rows: list[int], on_layer: OnLayer, grad: bool) -> None:
    """Run one batch; ``on_layer`` may train although the model runs without gradients."""

    def apart(layer: int, states: Tensor) -> None:
        with torch.inference_mode(False), torch.set_grad_enabled(grad):
            on_layer(layer, states)

    try:
        run(rows, apart)
    except torch.OutOfMemoryError as error:
        raise ModelError(
            f"a batch of {len(rows)} images and the probes do not fit into memory; write a smaller 'batch' for the task."
        ) from error
