"""CSQ and SHC, OrthoHash, DPN, GreedyHash, MDSH and HyP2 at their losses: loops, closed forms, autograd."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from batches import batch
from losses import (
    BITS,
    CODES,
    ITEMS,
    PROXIES,
    SCORES,
    SEVERAL,
    SINGLE,
    both_labels,
    check,
    codes,
    cosine,
    proxies,
)
from refusing import refused
from scipy.stats import binom
from sets import class_set, labelled
from torch.nn.functional import normalize

from methods.class_codes import mds_centres as _mds_centres
from methods.class_codes.centres import separated_centres, separation
from methods.class_codes.class_codes import ClassCodes
from methods.class_codes.mds_centres import guaranteed_distance, improved_code, mds_centres
from methods.csq import CSQ
from methods.dpn import DPN
from methods.greedyhash import GreedyHash
from methods.hyp2 import HyP2
from methods.learners.straight_through import cubic_penalty, sign_straight_through
from methods.mdsh import MDSH, _members
from methods.orthohash import OrthoHash
from methods.shc import SHC

CLASSES, GENERATOR = len(CODES), np.random.default_rng(2)


@both_labels
def test_majority_codes_are_those_of_counting(labels):
    found = codes().majority(labels)
    for item, row in enumerate(labels.numpy()):
        for bit in range(BITS):
            votes = sum(CODES[c, bit] for c in range(CLASSES) if row[c])
            assert found[item, bit] == (np.sign(votes) if votes else codes().filler[bit])


@pytest.mark.parametrize(("kind", "labels"), [(CSQ, SINGLE), (CSQ, SEVERAL), (SHC, SINGLE)])
def test_csq_and_shc_are_the_binary_cross_entropy_with_the_centre(kind, labels):
    centres = codes().majority(labels).numpy()

    def formula(u):
        g, h = np.tanh(u), centres
        entropy = -(1 + h) / 2 * np.log((1 + g) / 2) - (1 - h) / 2 * np.log((1 - g) / 2)
        return (entropy + 0.3 * (np.abs(g) - 1) ** 2).mean()

    method = kind(bits=BITS, quantisation=0.3)
    check(lambda u: method.loss(u, batch(criterion=codes(), labels=labels)), formula)


@pytest.mark.parametrize("kind", [CSQ, SHC])
def test_csq_and_shc_are_finite_where_the_published_form_overflows(kind):
    method = kind(bits=1, quantisation=0.0)
    one = ClassCodes(np.array([[1.0]]), np.random.default_rng(0))
    value = method.loss(torch.tensor([[-200.0]]), batch(criterion=one, labels=torch.tensor([[1.0]])))
    assert value.item() == pytest.approx(400.0)


@both_labels
@pytest.mark.parametrize("scale", [None, 8.0])
def test_orthohash_is_the_softmax_with_margin_of_loops(labels, scale):
    s = math.sqrt(BITS) if scale is None else scale

    def formula(u):
        total = 0.0
        for scores, row in zip(u, labels.numpy()):
            logits = [s * (cosine(scores, code) - 0.2 * y) for code, y in zip(CODES, row)]
            normaliser = math.log(sum(map(math.exp, logits)))
            total -= sum(y * (logit - normaliser) for logit, y in zip(logits, row)) / max(row.sum(), 1)
        return total / ITEMS

    method = OrthoHash(bits=BITS, margin=0.2, scale=scale)
    check(lambda u: method.loss(u, batch(criterion=codes(), labels=labels)), formula)


def test_orthohash_encodes_with_running_statistics():
    made = class_set()
    method = OrthoHash(bits=BITS, epochs=3, batch_size=20).fit(made)
    linear, norm = list(method.network.modules())[-2:]
    w = made.items @ linear.weight.detach().numpy().T
    v = (w - norm.running_mean.numpy()) / np.sqrt(norm.running_var.numpy() + norm.eps)
    v = v * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    clear = np.abs(v) > 1e-5
    assert np.array_equal(method.encode(made.items)[clear], (v > 0)[clear])


@both_labels
def test_dpn_is_the_hinge_of_loops(labels):
    def formula(u):
        pairs = [(i, c) for i, c in itertools.product(range(ITEMS), range(CLASSES)) if labels[i, c]]
        return sum(max(0.0, 1.0 - u[i, k] * CODES[c, k]) for i, c in pairs for k in range(BITS)) / ITEMS

    method = DPN(bits=BITS, margin=1.0)
    check(lambda u: method.loss(u, batch(criterion=codes(), labels=labels)), formula)


def test_dpn_updates_codes_to_the_majority_of_the_best_items():
    made = class_set()
    method = DPN(bits=BITS, epochs=2, batch_size=20, update_every=1, update_share=0.5).fit(made)
    trained = method.criterion_state["codes"]
    assert trained.shape == (CLASSES, BITS) and set(np.unique(trained)) <= {-1.0, 1.0}
    before = DPN(bits=BITS, epochs=2, batch_size=20).fit(made).criterion_state["codes"]
    first = DPN(bits=BITS, epochs=1, batch_size=20).fit(made)  # the network before the only update
    scores = first.raw_scores(made.items)
    for label in range(CLASSES):
        own = scores[made.labels == label]
        losses = np.maximum(0, 1 - own * before[label]).sum(axis=1)
        best = own[np.argsort(losses, kind="stable")[:10]]
        votes = np.where(best > 0, 1, -1).sum(axis=0)
        assert np.array_equal(trained[label], np.where(votes == 0, before[label], np.sign(votes)))


@pytest.mark.parametrize(("margin", "expected"), [(1.0, [-1.0, 1.0]), (2.0, [1.0, -1.0])])
def test_dpn_updates_codes_by_the_item_whose_hinge_at_the_margin_is_smaller(margin, expected):
    scores = np.array([[3.0, -1.5], [-0.1, 0.1]])  # hinges with (1, 1) are 2.5 and 2 at 1, 3.5 and 4 at 2
    method = DPN(bits=2, margin=margin, update_every=1, update_share=0.5)
    method.raw_scores = lambda items: scores
    training = batch(criterion=ClassCodes(np.ones((1, 2)), GENERATOR), epoch=1).training
    training.training_set = labelled(np.zeros((2, 3), np.float32), np.zeros(2, np.int64))
    method.start_epoch(training)
    assert training.criterion.codes.tolist() == [expected]


@both_labels
def test_greedyhash_is_the_cross_entropy_of_codes_and_passes_its_gradient(labels):
    method, scores = GreedyHash(bits=BITS, penalty=0.1), SCORES.clone().requires_grad_()
    classifier = torch.nn.Linear(BITS, CLASSES, bias=False).double()
    signs = torch.where(SCORES > 0, 1.0, -1.0).double().requires_grad_()
    targets = labels / labels.sum(dim=1, keepdim=True).clamp(min=1)
    cross_entropy = torch.nn.functional.cross_entropy(classifier(signs), targets)
    value = method.loss(scores, batch(criterion=classifier, labels=labels))
    assert value.item() == pytest.approx((cross_entropy + 0.1 * cubic_penalty(SCORES)).item())
    expected = torch.autograd.grad(cross_entropy, signs)[0]
    expected = expected + 0.1 * torch.autograd.grad(cubic_penalty(scores), scores)[0]
    assert torch.autograd.grad(value, scores)[0] == pytest.approx(expected)


def test_the_sign_is_plus_one_above_zero_only():
    outputs = torch.tensor([[0.0, -0.5, 2.0]], requires_grad=True)
    assert sign_straight_through(outputs).tolist() == [[-1.0, -1.0, 1.0]]
    assert torch.autograd.grad(sign_straight_through(outputs).sum(), outputs)[0].tolist() == [[1.0] * 3]


@pytest.mark.parametrize("classes", [3, 10, 21, 80, 100, 200])
def test_guaranteed_distances_are_quantiles_of_a_binomial_distribution(classes):
    for bits in range(1, 129):
        assert guaranteed_distance(classes, bits) == 1 + binom.ppf(1 / classes, bits, 0.5)
    assert guaranteed_distance(2, 3) == 2  # half of all codes are nearer: just enough


@pytest.mark.parametrize(
    ("classes", "bits", "seeds"),
    [(10, 12, 5), (10, 16, 1), (10, 24, 5), (21, 12, 5), (21, 24, 5), (4, 6, 5), (10, 48, 5)]
    + [(100, 16, 1), (100, 32, 1)],
)
def test_mds_centres_reach_the_guaranteed_distance(classes, bits, seeds):
    for seed in range(seeds):
        found = mds_centres(classes, bits, np.random.default_rng((seed, 11)))
        assert found.shape == (classes, bits) and set(np.unique(found)) <= {-1, 1}
        assert separation(found)[0] >= guaranteed_distance(classes, bits)


def test_more_classes_than_codes_are_refused():
    with refused("3 bits cannot tell 9 classes apart"):
        mds_centres(9, 3, np.random.default_rng(0))


def test_a_search_that_finds_nothing_keeps_its_first_codes_apart(monkeypatch):
    """Sets with a repeated code lose, whatever their score; here every sweep makes all codes the same."""
    monkeypatch.setattr(_mds_centres, "improved_code", lambda code, *rest: np.ones_like(code))
    found = mds_centres(200, 12, np.random.default_rng(0), sweeps=2)
    assert len(np.unique(found, axis=0)) == 200


def test_codes_too_near_are_a_line_of_the_log(monkeypatch):
    monkeypatch.setattr(_mds_centres, "improved_code", lambda code, *rest: code)
    lines = []
    made = dataclasses.replace(class_set(classes=10), log=lines.append)
    method = MDSH(bits=12, epochs=1, device="cpu").fit(made)
    found = separation(method.criterion_state["codes"].astype(np.int8))[0]
    words = f"class codes are {found} bits apart at the least, the search is for 5"
    assert [line["warning"] for line in lines if "warning" in line] == [words]
    monkeypatch.undo()
    lines.clear()
    MDSH(bits=12, epochs=1, device="cpu").fit(made)
    assert lines and not any("warning" in line for line in lines)


@pytest.mark.parametrize("bits", [5, 16])
def test_a_compiled_search_takes_the_steps_of_plain_python(bits):
    generator = np.random.default_rng(bits)
    others = generator.choice([-1.0, 1.0], (20, bits))
    inverse = np.linalg.inv(2 * np.eye(bits) + others.T @ others)
    given = (generator.choice([-1.0, 1.0], bits), others, inverse, 2.0)
    multipliers = generator.random(2 * bits + 20)
    plain = getattr(_mds_centres._improved, "py_func", _mds_centres._improved)
    found, expected = (step(*given, multipliers.copy()) for step in (_mds_centres._improved, plain))
    assert np.array_equal(found, expected)


def distance_score(code, others):
    distances = [(one != code).sum() for one in others]
    return np.mean(distances) + min(distances) - np.var(distances), min(distances)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_code_stays_unless_its_score_or_smallest_distance_grows(bits):
    generator = np.random.default_rng(bits)
    kept = 0
    for _ in range(60):
        others = generator.choice([-1.0, 1.0], (12, bits))
        start = generator.choice([-1.0, 1.0], bits)
        for _ in range(3):  # the last starts are hard to improve
            found = improved_code(start, others, 0, generator)
            if np.array_equal(found, start):
                kept += 1
            else:
                (score, least), (before, least_before) = (distance_score(c, others) for c in (found, start))
                assert score > before or least > least_before
            start = found
    assert 0 < kept < 180


@pytest.mark.parametrize("seed", range(5))
def test_an_improved_code_is_among_the_best_of_all(seed):
    """Of all 2^8 codes: the constraint is met where any code meets it, and few have smaller products."""
    generator = np.random.default_rng(seed)
    others, most = generator.choice([-1.0, 1.0], (5, 8)), 2
    found = improved_code(others[0], others, most, generator)
    every = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
    products = every @ others.T
    allowed = (products <= most).all(axis=1)
    assert allowed.any() and (others @ found <= most).all()
    better = (products.sum(axis=1)[allowed] < (others @ found).sum()).mean()
    assert better <= 0.25


@pytest.mark.thorough
def test_separated_centres_keep_their_distance():
    assert separation(separated_centres(10, 48, np.random.default_rng(0)))[0] >= 0.2 * 48
    crowded = separated_centres(16, 4, np.random.default_rng(0), failures=50)
    assert len(np.unique(crowded, axis=0)) == 16  # all codes of four bits


@both_labels
def test_mdsh_is_the_loss_of_loops(labels):
    method = MDSH(bits=BITS, pairs=0.7, quantisation=0.01)
    method._follow = lambda batch: None
    table, every = GENERATOR.normal(size=(2 * ITEMS - 1, BITS)), torch.cat([labels, labels])[1:]
    memory = SimpleNamespace(table=normalize(torch.from_numpy(table)), labels=every)
    memory.members = _members(every)
    assert (memory.members is None) == (labels is SEVERAL)

    def formula(u):
        u, classes, pairs = np.tanh(u), 0.0, []
        for item, row in enumerate(labels.numpy()):
            logits = np.array([math.sqrt(BITS) * cosine(u[item], code) for code in CODES])
            p = np.exp(logits) / np.exp(logits).sum()
            classes -= sum(y * math.log(q) + (1 - y) * math.log(1 - q) for y, q in zip(row, p))
            for other in range(len(every)):
                if row @ every[other].numpy() > 0:
                    pairs.append(math.log1p(math.exp((1 - cosine(u[item], table[other])) / 2)))
        return classes / (ITEMS * CLASSES) + 0.7 * np.mean(pairs) + 0.01 * np.mean((np.abs(u) - 1) ** 2)

    given = {"memory": memory, "epoch": 9, "labels": labels}
    check(lambda u: method.loss(u, batch(criterion=codes(), **given)), formula)


def test_what_a_method_freezes_stays_frozen():
    """MDSH's copy of its head is moved by the method, never by gradients."""

    class Watched(MDSH):
        def loss(self, outputs, batch):
            follower = batch.training.criterion.follower
            seen.extend(value.requires_grad for value in follower.parameters())
            return super().loss(outputs, batch)

    seen = []
    Watched(bits=BITS, epochs=1, device="cpu").fit(class_set())
    assert seen and not any(seen)


def test_mdsh_follower_is_the_moving_average_of_the_head():
    class Watched(MDSH):
        def loss(self, outputs, batch):
            heads.append({name: value.detach().clone() for name, value in self.network.named_parameters()})
            return super().loss(outputs, batch)

    heads = []
    settings = {"epochs": 3, "batch_size": 80, "learning_rate": 0.1}
    method = Watched(bits=BITS, copy_momentum=0.9, **settings).fit(class_set())
    for name, first in heads[0].items():
        expected = 0.9 * (0.9 * first + 0.1 * heads[1][name]) + 0.1 * heads[2][name]
        assert method.criterion_state[f"follower.{name}"] == pytest.approx(expected.numpy(), abs=1e-5)


def test_mdsh_table_holds_the_relaxed_codes_of_the_follower_at_unit_length():
    method = MDSH(bits=BITS, copy_momentum=1.0)
    method.network, follower = method.hash_layer(7).double(), method.hash_layer(7).double()
    features, places = torch.from_numpy(GENERATOR.normal(size=(4, 7))), torch.tensor([5, 0, 3, 8])
    memory = SimpleNamespace(table=torch.zeros(9, BITS, dtype=torch.float64))
    criterion = SimpleNamespace(follower=follower)
    method._follow(batch(memory=memory, criterion=criterion, features=features, indices=places))
    expected = np.zeros((9, BITS))
    expected[places] = normalize(torch.tanh(follower(features).detach())).numpy()
    assert memory.table.numpy() == pytest.approx(expected)


@both_labels
def test_hyp2_is_the_loss_of_loops(labels):
    def formula(u):
        near, far, apart = [], [], []
        for item, label in itertools.product(range(ITEMS), range(CLASSES)):
            value = cosine(u[item], PROXIES[label])
            if labels[item, label]:
                near.append(1 - value)
            else:
                far.append(max(0.0, value - 0.1))
        for i, j in itertools.product(range(ITEMS), repeat=2):
            if labels[i].sum() > 1 and labels[j].sum() > 1 and labels[i] @ labels[j] == 0:
                apart.append(max(0.0, cosine(u[i], u[j]) - 0.1))
        return np.mean(near) + np.mean(far) + 0.5 * (np.mean(apart) if apart else 0.0)

    method = HyP2(bits=BITS, pairs=0.5, zeta=0.1)
    check(lambda u: method.loss(u, batch(criterion=proxies(), labels=labels)), formula)
