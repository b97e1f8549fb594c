"""DPSH: its loss and step against formulas written out, the table of scores, and what it refuses."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from batches import batch
from scipy.special import expit
from sets import unit_set
from slopes import central_differences

from methods import dpsh
from methods.base import supervision
from methods.dpsh import DPSH
from methods.relations.likelihood import likelihood_and_slope


def objective(scores, similar, eta):
    """J summed over all ordered pairs, as the paper writes it."""
    total = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            theta = sum(scores[i, k] * scores[j, k] for k in range(scores.shape[1])) / 2
            total -= similar[i, j] * theta - math.log(1 + math.exp(theta))
        total += eta * sum((np.sign(score) - score) ** 2 for score in scores[i])
    return total


def evaluate(method, table, similar, indices):
    """Loss of a batch (float) and its gradient by the batch's scores (M, bits); the table holds `table`."""
    memory = SimpleNamespace(table=torch.from_numpy(table.copy()), similar=similar)
    asked = {"affinity": torch.from_numpy(similar[indices]), "indices": torch.from_numpy(indices)}
    outputs = torch.from_numpy(table[indices]).requires_grad_()
    loss = method.loss(outputs, batch(memory=memory, **asked))
    loss.backward()
    return loss.item(), outputs.grad.numpy()


def random_case(seed=0, items=9, bits=3):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, items)
    return generator.normal(size=(items, bits)), labels[:, None] == labels


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-6)])
@pytest.mark.parametrize("width", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 300.0])
def test_likelihood_and_slope_are_those_of_the_formula(dtype, tolerance, width, scale):
    generator = torch.Generator().manual_seed(width)
    theta = scale * torch.randn(3, width, generator=generator, dtype=torch.float64).to(dtype)
    similar = torch.rand(3, width, generator=generator) < 0.4
    value, slope = likelihood_and_slope(theta.clone(), similar)
    exact = theta.double().numpy()
    assert value.item() == pytest.approx(
        (np.logaddexp(0, exact) - similar.numpy() * exact).sum(), rel=tolerance, abs=tolerance * width
    )
    np.testing.assert_allclose(slope.numpy(), expit(exact) - similar.numpy(), rtol=0, atol=tolerance)
    assert value.dtype == slope.dtype == dtype


@pytest.mark.parametrize("width", [5, 70])
def test_a_nan_reaches_likelihood_and_slope(width):
    theta = torch.zeros(2, width)
    theta[1, width - 1] = torch.nan
    value, slope = likelihood_and_slope(theta, torch.zeros(2, width, dtype=torch.bool))
    assert value.isnan()
    assert slope[1, width - 1].isnan()


@pytest.mark.parametrize("eta", [0.0, 0.7])
def test_the_loss_of_a_batch_is_that_of_its_pairs_with_all_items(eta):
    scores, similar = random_case()
    indices = np.array([4, 0, 7])
    expected = 0.0
    for i in indices:
        for j in range(len(scores)):
            theta = scores[i] @ scores[j] / 2
            expected += math.log(1 + math.exp(theta)) - similar[i, j] * theta
        expected += eta * ((scores[i] - np.sign(scores[i])) ** 2).sum()
    loss, _ = evaluate(DPSH(bits=3, eta=eta), scores, similar, indices)
    assert loss == pytest.approx(expected / (3 * len(scores)))


@pytest.mark.parametrize("indices", [[0], [8, 2, 5, 6, 0], list(range(9))])
@pytest.mark.parametrize("at_once", [4, 1024])
def test_the_gradient_is_that_of_the_objective_with_the_rest_of_the_table_fixed(
    indices, at_once, monkeypatch
):
    monkeypatch.setattr(dpsh, "_ITEMS_AT_ONCE", at_once)
    scores, similar = random_case(2)
    indices, eta = np.array(indices), 0.3

    def of_rows(rows):
        table = scores.copy()
        table[indices] = rows
        return objective(table, similar, eta)

    _, gradient = evaluate(DPSH(bits=3, eta=eta), scores, similar, indices)
    numeric = central_differences(of_rows, scores[indices])
    assert gradient * len(indices) * len(scores) == pytest.approx(numeric, abs=1e-7)


def test_affinity_above_0_is_similar_whatever_its_value():
    scores, similar = random_case(3)
    indices = np.arange(4)
    expected, _ = evaluate(DPSH(bits=3), scores, similar, indices)
    assert evaluate(DPSH(bits=3), scores, 5 * similar.astype(np.int64), indices)[0] == expected


def test_training_is_descent_written_by_hand_with_a_table_of_zeros_at_first():
    labels = np.arange(23) % 3
    made = unit_set(labels)
    method = DPSH(bits=4, epochs=3, batch_size=6, learning_rate=0.8, weight_decay=0.01, eta=3.0, seed=2)
    still = replace(method, epochs=0).fit(made)  # the weights with which training begins
    weight, bias = (value.detach().double().numpy() for value in still.network.parameters())
    table, similar = np.zeros((23, 4)), labels[:, None] == labels
    for epoch in range(3):
        order = np.random.default_rng((2, epoch)).permutation(23)
        for begin in range(0, 23, 6):
            rows = order[begin : begin + 6]
            items = made.items[rows].astype(np.float64)
            table[rows] = items @ weight.T + bias
            residual = 1 / (1 + np.exp(-table[rows] @ table.T / 2)) - similar[rows]
            slope = residual @ table + 2 * 3.0 * (table[rows] - np.sign(table[rows]))
            slope /= len(rows) * 23
            weight = weight - 0.8 * (slope.T @ items + 0.01 * weight)
            bias = bias - 0.8 * (slope.sum(axis=0) + 0.01 * bias)
    method.fit(made)
    ours = [parameter.detach().numpy() for parameter in method.network.parameters()]
    assert ours[0] == pytest.approx(weight, abs=1e-4)
    assert ours[1] == pytest.approx(bias, abs=1e-4)


def test_similarities_made_batch_by_batch_are_those_that_are_kept(monkeypatch):
    made, method = unit_set(np.arange(40) % 4), DPSH(bits=4, epochs=3, batch_size=16)
    kept = method.fit(made).encode(made.items)
    monkeypatch.setattr(supervision, "KEPT_PAIRS", 40**2 - 1)
    assert supervision.kept_matrix(made, lambda affinity: affinity > 0, bool) is None
    assert np.array_equal(method.fit(made).encode(made.items), kept)
