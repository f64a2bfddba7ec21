"""The attention probe: the same as one layer trained alone in plain PyTorch, and it finds what is there to be found."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from layerwise.errors import DataError, ModelError
from layerwise.tasks.attention_probe import AttentionProbe, Pass, Probes, Training, batches, train_and_test
from torch import Tensor, nn

N_TRAIN, N_TEST, TOKENS, WIDTH, CLASSES = 150, 80, 5, 16, 3
HOW = Training(seeds=(0, 3), order_seed=7, epochs=2, batch=32, learning_rate=3e-3, weight_decay=1e-2, heads=4)


def quiet(_done: int, _total: int) -> None:
    """No progress."""


def labels(n: int = N_TRAIN + N_TEST) -> np.ndarray:
    return np.random.default_rng(1).integers(0, CLASSES, n)


def states(planted: tuple[int, ...] = (1, 2), seed: int = 0, width: int = WIDTH) -> list[Tensor]:
    """Three layers (N, T, D) of noise; in the ``planted`` ones, one token of each image, at any place, tells its class."""
    rng, truth = np.random.default_rng(seed), labels()
    layers = []
    for layer in range(3):
        values = rng.standard_normal((len(truth), TOKENS, width)) * (1 + layer) + 5 * layer
        if layer in planted:
            places = rng.integers(0, TOKENS, len(truth))
            values[np.arange(len(truth)), places, truth] += 8 * (1 + layer)
        layers.append(torch.tensor(values, dtype=torch.float32))
    return layers


def passing(layers: list[Tensor]) -> Pass:
    """A frozen model that looks its layers up; like a real one, it runs in inference mode."""

    def run(rows: list[int], on_layer: Callable[[int, Tensor], None]) -> None:
        with torch.inference_mode():
            for layer, values in enumerate(layers):
                on_layer(layer, values[rows].clone())

    return run


class Plain(nn.Module):
    """The probe as Apple's ml-aim writes it: keys and values of every token, heads by reshaping."""

    def __init__(self, width: int, classes: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Parameter(torch.randn(width) * 0.02)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.linear = nn.Linear(width, classes)
        self.norm = nn.BatchNorm1d(width, affine=False, eps=1e-6, momentum=None)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        x = self.norm(x.transpose(-2, -1)).transpose(-2, -1)
        q = self.query.expand(b, 1, -1).reshape(b, 1, self.heads, d // self.heads).permute(0, 2, 1, 3)
        k = self.key(x).reshape(b, n, self.heads, d // self.heads).permute(0, 2, 1, 3)
        v = self.value(x).reshape(b, n, self.heads, d // self.heads).permute(0, 2, 1, 3)
        attention = (q * (d // self.heads) ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.linear((attention @ v).transpose(1, 2).reshape(b, d))


def alone(values: Tensor, seed: int, how: Training) -> tuple[Plain, float, np.ndarray]:
    """Train one layer alone: the slow reference."""
    truth = torch.tensor(labels())
    torch.manual_seed(seed)
    probe = Plain(values.shape[-1], CLASSES, how.heads)
    optimizer = torch.optim.Adam(probe.parameters(), lr=how.learning_rate, weight_decay=how.weight_decay)
    for epoch in range(how.epochs):
        total = 0.0
        order = np.random.default_rng([how.order_seed, epoch]).permutation(N_TRAIN)
        for start in range(0, N_TRAIN, how.batch):
            rows = order[start : start + how.batch]
            loss = nn.functional.cross_entropy(probe(values[rows]), truth[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
    probe.eval()
    with torch.no_grad():
        return probe, total / N_TRAIN, (probe(values[N_TRAIN:]).argmax(1) == truth[N_TRAIN:]).numpy()


def trained(layers: list[Tensor], how: Training) -> Probes:
    """The probes themselves, after training."""
    probes = Probes(labels(), N_TRAIN, how)
    run = passing(layers)
    for epoch in range(how.epochs):
        probes.start_epoch()
        for rows in batches(np.random.default_rng([how.order_seed, epoch]).permutation(N_TRAIN).tolist(), how.batch):

            def train(layer: int, values: Tensor, rows: list[int] = rows) -> None:
                with torch.inference_mode(False):
                    probes.train(rows, layer, values)

            run(rows, train)
    return probes


def test_every_layer_and_seed_is_what_it_is_when_trained_alone() -> None:
    layers = states()
    found, probes = train_and_test(passing(layers), labels(), N_TRAIN, HOW, quiet), trained(layers, HOW)
    assert found.correct.shape == (3, 2, N_TEST)
    assert found.heads == 4
    for layer, values in enumerate(layers):
        for k, seed in enumerate(HOW.seeds):
            reference, loss, right = alone(values, seed, HOW)
            assert found.train_loss[layer, k] == pytest.approx(loss, abs=1e-6)
            assert found.correct[layer, k].tolist() == right.tolist()
            own, norm = probes.layers[layer].probes[k].state_dict(), probes.layers[layer].norm
            for name, weight in own.items():
                torch.testing.assert_close(weight, reference.state_dict()[name], rtol=0, atol=1e-6)
            torch.testing.assert_close(norm.running_var, reference.norm.running_var)
            torch.testing.assert_close(norm.running_mean, reference.norm.running_mean)


def test_one_forward_is_that_of_keys_and_values_of_every_token() -> None:
    torch.manual_seed(0)
    plain = Plain(24, 4, 8).double()
    own = AttentionProbe(24, 4, 8).double()
    own.load_state_dict({name: value for name, value in plain.state_dict().items() if "norm" not in name})
    with torch.no_grad():
        own.query.mul_(100)
        plain.query.mul_(100)
    tokens = torch.randn(6, 9, 24, dtype=torch.float64)
    normed = plain.norm(tokens.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(own(normed), plain(tokens), rtol=1e-10, atol=1e-10)


def test_a_planted_class_is_found_and_noise_is_not() -> None:
    how = Training(epochs=30, batch=32, learning_rate=3e-3, heads=4, seeds=(0, 1))
    found = train_and_test(passing(states(planted=(2,))), labels(), N_TRAIN, how, quiet)
    accuracy = found.correct.mean(axis=(1, 2))
    assert accuracy[2] > 0.9  # the last block is probed too
    assert accuracy[:2].max() < 0.5
    assert found.train_loss[2].max() < 0.2


def test_seeds_are_everything_that_is_random() -> None:
    layers = states()
    torch.manual_seed(1)
    first = train_and_test(passing(layers), labels(), N_TRAIN, HOW, quiet)
    before = torch.get_rng_state()
    torch.manual_seed(2)
    again = train_and_test(passing(layers), labels(), N_TRAIN, HOW, quiet)
    other = train_and_test(passing(layers), labels(), N_TRAIN, dataclasses.replace(HOW, order_seed=8), quiet)
    np.testing.assert_array_equal(first.train_loss, again.train_loss)
    np.testing.assert_array_equal(first.correct, again.correct)
    assert (first.train_loss[:, 0] != first.train_loss[:, 1]).all()
    assert (first.train_loss != other.train_loss).all()
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), before)  # nothing else is drawn from PyTorch's generator


def test_one_seed_does_not_depend_on_the_others() -> None:
    layers = states()
    both = train_and_test(passing(layers), labels(), N_TRAIN, HOW, quiet)
    one = train_and_test(passing(layers), labels(), N_TRAIN, dataclasses.replace(HOW, seeds=(3,)), quiet)
    np.testing.assert_allclose(one.train_loss[:, 0], both.train_loss[:, 1], rtol=1e-6)


@pytest.mark.parametrize(("width", "heads"), [(16, 8), (12, 6), (7, 7), (13, 1), (4, 4), (20, 5)])
def test_heads_divide_the_width(width: int, heads: int) -> None:
    assert train_and_test(passing(states(width=width)), labels(), N_TRAIN, Training(batch=64), quiet).heads == heads


def test_half_precision_states_train_float32_probes() -> None:
    layers = states()
    found = train_and_test(passing([values.bfloat16() for values in layers]), labels(), N_TRAIN, HOW, quiet)
    reference = train_and_test(passing([v.bfloat16().float() for v in layers]), labels(), N_TRAIN, HOW, quiet)
    np.testing.assert_array_equal(found.train_loss, reference.train_loss)


def test_the_states_of_the_model_stay_as_they_are() -> None:
    layers = states()
    kept = [values.clone() for values in layers]

    probes = Probes(labels(), N_TRAIN, HOW)
    for layer, values in enumerate(layers):
        probes.train(list(range(N_TRAIN)), layer, values[:N_TRAIN])
    assert all(torch.equal(a, b) for a, b in zip(layers, kept, strict=True))


@pytest.mark.parametrize(
    ("n", "size", "sizes"), [(10, 4, [4, 4, 2]), (9, 4, [4, 5]), (4, 4, [4]), (1, 4, [1]), (3, 128, [3])]
)
def test_a_last_batch_of_one_image_joins_the_one_before(n: int, size: int, sizes: list[int]) -> None:
    parts = batches(list(range(n)), size)
    assert [len(part) for part in parts] == sizes
    assert [row for part in parts for row in part] == list(range(n))


def test_progress_counts_every_image_of_every_pass() -> None:
    seen: list[tuple[int, int]] = []
    train_and_test(passing(states()), labels(), N_TRAIN, HOW, lambda done, total: seen.append((done, total)))
    total = 2 * N_TRAIN + N_TEST
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match="one class only, two are needed; name another 'label'"):
        train_and_test(passing(states()), np.zeros(N_TRAIN + N_TEST, dtype=np.int64), N_TRAIN, HOW, quiet)


def test_one_token_of_one_image_has_no_spread() -> None:
    with pytest.raises(ModelError, match="one token of one image; write 'batch: 2'"):
        Probes(labels(), N_TRAIN, HOW).train([0], 0, torch.zeros(1, 1, WIDTH))


def test_states_that_are_no_numbers_are_refused_with_their_layer() -> None:
    layers = states()
    layers[1][3, 2, 1] = float("inf")
    with pytest.raises(ModelError, match=r"of layer 1 came to the loss nan; write 'dtype: float32'"):
        train_and_test(passing(layers), labels(), N_TRAIN, HOW, quiet)


def test_a_batch_that_does_not_fit_is_said_so() -> None:
    def run(_rows: list[int], _on_layer: Callable[[int, Tensor], None]) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(ModelError, match=r"a batch of 32 images .* write a smaller 'batch'"):
        train_and_test(run, labels(), N_TRAIN, HOW, quiet)
