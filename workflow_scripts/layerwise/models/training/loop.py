"""The training loop: AdamW, warm-up and cosine, gradient clipping; losses at checkpoints; a run that diverges stops."""

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from layerwise.errors import ModelError
from layerwise.models.training.objective import Objective

_WARM_UP = 0.1  # share of the steps
_LAST_RATE = 0.1  # of the peak
_CLIP = 1.0  # norm of all gradients together
_BETAS, _DECAY = (0.9, 0.98), 0.05
_HELD_OUT, _MOST_HELD_OUT, _LEAST_ROWS = 0.1, 256, 20
_TOO_HIGH, _PATIENCE = 3.0, 5  # a loss beyond 3 times the first, in 5 steps one after the other


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Attributes:
        steps: number of updates.
        checkpoints: steps at which the model is evaluated and saved, ascending, from 0 to ``steps``.
        batch: samples of one update.
        learning_rate: at its peak.
        seed: of the split, the order of the samples, and what an objective draws.
    """

    steps: int
    checkpoints: tuple[int, ...]
    batch: int
    learning_rate: float
    seed: int


@dataclasses.dataclass(frozen=True)
class Losses:
    """Losses at one checkpoint, each a mean over the same samples, masks and batches at every checkpoint."""

    step: int
    train_loss: float
    heldout_loss: float


def fit(
    objective: Objective,
    schedule: Schedule,
    at_checkpoint: Callable[[Losses], None],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, int]:
    """Train; call ``at_checkpoint`` with the losses at each checkpoint, the model being in evaluation mode then.

    Args:
        objective: what is trained, in place.
        schedule: see there.
        at_checkpoint: saves the model.
        progress: called with (done, total) steps.

    Returns:
        The number of samples trained on and of those held out.

    Raises:
        ModelError: too few samples, or the run diverges: a loss that is no number, or that stays above three times the
            first one; the message states step and loss.
    """
    order, training, held_out = _split(objective.rows, schedule)
    watch = _Watch(schedule)
    optimiser = _optimiser(objective.module, schedule.learning_rate)
    chance = torch.Generator().manual_seed(schedule.seed + 1)
    batches = _batches(training, schedule.batch, order)
    evaluated = [_whole_batches(rows, schedule.batch) for rows in (training[: len(held_out)], held_out)]
    for step in range(schedule.steps + 1):
        if step in schedule.checkpoints:
            losses = Losses(step, *(_mean_loss(objective, rows, schedule) for rows in evaluated))
            watch.check(step, losses.train_loss + losses.heldout_loss, finite_only=True)
            print(f"step {step}: loss {losses.train_loss:.3f}, held out {losses.heldout_loss:.3f}", file=sys.stderr)
            at_checkpoint(losses)
        if step == schedule.steps:
            break
        objective.module.train()
        loss = objective.loss(next(batches), chance)
        watch.check(step, float(loss.detach()))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(objective.module.parameters(), _CLIP)
        for group in optimiser.param_groups:
            group["lr"] = schedule.learning_rate * _rate(step, schedule.steps)
        optimiser.step()
        if progress is not None:
            progress(step + 1, schedule.steps)
    return len(training), len(held_out)


class _Watch:
    """Stops a run that diverges."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.first, self.high = schedule, math.nan, 0

    def check(self, step: int, loss: float, finite_only: bool = False) -> None:
        """Note the loss of a step.

        Raises:
            ModelError: it is no number, or too high for too long.
        """
        if not finite_only:
            self.first = loss if math.isnan(self.first) else self.first
            self.high = self.high + 1 if loss > _TOO_HIGH * self.first else 0
        if not math.isfinite(loss) or self.high >= _PATIENCE:
            raise ModelError(
                f"training diverged at step {step} of {self.schedule.steps} with loss {loss:.4g} (the first was "
                f"{self.first:.4g}); write a smaller 'learning_rate' than {self.schedule.learning_rate:g}."
            )


def _split(rows: int, schedule: Schedule) -> tuple[torch.Generator, Tensor, Tensor]:
    """The generator of the order, and the shuffled rows for training and those held out."""
    if rows < _LEAST_ROWS:
        raise ModelError(f"the dataset has {rows} samples to train on, {_LEAST_ROWS} are needed; take a larger one.")
    order = torch.Generator().manual_seed(schedule.seed)
    shuffled = torch.randperm(rows, generator=order)
    count = min(max(1, int(rows * _HELD_OUT)), _MOST_HELD_OUT)
    return order, shuffled[count:], shuffled[:count]


def _batches(rows: Tensor, size: int, order: torch.Generator) -> Iterator[Tensor]:
    """Batches of equal size without end; every epoch in an order of its own."""
    while True:
        yield from _whole_batches(rows[torch.randperm(len(rows), generator=order)], size)


def _whole_batches(rows: Tensor, size: int) -> list[Tensor]:
    """Full batches only, since a contrastive loss depends on their size; one of all rows where there are fewer."""
    return [rows] if len(rows) < size else list(torch.split(rows[: len(rows) // size * size], size))


def _optimiser(module: nn.Module, rate: float) -> torch.optim.AdamW:
    """AdamW; biases, gains and decays of state spaces are not decayed."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": _DECAY},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=_BETAS)


def _rate(step: int, steps: int) -> float:
    """Share of the peak learning rate at a step: a linear rise, then half a cosine."""
    rise = max(1, round(_WARM_UP * steps))
    if step < rise:
        return (step + 1) / rise
    done = (step - rise) / max(1, steps - rise)
    return _LAST_RATE + (1 - _LAST_RATE) * (1 + math.cos(math.pi * done)) / 2


@torch.no_grad()
def _mean_loss(objective: Objective, batches: list[Tensor], schedule: Schedule) -> float:
    objective.module.eval()
    chance = torch.Generator().manual_seed(schedule.seed + 2)  # the same masks at every checkpoint
    return sum(objective.loss(rows, chance).item() for rows in batches) / len(batches)
