"""KSH, SDH, FSDH and classifier codes at their core steps: closed forms, brute force, finite differences."""

import itertools

import numpy as np
import pytest
from refusing import refused
from scipy.linalg import hadamard
from sets import labelled, units
from sklearn.linear_model import LogisticRegression, Ridge
from slopes import central_differences

from methods.classifier_codes import ClassifierCodes, class_codes
from methods.fsdh import FSDH
from methods.ksh import KSH, Residual, Similarity, signs
from methods.learners.discrete import descend
from methods.learners.kernels import gaussian_kernel, ridge_regression
from methods.onehot import OneHot
from methods.sdh import SDH
from tiebench.affinities import EqualLabels
from tiebench.scoring import score_codes

MULTI_HOT = (np.random.default_rng(5).random((120, 6)) < 0.35).astype(np.uint8)
MULTI_ITEMS = (MULTI_HOT @ np.random.default_rng(6).normal(size=(6, 12)) + 0.1).astype(np.float32)


def test_ridge_regression_is_scikit_learns():
    generator = np.random.default_rng(0)
    inputs, targets = generator.normal(size=(50, 8)), generator.normal(size=(50, 3))
    expected = Ridge(alpha=0.7, fit_intercept=False).fit(inputs, targets).coef_.T
    assert ridge_regression(inputs, targets, 0.7) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [np.arange(60) % 4, MULTI_HOT[:60]], ids=["classes", "several labels"])
def test_ksh_similarity_is_the_dense_matrix(labels):
    items = np.random.default_rng(1).normal(size=(60, 5)).astype(np.float32)
    made = labelled(items, labels)
    rows = np.array([3, 7, 8, 20, 41, 59, 12])
    shared = labels[rows][:, None] == labels[rows] if labels.ndim == 1 else labels[rows] @ labels[rows].T > 0
    dense = np.where(shared | np.eye(7, dtype=bool), 1.0, -1.0)
    vectors = np.random.default_rng(2).normal(size=(7, 3))
    assert Similarity(made, rows).times(vectors) == pytest.approx(dense @ vectors)
    assert Similarity(made, rows).times(vectors[:, 0]) == pytest.approx(dense @ vectors[:, 0])


def residual(bits=3, taken=2):
    items, labels = units(count=40, classes=4, dimensions=5)
    made = labelled(items, labels)
    values = np.random.default_rng(3).normal(size=(40, 6))
    found = Residual(Similarity(made, np.arange(40)), bits, values, np.random.default_rng(5))
    dense = bits * np.where(labels[:, None] == labels, 1.0, -1.0)
    for seed in range(taken):
        code = np.random.default_rng(seed).choice([-1.0, 1.0], 40)
        found.subtract(code)
        dense -= np.outer(code, code)
    return found, dense, values


def test_ksh_residual_is_the_dense_one():
    found, dense, values = residual()
    vector = np.random.default_rng(9).normal(size=40)
    assert found.times(vector) == pytest.approx(dense @ vector)
    assert found.squared_norm() == pytest.approx(np.square(dense).mean())
    direction = found.leading_direction()
    assert np.linalg.norm(values @ direction) ** 2 == pytest.approx(40)
    best = direction @ values.T @ dense @ values @ direction
    for seed in range(200):  # no other direction of that length agrees better
        other = np.random.default_rng(seed).normal(size=6)
        other *= np.sqrt(40) / np.linalg.norm(values @ other)
        assert other @ values.T @ dense @ values @ other <= best * (1 + 1e-6)


def test_ksh_gradient_by_finite_differences():
    found, _, _ = residual()
    outputs = np.random.default_rng(4).normal(size=40)
    _, gradient = found.smooth(outputs)
    expected = central_differences(lambda at: found.smooth(at)[0], outputs)
    assert gradient == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_ksh_keeps_the_better_sign_vector_and_its_objective_falls():
    items, labels = units(spread=0.6)
    records = []
    method = KSH(bits=8, anchors=60).fit(labelled(items, labels, log=records.append))
    objectives = [record["objective"] for record in records]
    assert all(later < earlier for earlier, later in itertools.pairwise([64.0, *objectives]))
    outputs = gaussian_kernel(items, method.anchor_items, method.variance) @ method.weights
    codes = signs(outputs - method.thresholds)
    dense = 8 * np.where(labels[:, None] == labels, 1.0, -1.0) - codes @ codes.T
    assert objectives[-1] == pytest.approx(np.square(dense).mean())
    assert np.array_equal(method.encode(items), codes > 0)


def test_ksh_keeps_of_two_vectors_the_one_that_agrees_better(monkeypatch):
    (items, labels), tried = units(count=60, classes=4), []

    def drawn(*given):
        tried.append(np.random.default_rng(len(tried)).normal(size=20))
        return tried[-1]

    monkeypatch.setattr(Residual, "leading_direction", drawn)
    monkeypatch.setattr(KSH, "_refine", lambda *given: (drawn(), 1))
    method = KSH(bits=8, anchors=20).fit(labelled(items, labels))
    values = gaussian_kernel(items, method.anchor_items, method.variance)
    values -= values.mean(axis=0)
    dense, better = 8 * np.where(labels[:, None] == labels, 1.0, -1.0), []
    for bit in range(8):
        codes = [signs(values @ a) for a in tried[2 * bit : 2 * bit + 2]]
        better.append(int(np.argmax([code @ dense @ code for code in codes])))
        assert np.array_equal(method.weights[:, bit], tried[2 * bit + better[-1]])
        dense -= np.outer(codes[better[-1]], codes[better[-1]])
    assert set(better) == {0, 1}


def test_ksh_variance_is_the_mean_squared_distance_of_items_and_anchors():
    items, labels = units(count=50, classes=4)
    method = KSH(bits=2, anchors=20).fit(labelled(items, labels))
    distances = [np.square(item - anchor).sum() for item in items for anchor in method.anchor_items]
    assert method.variance == pytest.approx(np.mean(distances))


def sdh_objective(codes, labels, classifier, targets_of_functions, nu):
    return np.square(labels - codes @ classifier).sum() + nu * np.square(codes - targets_of_functions).sum()


@pytest.mark.parametrize("bits", [1, 4])  # of one bit, where no flip helps is the best of all codes
@pytest.mark.parametrize("seed", range(4))
def test_sdh_descent_never_rises_and_ends_where_no_single_bit_helps(seed, bits):
    generator = np.random.default_rng(seed)
    labels, classifier = np.eye(3)[generator.integers(0, 3, 12)], generator.normal(size=(bits, 3))
    outputs, nu = generator.normal(size=(12, bits)), 0.1
    codes = np.where(generator.random((12, bits)) < 0.5, 1.0, -1.0)
    before = sdh_objective(codes, labels, classifier, outputs, nu)
    descend(codes, nu * outputs + labels @ classifier.T, classifier, 100)
    after = sdh_objective(codes, labels, classifier, outputs, nu)
    assert after <= before
    for item, bit in itertools.product(range(12), range(bits)):
        flipped = codes.copy()
        flipped[item, bit] *= -1
        assert sdh_objective(flipped, labels, classifier, outputs, nu) >= after - 1e-9


def test_sdh_regresses_labels_and_codes_anew_in_every_round(monkeypatch):
    rounds = []

    def kept(codes, targets, classifier, sweeps):
        rounds.append((codes.copy(), targets.copy(), classifier.copy()))
        descend(codes, targets, classifier, sweeps)

    monkeypatch.setattr("methods.sdh.descend", kept)
    items, labels = units(count=60, classes=4)
    settings = {"penalty": 0.7, "nu": 0.3, "ridge": 0.1, "rounds": 2}
    method = SDH(bits=6, anchors=20, **settings).fit(labelled(items, labels))
    inputs = np.hstack([gaussian_kernel(items, method.anchor_items, method.variance), np.ones((60, 1))])
    assert len(rounds) == 2 and not np.array_equal(rounds[0][0], rounds[1][0])
    for codes, targets, classifier in rounds:
        w = np.linalg.solve(codes.T @ codes + 0.7 * np.eye(6), codes.T @ np.eye(4)[labels])
        p = np.linalg.solve(inputs.T @ inputs + 0.1 * np.eye(21), inputs.T @ codes)
        assert classifier == pytest.approx(w)
        assert targets == pytest.approx(np.eye(4)[labels] @ w.T + 0.3 * inputs @ p)


def test_fsdh_ranks_alike_at_16_32_and_64_bits_with_the_published_centres():
    """Sylvester's rows 0 to 9 repeat their 16 columns: a longer code is copies of the shorter one."""
    items, labels = units(400, spread=1.2)
    queries, query_labels = units(100, spread=1.2, seed=1)
    found = []
    for bits in (16, 32, 64):
        method = FSDH(bits=bits, centres="hadamard", anchors=200).fit(labelled(items, labels))
        codes = [np.packbits(method.encode(part), axis=1) for part in (queries, items)]
        found.append(score_codes(*codes, bits, EqualLabels(query_labels, labels)).means["ap"])
    assert found == pytest.approx([found[0]] * 3, rel=1e-12)
    assert 0.3 < found[0] < 0.999


def test_fsdh_is_the_ridge_regression_on_the_codes_of_the_classes():
    items, labels = units()
    method = FSDH(bits=16, centres="hadamard", anchors=50, ridge=0.3, sigma=0.4).fit(labelled(items, labels))
    inputs = gaussian_kernel(items, method.anchor_items, 0.16)
    expected = Ridge(alpha=0.3, fit_intercept=False).fit(inputs, hadamard(16)[labels]).predict(inputs)
    assert inputs @ method.weights == pytest.approx(expected, abs=1e-8)
    assert np.array_equal(method.encode(items), expected > 0)


@pytest.mark.parametrize("classes", [2, 10])
def test_onehot_is_scikit_learns_decision(classes):
    items, labels = units(classes=classes)
    others, _ = units(50, classes=classes, seed=1)
    method = OneHot(bits=12, C=3.0).fit(labelled(items, labels + 5))
    decision = LogisticRegression(C=3.0, max_iter=1000).fit(items, labels).predict(others)
    assert np.array_equal(method.encode(others), np.eye(12, dtype=bool)[decision])


def test_onehot_of_several_labels_has_a_bit_per_label():
    method = OneHot(bits=8, C=100.0).fit(labelled(MULTI_ITEMS, MULTI_HOT))
    codes = method.encode(MULTI_ITEMS)
    assert not codes[:, 6:].any()
    assert np.mean(codes[:, :6] == MULTI_HOT) > 0.9
    for column in (0, 5):
        one = LogisticRegression(C=100.0, max_iter=1000).fit(MULTI_ITEMS, MULTI_HOT[:, column])
        assert np.array_equal(codes[:, column], one.predict(MULTI_ITEMS).astype(bool))


def test_onehot_refuses_fewer_bits_than_classes():
    with refused("one bit per class: 10 for this training set, not 9"):
        OneHot(bits=9).fit(labelled(*units()))


@pytest.mark.parametrize("centres", ["spread_hadamard", "binary"])
def test_classifier_codes_are_the_code_of_the_decision(centres):
    items, labels = units()
    method = ClassifierCodes(bits=16, centres=centres, C=3.0).fit(labelled(items, labels))
    decision = LogisticRegression(C=3.0, max_iter=1000).fit(items, labels).predict(items)
    codes = method.encode(items)
    assert len(np.unique(codes, axis=0)) == len(np.unique(decision))
    assert np.array_equal(codes, method.codes[decision])


def test_binary_class_codes_are_numbers():
    codes = class_codes("binary", 10, 6, None)
    assert (codes @ (1 << np.arange(6))).tolist() == list(range(10))
    with refused(pattern=r"^3 bits cannot tell 10 classes apart; that takes 4 bits$"):
        class_codes("binary", 10, 3, None)
