"""HashNet: continuation, weights, loss and both of its gradients against formulas written out."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from batches import batch
from sets import unit_set
from slopes import central_differences

from methods.base import supervision
from methods.base.supervision import similar_share
from methods.hashnet import HashNet

# Label sets of which some are equal, some overlap, and some are disjoint.
SETS = ["1000", "1100", "0111", "0001", "1110", "0010", "1000", "1111"]
MULTI_HOT = np.array([list(bits) for bits in SETS], np.uint8)
CLASSES = np.array([0, 1, 0, 2, 1, 1, 0, 2])


def by_loops(z, indices, labels, scale, beta, released):
    """(loss, gradient by z, both streams' rows) as the paper and the released code write them.

    z: float64 (M, bits), the first half of one stream, the second of the other; |S| and |S_1| count ordered
    pairs of the whole training set.
    """
    if labels.ndim == 1:
        labels = labels[:, None] == np.arange(labels.max() + 1)
    common = labels.astype(int) @ labels.T.astype(int)
    total, alike = common.size, np.count_nonzero(common)
    g = np.tanh(beta * z)
    half, bits = len(z) // 2, z.shape[1]
    loss, weight_sum, gradient = 0.0, 0.0, np.zeros_like(z)
    for i, j in itertools.product(range(half), range(half)):
        a, b = labels[indices[i]].astype(bool), labels[indices[half + j]].astype(bool)
        s = bool((a & b).any())
        theta = scale * (g[i] @ g[half + j])
        pair = math.log(1 + math.exp(theta)) - s * theta
        slope = 1 / (1 + math.exp(-theta)) - s
        if released:
            weight = total / alike if s else 1.0
            loss += weight * pair
            weight_sum += weight
            overlap = (a & b).sum() ** 2 / (a.sum() * b.sum()) if s else 0.25
            slope *= weight * 2 * 4 * overlap
        else:
            overlap = (a & b).sum() / (a | b).sum()
            weight = overlap * total / alike if s else total / (total - alike)
            loss += weight * pair
            weight_sum += 1
            slope *= weight * scale
        gradient[i] += slope * g[half + j]
        gradient[half + j] += slope * g[i]
    if released:
        for stream in (gradient[:half], gradient[half:]):
            flat = stream.reshape(-1)  # a view: the first `half` numbers, whichever images they are of
            flat[:half] *= scale
            assert bits == stream.shape[1]
    return loss / weight_sum, gradient / weight_sum * beta * (1 - g**2)


def evaluate(method, z, indices, labels):
    made = unit_set(labels)
    given = batch(memory=method.prepare(made), indices=torch.from_numpy(indices))
    given.training.training_set = made
    if given.training.memory.labels is not None:
        given.training.memory.labels = given.training.memory.labels.double()
    given.affinity = torch.from_numpy(method.batch_affinity(given.training, indices))
    outputs = torch.from_numpy(z).requires_grad_()
    loss = method.loss(outputs, given)
    loss.backward()
    return loss.item(), outputs.grad.numpy()


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("labels", [CLASSES, MULTI_HOT], ids=["classes", "multi-hot"])
@pytest.mark.parametrize(("alpha", "scale"), [(1.0, None), (2.5, 0.3)])
def test_loss_and_gradient_are_those_of_loops(labels, released, alpha, scale):
    indices = np.array([0, 3, 4, 7, 2, 3, 6, 1])
    z = np.random.default_rng(0).normal(size=(8, 3))
    method = HashNet(bits=3, tanh_scale=alpha, similarity_scale=scale, released_gradient=released)
    loss, gradient = evaluate(method, z, indices, labels)
    expected = by_loops(z, indices, labels, 10 / 3 if scale is None else scale, alpha, released)
    assert loss == pytest.approx(expected[0], rel=1e-12)
    assert gradient == pytest.approx(expected[1], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("labels", [CLASSES, MULTI_HOT], ids=["classes", "multi-hot"])
def test_the_gradient_is_that_of_finite_differences_unless_it_is_the_released_one(labels):
    indices, z = np.arange(8), np.random.default_rng(1).normal(size=(8, 3))
    numeric = central_differences(lambda at: by_loops(at, indices, labels, 10 / 3, 1.0, False)[0], z)
    assert evaluate(HashNet(bits=3), z, indices, labels)[1] == pytest.approx(numeric, abs=1e-7)
    released = evaluate(HashNet(bits=3, released_gradient=True), z, indices, labels)[1]
    assert np.abs(released - numeric).max() > 0.1


def test_a_pair_that_affinity_calls_similar_without_a_label_in_common_has_weight_1():
    labels = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.uint8)
    affinity = np.ones((4, 4), np.int64)
    affinity[0, 2] = affinity[2, 0] = 0
    made, method = unit_set(labels, affinity=affinity), HashNet(bits=2)
    indices = np.array([0, 0, 1, 2])  # similar without, and dissimilar with labels in common
    given = batch(memory=method.prepare(made), indices=torch.from_numpy(indices))
    given.affinity = torch.from_numpy(made.affinity(indices[:2], indices[2:]))
    loss = method.loss(torch.zeros(4, 2), given)
    share = np.mean(affinity)
    assert loss.item() == pytest.approx(math.log(2) * (1 / share + 1 / (1 - share)) / 2)


def test_products_of_any_size_overflow_nowhere():
    z = np.array([[9.0, 9.0], [9.0, 9.0]])
    for labels, expected in ((np.array([0, 1, 0]), 2000.0 / (4 / 9)), (np.array([0, 0, 1]), 0.0)):
        loss, gradient = evaluate(HashNet(bits=2, similarity_scale=1000.0), z, np.array([0, 1]), labels)
        assert loss == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("labels", [CLASSES, MULTI_HOT], ids=["classes", "multi-hot"])
@pytest.mark.parametrize("labelled", [True, False])
def test_the_share_of_similar_pairs_is_counted_over_all_ordered_pairs(labels, labelled):
    made = unit_set(labels, has_labels=labelled)
    everything = np.arange(8)
    expected = sum(made.affinity(everything, everything)[i, j] > 0 for i in range(8) for j in range(8)) / 64
    assert similar_share(made) == pytest.approx(expected)


def test_a_share_of_many_items_is_counted_on_some_rows(monkeypatch):
    generator = np.random.default_rng(0)
    labels = (generator.random((400, 6)) < 0.2).astype(np.uint8)
    exact = similar_share(unit_set(labels))
    monkeypatch.setattr(supervision, "_ROWS_COUNTED", 200)
    estimate = similar_share(unit_set(labels), seed=1)
    assert estimate == similar_share(unit_set(labels), seed=1)
    assert estimate != similar_share(unit_set(labels), seed=2)
    assert 0 < abs(estimate - exact) < 0.05


@pytest.mark.parametrize(
    ("iteration", "beta"), [(0, 1.0), (199, 1.0), (200, 1.414), (1000, 2.449), (10_000, 7.141)]
)
def test_known_values_of_beta(iteration, beta):
    assert HashNet().continuation(iteration) == pytest.approx(beta, abs=5e-4)


def test_beta_follows_the_iterations_of_training_and_its_mean_is_logged():
    records = []
    made = unit_set(np.arange(40) % 4, log=records.append)
    method = HashNet(
        bits=4, epochs=5, batch_size=16, tanh_scale=2.0, growth=0.5, growth_power=1.0, growth_every=2
    )
    method.fit(made)  # 3 iterations an epoch
    refreshed = np.array([[0, 0, 2], [2, 4, 4], [6, 6, 8], [8, 10, 10], [12, 12, 14]])
    expected = (2.0 * (1 + 0.5 * refreshed)).mean(axis=1)
    assert [record["tanh_scale"] for record in records] == pytest.approx(expected)


@pytest.mark.parametrize("items", [6, 16, 23, 33])
def test_batches_pair_two_streams_that_each_hold_every_item_once(items):
    batches = HashNet(batch_size=8, seed=1).draw_batches(items, epoch=3)
    halves = [np.split(batch, 2) for batch in batches]
    streams = [np.concatenate([half[stream] for half in halves]) for stream in (0, 1)]
    for stream in streams:
        assert sorted(stream) == list(range(items))
    assert not np.array_equal(*streams)
    assert all(len(half[0]) == 8 for half in halves[:-1])
    assert not np.array_equal(streams[0], HashNet(batch_size=8, seed=1).draw_batches(items, 4)[0][:items])


@dataclass(kw_only=True)
class Linear(HashNet):
    """With a loss whose gradient is `slope` for every raw score."""

    slope: float = 0.0

    def build_network(self, item_shape):
        network = super().build_network(item_shape)
        torch.nn.init.constant_(network[1].bias, 0.3)
        return network

    def loss(self, outputs, batch):
        return self.slope * outputs.sum()


def test_weights_decay_and_biases_learn_twice_as_fast_instead():
    made = unit_set(np.arange(10) % 2)
    settings = {"bits": 3, "batch_size": 10, "learning_rate": 0.1, "weight_decay": 0.2, "momentum": 0.0}
    before, decayed, pulled = (
        [value.detach().numpy() for value in method.fit(made).network.parameters()]
        for method in (
            Linear(epochs=0, **settings),
            Linear(epochs=1, **settings),
            Linear(epochs=1, slope=1.0, **settings),
        )
    )
    assert decayed[0] == pytest.approx(before[0] * (1 - 0.1 * 0.2))
    assert np.array_equal(decayed[1], before[1])
    slope = np.broadcast_to(2 * made.items.sum(axis=0), (3, 8))  # every item is in both streams
    assert pulled[0] == pytest.approx(decayed[0] - 0.1 * slope, abs=1e-5)
    assert pulled[1] == pytest.approx(before[1] - 2 * 0.1 * 20)
