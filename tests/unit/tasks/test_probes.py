"""Probes: right on separable data, at chance without signal, and blind to the rows they are tested on."""

import numpy as np
import pytest
from layerwise.tasks.probes import cluster, cosine_pairs, cross_validated_probe, linear_probe


def data(
    n: int = 90, classes: int = 3, signal: float = 8.0, seed: int = 0, width: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    return rng.standard_normal((n, width)) + signal * np.eye(classes, width)[labels], labels


def test_separable_classes_are_told_apart() -> None:
    (train, train_labels), (test, test_labels) = data(signal=30.0), data(signal=30.0, seed=1)
    assert linear_probe(train, train_labels, test, test_labels, 0).tolist() == [1] * 90
    assert cross_validated_probe(train, train_labels, 5, 0).tolist() == [1] * 90
    names = np.array(["a", "b", "c"])
    assert linear_probe(train, names[train_labels], test, names[test_labels], 0).all()


def test_shuffled_labels_are_at_chance() -> None:
    found = []
    for seed in range(6):
        vectors, labels = data(n=120, seed=seed)
        shuffled = np.random.default_rng(seed).permutation(labels)
        found.append(cross_validated_probe(vectors, shuffled, 4, seed).mean())
    assert 0.25 < np.mean(found) < 0.42


def test_the_answer_is_per_item() -> None:
    (train, train_labels), (test, test_labels) = data(), data(seed=1)
    wrong = test_labels.copy()
    wrong[[4, 17]] = (wrong[[4, 17]] + 1) % 3
    found = linear_probe(train, train_labels, test, wrong, 0)
    assert np.flatnonzero(found == 0).tolist() == [4, 17]


def test_no_fold_sees_its_own_rows() -> None:
    """Each row has a feature of its own that gives its label away: of use only to a probe that was fitted on that row."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(60) % 2)
    leak = np.eye(60) * np.where(labels, 5.0, -5.0)[:, None]
    assert linear_probe(leak, labels, leak, labels, 0).all()
    assert cross_validated_probe(leak, labels, 5, 0).mean() < 0.7


def test_test_rows_do_not_change_the_probe() -> None:
    (train, train_labels), (test, test_labels) = data(signal=1.0), data(signal=1.0, seed=1)
    alone = [linear_probe(train, train_labels, test[i : i + 1], test_labels[i : i + 1], 0)[0] for i in range(20)]
    assert linear_probe(train, train_labels, test, test_labels, 0)[:20].tolist() == alone
    moved = np.vstack([test[:20], 1e6 * test[20:]])  # a scaler fitted on the test rows would feel these
    assert linear_probe(train, train_labels, moved, test_labels, 0)[:20].tolist() == alone


def test_features_of_any_scale_serve() -> None:
    (train, train_labels), (test, test_labels) = data(signal=2.0), data(signal=2.0, seed=1)
    expected = linear_probe(train, train_labels, test, test_labels, 0)
    for scale in (1e-6, 1e6):
        np.testing.assert_array_equal(linear_probe(scale * train, train_labels, scale * test, test_labels, 0), expected)
    spread = np.logspace(-6, 6, 10)
    np.testing.assert_array_equal(linear_probe(train * spread, train_labels, test * spread, test_labels, 0), expected)


def test_probes_are_seeded() -> None:
    (train, train_labels), (test, test_labels) = data(signal=0.7), data(signal=0.7, seed=1)
    for probe in (lambda seed: linear_probe(train, train_labels, test, test_labels, seed),
                  lambda seed: cross_validated_probe(train, train_labels, 5, seed)):  # fmt: skip
        np.testing.assert_array_equal(probe(3), probe(3))
    folds = [cross_validated_probe(train, train_labels, 5, seed).tolist() for seed in range(4)]
    assert len({tuple(found) for found in folds}) > 1


@pytest.mark.parametrize("seed", range(10))
def test_a_class_with_a_single_train_row_is_no_crash(seed: int) -> None:
    vectors, labels = data(n=20, classes=2, seed=seed)
    labels[:] = 0
    labels[seed] = 1  # may be in the held-out rows only
    found = linear_probe(vectors, labels, vectors, labels, seed)
    assert found.sum() >= 19


def test_constant_vectors_give_the_commonest_label() -> None:
    labels = np.array([0] * 30 + [1] * 10)
    np.testing.assert_array_equal(linear_probe(np.ones((40, 3)), labels, np.ones((40, 3)), labels, 0), 1 - labels)


def test_clusters_are_those_of_the_data() -> None:
    vectors, labels = data()
    found = cluster(vectors, 3, 0)
    assert len({(a, b) for a, b in zip(labels, found, strict=True)}) == 3
    np.testing.assert_array_equal(found, cluster(vectors, 3, 0))


def test_cosines_are_those_of_the_pairs() -> None:
    first = np.array([[1.0, 0], [1, 1], [2, 0], [0, 0], [1e-200, 0]])
    second = np.array([[0.0, 3], [2, 2], [-5, 0], [1, 1], [1, 0]])
    np.testing.assert_allclose(cosine_pairs(first, second)[:4], [0, 1, -1, 0])
