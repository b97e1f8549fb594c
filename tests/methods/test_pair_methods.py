"""DSH, DHN, DCH, DSDH and ADSH at their losses and discrete steps: loops, plain autograd, brute force."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from batches import batch
from losses import check, cosine
from sets import class_set

from methods.adsh import ADSH, Similar, improve_codes
from methods.base import TrainingSet
from methods.dch import DCH
from methods.dhn import DHN, log_cosh
from methods.dsdh import DSDH
from methods.dsdh import improve_codes as improve_dsdh_codes
from methods.dsh import DSH

GENERATOR = np.random.default_rng(0)
BITS, ITEMS = 5, 8
SCORES = torch.from_numpy(GENERATOR.normal(size=(ITEMS, BITS))).requires_grad_()
CLASSES = GENERATOR.integers(0, 3, ITEMS)
AFFINITY = torch.from_numpy((CLASSES[:, None] == CLASSES).astype(np.int64))
PAIRED = batch(affinity=AFFINITY)
PAIRS = list(itertools.product(range(ITEMS), repeat=2))


def test_dsh_is_the_loss_of_loops():
    def formula(u):
        pairs = []
        for i, j in PAIRS:
            distance = sum((u[i] - u[j]) ** 2)
            pairs.append(distance / 2 if CLASSES[i] == CLASSES[j] else max(0.0, 1.5 * BITS - distance) / 2)
        return np.mean(pairs) + 2 * 0.2 * np.mean([sum(abs(abs(row) - 1)) for row in u])

    method = DSH(bits=BITS, margin=1.5, regularisation=0.2)
    check(lambda u: method.loss(u, PAIRED), formula, SCORES.detach())


def gradient(value):
    return torch.autograd.grad(value, SCORES)[0]


@pytest.mark.parametrize("normed", [False, True])
def test_dhn_is_the_loss_of_loops(normed):
    method = DHN(bits=BITS, quantisation=0.3, similarity_scale=0.7, normed=normed)

    def formula(u):
        z, pairs = np.tanh(u), []
        for i, j in PAIRS:
            theta = 0.7 * (cosine(z[i], z[j]) if normed else z[i] @ z[j])
            pairs.append(math.log1p(math.exp(theta)) - float(CLASSES[i] == CLASSES[j]) * theta)
        return np.mean(pairs) + 0.3 * np.log(np.cosh(np.abs(z) - 1)).mean()

    check(lambda u: method.loss(u, PAIRED), formula, SCORES.detach())


def released_balance(s):
    """balance_param of thuml/DeepHash: both of its losses."""
    sum_all = (2 * (s - 0.5)).abs().sum()
    return (s - 1).abs() + sum_all / s.sum() * s


def released_dhn(fc8, s, alpha, normed, q_lambda):
    """The loss of thuml/DeepHash, dhn.py and architecture (with_tanh), line by line."""
    u = torch.tanh(fc8)
    if normed:
        squares = u.square().sum(1, keepdim=True)
        ip = u @ u.T / (squares @ squares.T).sqrt()
    else:
        ip = (u @ u.T).clamp(-15.0, 15.0)
    cross = ((1 + (alpha * ip).exp()).log() - s * alpha * ip) * released_balance(s)
    return cross.mean() + q_lambda * (u.abs() - 1).square().mean()


@pytest.mark.parametrize("bits", [BITS, 24])  # products of 24 bits are clipped
@pytest.mark.parametrize(("normed", "alpha", "q_lambda"), [(False, 0.5, 0.3), (True, 10.0, 0.0)])
def test_dhn_released_is_the_released_loss_and_gradient(bits, normed, alpha, q_lambda):
    scores = torch.from_numpy(4 * np.random.default_rng(1).normal(size=(ITEMS, bits))).requires_grad_()
    settings = {"similarity_scale": alpha, "normed": normed, "quantisation": q_lambda}
    value = DHN(bits=bits, released=True, **settings).loss(scores, PAIRED)
    expected = released_dhn(scores, (AFFINITY > 0).double(), alpha, normed, q_lambda)
    assert bits < 15 or (torch.tanh(scores) @ torch.tanh(scores).T).max() > 15
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    found, wanted = (torch.autograd.grad(one, scores)[0] for one in (value, expected))
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-15)


def test_log_cosh_does_not_overflow():
    assert log_cosh(torch.tensor([0.0, -1000.0])).tolist() == pytest.approx([0.0, 1000 - math.log(2)])


def test_dch_is_the_loss_of_loops():
    method, share = DCH(bits=BITS, gamma=3.0, quantisation=0.2), 0.4
    given, ones = batch(memory=share, affinity=AFFINITY), np.ones(BITS)

    def formula(u):
        z, pairs = np.tanh(u), []
        for i, j in PAIRS:
            similar = CLASSES[i] == CLASSES[j]
            distance = max(BITS / 2 * (1 - cosine(z[i], z[j])), 1e-3)
            likelihood = 3.0 / (3.0 + distance) if similar else distance / (3.0 + distance)
            pairs.append(-math.log(likelihood) / (share if similar else 1 - share))
        rest = np.mean([math.log1p(BITS / 2 * (1 - cosine(np.abs(row), ones)) / 3.0) for row in z])
        return np.mean(pairs) + 0.2 * rest

    # Weights of pairs are in single precision.
    check(lambda u: method.loss(u, given), formula, SCORES.detach(), rel=1e-6)


def released_dch(fc8, s, gamma, q_lambda):
    """The loss of thuml/DeepHash, dch.py and architecture (with_tanh), line by line."""
    u = torch.tanh(fc8)
    squares = (u * u).sum(1).reshape(-1, 1)
    cauchy = gamma / (squares - 2 * u @ u.T + squares.T + 0.001 + gamma)
    mask = torch.eye(len(u)) == 0
    cauchy, balance, s = cauchy[mask], released_balance(s)[mask], s[mask]
    loss = -s * cauchy.log() - (1 - s) * (1 - cauchy).log()
    return (loss * balance).mean() + q_lambda * (u.abs() - 1).square().mean()


@pytest.mark.parametrize(("gamma", "q_lambda"), [(20.0, 0.0), (3.0, 0.2)])
def test_dch_released_is_the_released_loss_and_gradient(gamma, q_lambda):
    value = DCH(bits=BITS, gamma=gamma, quantisation=q_lambda, released=True).loss(SCORES, PAIRED)
    expected = released_dch(SCORES, (AFFINITY > 0).double(), gamma, q_lambda)
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    assert gradient(value) == pytest.approx(gradient(expected), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("kind", [DHN, DCH])
def test_released_losses_of_a_batch_without_similar_pairs_are_finite(kind):
    none_similar = batch(affinity=torch.zeros(ITEMS, ITEMS, dtype=torch.int64))
    value = kind(bits=BITS, released=True).loss(SCORES, none_similar)
    assert torch.isfinite(value) and torch.isfinite(gradient(value)).all()


def dsdh_objective(codes, labels, scores, classifier, mu, nu, eta):
    value = mu * np.square(labels - codes @ classifier).sum() + nu * np.square(classifier).sum()
    return value + eta * np.square(codes - scores).sum()


@pytest.mark.parametrize("seed", range(4))
def test_dsdh_steps_never_raise_the_objective(seed):
    generator = np.random.default_rng(seed)
    labels, scores = np.eye(3)[generator.integers(0, 3, 20)], generator.normal(size=(20, 4))
    codes = np.where(generator.random((20, 4)) < 0.5, 1.0, -1.0)
    settings = (0.5, 1.0, 0.1)
    classifier = np.linalg.solve(codes.T @ codes + 2 * np.eye(4), codes.T @ labels)
    slope = -2 * 0.5 * codes.T @ (labels - codes @ classifier) + 2 * 1.0 * classifier
    assert slope == pytest.approx(np.zeros((4, 3)), abs=1e-9)  # the ridge regression is a minimum
    before = dsdh_objective(codes, labels, scores, classifier, *settings)
    improved = codes.copy()
    assert improve_dsdh_codes(improved, labels, scores, *settings, 10) == pytest.approx(classifier)
    after = dsdh_objective(improved, labels, scores, classifier, *settings)
    assert after <= before
    for item, bit in itertools.product(range(20), range(4)):
        flipped = improved.copy()
        flipped[item, bit] *= -1
        assert dsdh_objective(flipped, labels, scores, classifier, *settings) >= after - 1e-9


def test_dsdh_improves_its_codes_with_all_scores_before_every_epoch_but_the_first():
    generator = np.random.default_rng(6)
    labels, scores = np.eye(3)[generator.integers(0, 3, 20)], generator.normal(size=(20, 4))
    codes = np.where(generator.random((20, 4)) < 0.5, 1.0, -1.0)
    method = DSDH(bits=4, mu=0.5, nu=1.0, eta=0.1, sweeps=10)
    kept = {"table": torch.from_numpy(scores), "codes": torch.from_numpy(codes.copy())}
    training = batch(memory=SimpleNamespace(labels=labels, **kept)).training
    method.start_epoch(training)
    assert np.array_equal(training.memory.codes, codes)
    for training.epoch in (1, 2):
        before = codes.copy()
        improve_dsdh_codes(codes, labels, scores, 0.5, 1.0, 0.1, 10)
        assert not np.array_equal(codes, before)
        method.start_epoch(training)
        assert np.array_equal(training.memory.codes, codes)


def test_dsdh_gradient_is_that_of_all_pairs_and_of_the_codes():
    """With the whole training set as one batch: autograd through the table, in float64."""
    method = DSDH(bits=BITS, eta=0.3)
    codes = torch.from_numpy(GENERATOR.choice([-1.0, 1.0], (ITEMS, BITS)))
    table = torch.zeros(ITEMS, BITS, dtype=torch.float64)
    memory = SimpleNamespace(table=table, codes=codes)
    value = method.loss(SCORES, batch(memory=memory, affinity=AFFINITY > 0, indices=torch.arange(ITEMS)))
    theta = SCORES @ SCORES.T / 2
    similar = (AFFINITY > 0).double()
    expected = (torch.nn.functional.softplus(theta) - similar * theta).mean()
    expected = expected + 0.3 * (codes - SCORES).square().mean()
    assert value.item() == pytest.approx(expected.item())
    assert torch.autograd.grad(value, SCORES)[0] == pytest.approx(torch.autograd.grad(expected, SCORES)[0])
    assert torch.equal(memory.table, SCORES.detach())


def authors_step(scores, table, rows, similar, labels, eta, nu):
    """train.m and RRC.m of liqi-casia/DSDH-HashingCode: (dJ/dU of a batch, its codes)."""
    sign, batch_scores = np.sign, table[rows]
    start = sign(batch_scores)
    classifier = np.linalg.inv(start.T @ start + nu * np.eye(start.shape[1])) @ start.T @ labels[rows]
    wanted, codes = eta * batch_scores + labels[rows] @ classifier.T, np.zeros_like(batch_scores)
    for _ in range(10):
        before = codes.copy()
        for bit in range(codes.shape[1]):
            others = np.delete(codes, bit, axis=1) @ np.delete(classifier, bit, axis=0)
            codes[:, bit] = sign(wanted[:, bit] - others @ classifier[bit])
        if np.array_equal(codes, before):
            break
    sigmoid = 1 / (1 + np.exp(-(batch_scores @ table.T / 2)))
    return (similar[rows] - sigmoid) @ table - 2 * eta * (batch_scores - codes), codes


@pytest.mark.parametrize("eta", [55.0, 0.05])  # at the second the codes differ from the signs of the scores
def test_dsdh_takes_the_authors_step(eta):
    """As they train: cosine 1 and ratio 1 with their gradient over batch times items, and the same codes."""
    generator = np.random.default_rng(4)
    labels = np.eye(3)[generator.integers(0, 3, 30)]
    table, rows = generator.normal(size=(30, BITS)), np.array([3, 17, 4, 11, 29, 8, 2])
    similar = labels @ labels.T > 0
    settings = {"eta": eta, "mu": 1.0, "nu": 0.1, "sweeps": 10}
    method = DSDH(bits=BITS, balance="sum", codes_of="batch", **settings)
    kept = torch.from_numpy(table.copy())
    kept[rows] = 0  # of an earlier step: the batch's own scores take their place
    codes = torch.zeros(30, BITS, dtype=torch.float64)
    memory = SimpleNamespace(table=kept, codes=codes, labels=labels)
    outputs = torch.from_numpy(table[rows]).requires_grad_()
    asked = {"affinity": torch.from_numpy(similar[rows]), "indices": torch.from_numpy(rows)}
    value = method.loss(outputs, batch(memory=memory, **asked))
    found = torch.autograd.grad(value, outputs)[0].numpy()
    step, expected_codes = authors_step(outputs, table, rows, similar, labels, eta, 0.1)
    assert np.array_equal(codes[rows].numpy(), expected_codes)
    assert (eta == 55.0) == np.array_equal(expected_codes, np.sign(table[rows]))
    assert found == pytest.approx(-step / (len(rows) * len(table)), rel=1e-9, abs=1e-14)


def adsh_objective(codes, scores, target, rows, gamma):
    return np.square(scores @ codes.T - target).sum() + gamma * np.square(codes[rows] - scores).sum()


@pytest.mark.parametrize("bits", [1, 4])  # one bit by brute force
@pytest.mark.parametrize("seed", range(4))
def test_adsh_bits_never_raise_the_objective(seed, bits):
    generator, rows = np.random.default_rng(seed), np.array([1, 4, 6])
    scores, codes = np.tanh(generator.normal(size=(3, bits))), generator.choice([-1.0, 1.0], (9, bits))
    similar = generator.random((3, 9)) < 0.4
    target = bits * np.where(similar, 1.0, -0.5)
    before = adsh_objective(codes, scores, target, rows, 2.0)
    improved = codes.copy()
    improve_codes(improved, target.T / bits @ scores, scores, rows, 2.0)
    after = adsh_objective(improved, scores, target, rows, 2.0)
    assert after <= before + 1e-9
    for item in range(9):  # the last bit was set with all others as they are now: it is the best of two
        flipped = improved.copy()
        flipped[item, -1] *= -1
        assert adsh_objective(flipped, scores, target, rows, 2.0) >= after - 1e-9


def similar_items(kind):
    """A training set of 12 items, and which of them are similar, bool (12, 12)."""
    generator = np.random.default_rng(3)
    labels = generator.integers(3, size=12) if kind == "classes" else None
    similar = generator.random((12, 12)) < 0.2
    similar = similar | similar.T | np.eye(12, dtype=bool) if labels is None else labels[:, None] == labels
    items = np.zeros((12, 2), np.float32)
    made = TrainingSet(items, lambda i, j: similar[np.ix_(i, j)].astype(np.int64), labels=labels)
    return made, similar


@pytest.mark.parametrize("kind", ["classes", "pairs"])
def test_adsh_sums_over_similar_items_are_products_with_the_similarity(kind, monkeypatch):
    monkeypatch.setattr("methods.adsh._COLUMNS", 5)
    made, similar = similar_items(kind)
    rows, generator = np.array([1, 4, 5, 9]), np.random.default_rng(4)
    codes, scores = generator.normal(size=(12, BITS)), generator.normal(size=(4, BITS))
    of_rows, counts = Similar(made).sums_of_rows(rows, codes)
    assert of_rows == pytest.approx(similar[rows] @ codes)
    of_items, again = Similar(made).sums_of_items(rows, scores)
    assert of_items == pytest.approx(similar[rows].T @ scores)
    assert np.array_equal(counts, similar[rows].sum(axis=1)) and np.array_equal(counts, again)


@pytest.mark.parametrize("kind", ["classes", "pairs"])
def test_adsh_loss_is_that_of_loops(kind):
    made, similar = similar_items(kind)
    method = ADSH(bits=BITS, gamma=3.0)
    codes = torch.from_numpy(GENERATOR.choice([-1.0, 1.0], (12, BITS)))
    rows = np.array([0, 1, 2, 3, 5, 6, 8, 9, 11])
    memory = SimpleNamespace(round=method.start_round(rows, Similar(made), codes))
    ratio = similar[rows].sum() / (~similar[rows]).sum()
    indices = np.array([3, 0, 11, 5, 6, 1, 2, 9])
    criterion = SimpleNamespace(codes=codes)
    given = batch(memory=memory, criterion=criterion, indices=torch.from_numpy(indices))

    def formula(u):
        tanh, total = np.tanh(u), 0.0
        for i, item in enumerate(indices):
            for j in range(12):
                total += (tanh[i] @ codes[j].numpy() - BITS * (1.0 if similar[item, j] else -ratio)) ** 2
            total += 3.0 * np.square(codes[item].numpy() - tanh[i]).sum()
        return total / (12 * ITEMS)

    check(lambda u: method.loss(u, given), formula, SCORES.detach())


def test_adsh_sets_its_codes_at_the_end_of_each_round():
    class Counted(ADSH):
        def _update_codes(self, training, epoch):
            epochs.append(epoch)
            super()._update_codes(training, epoch)

    epochs = []
    Counted(bits=BITS, epochs=7, epochs_per_round=3, samples=20).fit(class_set())
    assert epochs == [2, 5, 6]


def test_adsh_learns_codes_of_its_training_items_that_rank_it():
    made = class_set()
    settings = {"bits": 8, "epochs": 18, "samples": 40, "batch_size": 10}
    method = ADSH(**settings).fit(made)
    codes = np.where(method.learned_codes(), 1, -1)
    assert codes.shape == (80, 8)
    same = made.labels[:, None] == made.labels
    products = codes @ codes.T
    assert products[same].mean() > products[~same].mean() + 4
    assert ADSH(**settings, asymmetric=False).fit(made).learned_codes() is None
