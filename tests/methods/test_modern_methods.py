"""PSLDH, JMLH, SDC, HHF, SHC and DHD at their core steps: loops over the formulas in float64, differences."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from batches import batch
from losses import BITS, CODES, ITEMS, PROXIES, SCORES, SINGLE, both_labels, check, codes, cosine, proxies
from refusing import refused
from scipy.stats import beta
from sets import class_set

from methods.base.training import seeded
from methods.class_codes.centres import separation
from methods.class_codes.linear_codes import BEST_DISTANCES, linear_code_cosine, linear_code_distance
from methods.class_codes.mds_centres import guaranteed_distance, mds_centres
from methods.class_codes.semantic_centres import class_similarities, semantic_centres
from methods.dhd import DHD
from methods.hhf import HHF
from methods.hyp2 import HyP2
from methods.jmlh import JMLH
from methods.mdsh import MDSH
from methods.psldh import PSLDH
from methods.sdc import SDC, calibrated

CLASSES, GENERATOR = len(CODES), np.random.default_rng(2)


@both_labels
def test_psldh_is_the_partial_softmax_of_loops(labels):
    method = PSLDH(bits=BITS, scale=0.3, margin=0.2, quantisation=0.05)

    def formula(u):
        total = 0.0
        for scores, row in zip(u, labels.numpy()):
            h = np.tanh(scores)
            own = 0.0
            others = sum(math.exp(0.3 * h @ CODES[a]) for a in range(CLASSES) if not row[a])
            for c in range(CLASSES):
                if row[c]:
                    numerator = math.exp(0.3 * (h @ CODES[c] - 0.2 * BITS))
                    own -= math.log(numerator / (numerator + others))
            total += own / max(row.sum(), 1) + 0.05 * sum((np.sign(x) - x) ** 2 for x in h)
        return total / ITEMS

    check(lambda u: method.loss(u, batch(criterion=codes(), labels=labels)), formula)


def test_psldh_of_an_item_with_all_labels_is_finite():
    method = PSLDH(bits=BITS)
    u = SCORES.clone().requires_grad_()
    value = method.loss(u, batch(criterion=codes(), labels=torch.ones(ITEMS, CLASSES, dtype=torch.float64)))
    assert torch.isfinite(torch.autograd.grad(value, u)[0]).all()
    assert value.item() == pytest.approx(0.01 * ((SCORES.tanh().abs() - 1) ** 2).sum(1).mean().item())


def test_psldh_objective_of_its_category_network_is_that_of_loops():
    method = PSLDH(bits=BITS, balance=0.3, code_quantisation=0.2)
    given = torch.from_numpy(GENERATOR.normal(size=(CLASSES, BITS)))

    def formula(t):
        apart = sum(
            max(0.0, t[i] @ t[j]) ** 2 for i, j in itertools.product(range(CLASSES), repeat=2) if i != j
        )
        balance = sum(t[:, k].sum() ** 2 for k in range(BITS))
        rounding = sum((np.sign(x) - x) ** 2 for x in t.ravel())
        return apart / CLASSES**2 + 0.3 * balance / CLASSES + 0.2 * rounding / CLASSES

    check(method.code_loss, formula, given)


@pytest.mark.thorough
def test_psldh_gives_no_two_labels_one_code():
    with refused("two of 4 labels one code of 2 bits"):
        PSLDH(bits=2, epochs=1).fit(class_set())
    trained = PSLDH(bits=8, epochs=1).fit(class_set()).criterion_state["codes"]
    assert len(np.unique(trained, axis=0)) == CLASSES


@both_labels
@pytest.mark.parametrize("stochastic", [True, False])
def test_jmlh_is_the_classifier_on_drawn_codes_and_its_gradient_goes_to_the_probabilities(labels, stochastic):
    method = JMLH(bits=BITS, divergence=0.3, stochastic=stochastic)
    classifier = torch.nn.Linear(BITS, CLASSES).double()
    weight, bias = classifier.weight.detach().numpy(), classifier.bias.detach().numpy()
    torch.manual_seed(5)
    threshold = torch.rand_like(SCORES).numpy() if stochastic else np.full((ITEMS, BITS), 0.5)
    u = SCORES.clone().requires_grad_()
    torch.manual_seed(5)
    value = method.loss(u, batch(criterion=classifier, labels=labels))
    gradient = torch.autograd.grad(value, u)[0].numpy()
    total = 0.0
    for i, row in enumerate(labels.numpy()):
        p = 1 / (1 + np.exp(-SCORES[i].numpy()))
        code = (p > threshold[i]).astype(float)
        exponentials = np.exp(weight @ code + bias)
        shares, count = exponentials / exponentials.sum(), max(row.sum(), 1)
        total -= sum(y / count * math.log(share) for y, share in zip(row, shares))
        total += 0.3 * sum(x * math.log(2 * x) + (1 - x) * math.log(2 * (1 - x)) for x in p)
        by_code = sum(y / count * (shares @ weight - weight[c]) for c, y in enumerate(row))
        by_score = p * (1 - p) * (by_code + 0.3 * np.log(p / (1 - p)))
        assert gradient[i] == pytest.approx(by_score / ITEMS, rel=1e-9)
    assert value.item() == pytest.approx(total / ITEMS)


@pytest.mark.parametrize("items", [8, 9])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_sdc_is_the_distance_of_sorted_cosines_from_quantiles(items, orthogonal):
    method = SDC(bits=BITS, shape=2.0, quantisation=0.4, orthogonal=orthogonal)
    features = torch.from_numpy(GENERATOR.normal(size=(items, 7)))
    half = items // 2

    def formula(v):
        pairs = sorted(
            (cosine(features[i].numpy(), features[half + i].numpy()), cosine(v[i], v[half + i]))
            for i in range(half)
        )
        total = 0.0
        for k, (_, found) in enumerate(pairs, start=1):
            target = 2 * beta.ppf((2 * k - 1) / (2 * half), 2.0, 2.0) - 1
            total += abs(found - (max(target, 0.0) if orthogonal else target)) / half
        rounding = sum(1 - cosine(row, np.where(row > 0, 1.0, -1.0)) for row in v[: 2 * half])
        return total + 0.4 * rounding / (2 * half)

    check(lambda u: method.loss(u, batch(features=features)), formula, SCORES[:items])


@pytest.mark.parametrize("kind", [MDSH, SDC])
def test_scores_of_a_batch_have_mean_0_and_variance_1_in_each_bit(kind):
    features = torch.from_numpy(100 * GENERATOR.normal(size=(20, 7)) + 50)
    scores = kind(bits=BITS).hash_layer(7).double()(features).detach().numpy()
    assert scores.mean(axis=0) == pytest.approx(np.zeros(BITS), abs=1e-9)
    assert scores.var(axis=0) == pytest.approx(np.ones(BITS), abs=1e-3)


def test_sdc_targets_spread_over_all_cosines():
    assert calibrated(4, 1.0) == pytest.approx([-0.75, -0.25, 0.25, 0.75])  # uniform
    assert calibrated(5, 5.0)[2] == pytest.approx(0.0)
    assert np.abs(calibrated(50, 10.0)).mean() < np.abs(calibrated(50, 2.0)).mean()


@both_labels
@pytest.mark.parametrize("zeta", [None, -0.3])
def test_hhf_is_the_loss_of_loops(labels, zeta):
    method = HHF(bits=BITS, sharpness=4.0, relaxation=0.1, quantisation=0.01, zeta=zeta)
    margin = linear_code_cosine(BITS, CLASSES) if zeta is None else zeta

    def formula(u):
        near, far, present = 0.0, 0.0, 0
        for c in range(CLASSES):
            own, others = 0.0, 0.0
            for i in range(ITEMS):
                value = cosine(u[i], PROXIES[c])
                if labels[i, c]:
                    own += math.exp(4 * max(0.0, 1 - 0.1 - value)) - 1
                else:
                    others += math.exp(4 * max(0.0, value - margin - 0.1)) - 1
            near, far = near + math.log(1 + own), far + math.log(1 + others)
            present += bool(labels[:, c].any())
        rounding = sum((np.sign(x) - x) ** 2 for x in u.ravel())
        return near / present + far / CLASSES + 0.01 * rounding

    check(lambda u: method.loss(u, batch(criterion=proxies(), labels=labels)), formula)


@pytest.mark.parametrize("kind", [HyP2, HHF])
def test_proxies_start_at_normal_draws(kind):
    with seeded(0, 4):
        drawn = kind(bits=50).build_criterion(SimpleNamespace(classes=40))["proxies"].detach()
    assert drawn.std().item() == pytest.approx(math.sqrt(2 / 40), rel=0.1)
    assert drawn.mean().item() == pytest.approx(0.0, abs=0.03)


def test_distances_of_linear_codes_are_within_griesmers_bound_and_give_the_released_margins():
    for bits, distances in BEST_DISTANCES.items():
        for dimension, distance in enumerate(distances, start=4):
            assert sum(-(-distance // 2**power) for power in range(dimension)) <= bits
    # As the authors' table of codes prints them, by bits and dimension.
    for bits, labels, zeta in (
        (12, 10, 0.0),
        (12, 21, 1 / 3),
        (16, 100, 0.25),
        (32, 80, 0.125),
        (64, 10, -1 / 32),
        (36, 21, 1 / 18),  # HyP2's paper
    ):
        assert linear_code_cosine(bits, labels) == pytest.approx(zeta)
    assert linear_code_cosine(48, 8) == pytest.approx(-0.125)  # from the bound: dimension 3
    assert linear_code_distance(8, 2) == 8  # one dimension: the repetition code
    assert linear_code_distance(8, 32) == 2  # Griesmer's bound allows 3


def test_similarities_of_classes_are_those_of_counting():
    places = np.array([0, 1, 2, 3, 0, 1, 2, 3, 3])
    logits = GENERATOR.normal(size=(9, CLASSES))
    rows = np.zeros((CLASSES, CLASSES))
    for c in range(CLASSES):
        members = [i for i in range(9) if places[i] == c]
        for i in members:
            normaliser = sum(math.exp(logits[i, a]) for a in range(CLASSES) if a != c)
            for a in range(CLASSES):
                rows[c, a] += 0 if a == c else math.exp(logits[i, a]) / normaliser / len(members)
        mean = rows[c].sum() / CLASSES
        rows[c] = (rows[c] - mean) / max(abs(rows[c].max() - mean), abs(rows[c].min() - mean))
    found = class_similarities(logits, places)
    for a, b in itertools.product(range(CLASSES), repeat=2):
        assert found[a, b] == pytest.approx(1.0 if a == b else (rows[a, b] + rows[b, a]) / 2)


def plain_search(start, similarities, penalty, eta):
    """The released search in loops, on codes as columns; penalty: its beta, of the slack variables K."""
    h, classes = start.T.astype(float), len(start)
    bits = len(h)
    d = guaranteed_distance(classes, bits)
    multipliers = np.full((bits, classes), 0.1)
    least, best = np.inf, None
    for _ in range(30):
        left = 2 / bits**2 * h @ h.T + 0.2 * np.eye(bits)
        m = np.linalg.inv(left) @ (2 / bits * h @ similarities + multipliers + 0.2 * h)
        k = np.maximum(bits - 2 * d - h.T @ h, 0)
        for _, i in itertools.product(range(3), range(classes)):
            term = np.zeros(bits)
            for j in range(classes):
                if j != i:
                    term += 2 * 0.625 * h[:, j]
                    term += penalty * (2 * bits * h[:, i] - 2 * (bits - 2 * d - k[i, j]) * h[:, j])
            gradient = 2 / bits**2 * m @ (m.T @ h[:, i]) - 2 / bits * m @ similarities[:, i]
            gradient += multipliers[:, i] + 0.2 * (h[:, i] - m[:, i]) + term / classes**2
            moved = h.copy()
            moved[:, i] = np.sign(h[:, i] - gradient / eta)
            distances = [
                (bits - moved[:, a] @ moved[:, b]) / 2 for a, b in itertools.combinations(range(classes), 2)
            ]
            if min(distances) >= d:
                h = moved
        multipliers += 0.2 * (h - m)
        error = ((similarities - h.T @ h / bits) ** 2).sum()
        if error < least:
            least, best = error, h.copy()
    return best.T


@pytest.mark.parametrize(("seed", "eta"), [(0, 0.5), (1, 0.5), (2, 0.2), (3, 0.1)])
def test_semantic_centres_are_those_of_the_released_search(seed, eta):
    """With its penalty of 1e-6 on the slack variables, which changes no code."""
    generator = np.random.default_rng(seed)
    similarities = class_similarities(3 * generator.normal(size=(60, 10)), np.arange(60) % 10)
    start = mds_centres(10, 16, np.random.default_rng(1))
    found = semantic_centres(similarities, 16, np.random.default_rng(1), eta)
    assert np.array_equal(found, plain_search(start, similarities, 1e-6, eta)) and (found != start).any()
    assert separation(found)[0] >= guaranteed_distance(10, 16)


@both_labels
def test_dhd_is_the_loss_of_loops(labels):
    method = DHD(bits=BITS, temperature=0.3, distillation=0.4, quantisation=0.2, deviation=0.6)
    second = torch.from_numpy(GENERATOR.normal(size=(ITEMS, BITS)))
    taught = np.tanh(SCORES.numpy())

    def formula(u):
        total = 0.0
        for i, row in enumerate(labels.numpy()):
            h, strong = np.tanh(u[i]), np.tanh(second[i].numpy())
            logits = [cosine(h, p) / 0.3 for p in PROXIES]
            normaliser = math.log(sum(map(math.exp, logits)))
            total -= sum(y / max(row.sum(), 1) * (x - normaliser) for y, x in zip(row, logits))
            total += 0.4 * (1 - cosine(strong, taught[i]))  # the weak view teaches: it is held fixed
            for x in h:
                near, far = (math.exp(-((x - side) ** 2) / (2 * 0.6**2)) for side in (1, -1))
                one = x > 0
                total -= 0.2 / BITS * (math.log(near) if one else math.log(1 - near))
                total -= 0.2 / BITS * (math.log(1 - far) if one else math.log(far))
        return total / ITEMS

    check(lambda u: method.loss(u, batch(criterion=proxies(), labels=labels, second=second)), formula)


def test_dhd_student_learns_from_the_strong_view_alone():
    method = DHD(bits=BITS, distillation=1.0, quantisation=0.0)
    second = torch.from_numpy(GENERATOR.normal(size=(ITEMS, BITS))).requires_grad_()
    value = method.loss(SCORES, batch(criterion=proxies(), labels=SINGLE, second=second))
    apart = (1 - torch.cosine_similarity(second.tanh(), SCORES.tanh())).mean()
    found, expected = (torch.autograd.grad(one, second)[0] for one in (value, apart))
    assert found == pytest.approx(expected)


def test_dhd_transforms_a_share_of_the_weak_views_and_all_strong_ones():
    method = DHD(bits=BITS, weak_share=0.2, view_dropout=0.5, view_noise=0.0)
    method.backbone = None
    items, seen = torch.ones(4000, 10), {}

    class Lazy:
        @property
        def second(self):
            seen["strong"] = method.augment(items, np.random.default_rng(1))
            return seen["strong"]

    weak = method.augment(items, np.random.default_rng(0))
    assert (weak != items).any(dim=1).double().mean().item() == pytest.approx(0.2, abs=0.02)
    method._of_strong_view(Lazy())
    assert (seen["strong"] != items).any(dim=1).double().mean().item() > 0.99
    again = method.augment(items, np.random.default_rng(0))
    assert torch.equal(again, weak)


def test_dhd_scores_of_an_item_have_mean_0_and_variance_1():
    features = torch.from_numpy(100 * GENERATOR.normal(size=(20, 7)))
    scores = DHD(bits=BITS).hash_layer(7).double()(features).detach().numpy()
    assert scores.mean(axis=1) == pytest.approx(np.zeros(20), abs=1e-9)
    assert scores.var(axis=1) == pytest.approx(np.ones(20), abs=1e-3)


def test_dhd_refuses_a_single_bit():
    with refused("dhd needs at least 2 bits"):
        DHD(bits=1).fit(class_set())
