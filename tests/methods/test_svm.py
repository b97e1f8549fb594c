"""The batched SVM solver against scikit-learn's, and what warm starts and batches must not change."""

import warnings

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from methods.learners import svm
from methods.learners.svm import SharedItems, fit_linear_svms


def problem(kind, seed=0, bits=5):
    """Items (n, d) and codes int8 (n, bits) of one kind of difficulty."""
    generator = np.random.default_rng(seed)
    count, dimensions = {"wide": (40, 90), "square": (50, 50), "one dimension": (80, 1)}.get(kind, (300, 20))
    items = generator.normal(size=(count, dimensions))
    scores = items @ generator.normal(size=(dimensions, bits))
    if kind == "unbalanced":
        scores -= np.sort(scores, axis=0)[-4]  # three positives
    elif kind != "separable":
        scores += generator.normal(size=scores.shape) * scores.std()
    if kind == "not negative":  # a common mean direction, as activations after a ReLU have it
        items = np.maximum(items + 3, 0) / 6
    elif kind == "scaled apart":
        items *= np.logspace(-2, 2, dimensions)
    elif kind == "duplicated columns":
        items = np.concatenate([items, items, np.zeros((count, 2))], axis=1)
    elif kind == "repeated items":
        items[count // 2 :] = items[: count // 2]  # their labels may differ
    codes = np.where(scores > 0, 1, -1).astype(np.int8)
    return items, codes


KINDS = ["noisy", "wide", "square", "one dimension", "separable", "unbalanced", "not negative"]
KINDS += ["scaled apart", "duplicated columns", "repeated items"]


def objectives(items, codes, weights, C):
    """The definition, in float64: (bits,)."""
    scores = items.astype(np.float64) @ weights[:-1] + weights[-1]
    losses = np.maximum(0, 1 - codes * scores)
    return 0.5 * (weights**2).sum(axis=0) + C * (losses**2).sum(axis=0)


def gradients(items, codes, weights, C):
    """Of `objectives`, by a way of its own: (d + 1, bits)."""
    extended = np.concatenate([items.astype(np.float64), np.ones((len(items), 1))], axis=1)
    losses = np.maximum(0, 1 - codes * (extended @ weights))
    return weights - 2 * C * extended.T @ (codes * losses)


def oracle(items, codes, C):
    """Weights (d + 1, bits) of LIBLINEAR, as exact as it gets."""
    found = []
    for bit in range(codes.shape[1]):
        machine = LinearSVC(dual=False, C=C, tol=1e-10, intercept_scaling=1, max_iter=20_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it stopped short of so small a tolerance
            machine.fit(items.astype(np.float64), codes[:, bit])
        found.append(np.append(machine.coef_[0], machine.intercept_[0]))
    return np.stack(found, axis=1)


def stopping_ratios(items, codes, weights, C):
    """||gradient|| / (min(positives, negatives) / n ||gradient at 0||), which a tolerance bounds: (bits,)."""
    positives = (codes > 0).sum(axis=0)
    fewer = np.maximum(np.minimum(positives, len(items) - positives), 1)
    at_zero = np.linalg.norm(gradients(items, codes, np.zeros_like(weights), C), axis=0)
    return np.linalg.norm(gradients(items, codes, weights, C), axis=0) / (fewer / len(items) * at_zero)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", KINDS)
def test_objectives_and_weights_are_those_of_liblinear(kind, C):
    items, codes = problem(kind)
    weights = fit_linear_svms(SharedItems(items), codes, C, tolerance=1e-9)
    assert weights.shape == (items.shape[1] + 1, codes.shape[1])
    assert weights.dtype == np.float64
    reached = objectives(items, codes, weights, C)
    theirs = oracle(items, codes, C)
    assert reached == pytest.approx(objectives(items, codes, theirs, C), rel=1e-6)
    # The objective is strongly convex: the minimiser is one.
    assert weights == pytest.approx(theirs, rel=1e-3, abs=1e-4 * np.abs(theirs).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-6])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_meets_the_tolerance_of_liblinear(kind, tolerance, dtype):
    items, codes = problem(kind, seed=3)
    items = items.astype(dtype)
    weights = fit_linear_svms(SharedItems(items), codes, 100.0, tolerance)
    assert np.all(stopping_ratios(items, codes, weights, 100.0) <= tolerance * 1.001)


def test_without_iterations_a_start_comes_back_and_each_iteration_lowers_the_objective(monkeypatch):
    items, codes = problem("noisy", seed=6)
    start = np.random.default_rng(7).normal(size=(items.shape[1] + 1, codes.shape[1]))
    before = np.full(codes.shape[1], np.inf)
    for most in range(5):
        monkeypatch.setattr(svm, "_MOST_ITERATIONS", most)
        weights = fit_linear_svms(SharedItems(items), codes, 2.0, tolerance=1e-8, start=start)
        if most == 0:
            assert weights == pytest.approx(start, abs=1e-12)
        reached = objectives(items, codes, weights, 2.0)
        assert np.all(reached < before)
        before = reached


def test_bits_that_do_not_converge_leave_the_others_as_they_are(monkeypatch):
    items, codes = problem("noisy", seed=8, bits=6)
    codes[:, 2] = 1
    shared = SharedItems(items)
    exact = fit_linear_svms(shared, codes, 2.0, tolerance=1e-8)
    for most in range(1, 20):
        monkeypatch.setattr(svm, "_MOST_ITERATIONS", most)
        weights = fit_linear_svms(shared, codes, 2.0, tolerance=1e-8)
        ratios = stopping_ratios(items, codes, weights, 2.0)
        late = (ratios > 1e-8 * 1.001) & (np.arange(6) != 2)
        if np.count_nonzero(late) < 5:  # the first of them are done
            break
    assert np.count_nonzero(late) > 0
    assert weights[:, ~late] == pytest.approx(exact[:, ~late], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_leads_to_the_same_weights(kind):
    items, codes = problem(kind, seed=9)
    shared = SharedItems(items)
    weights = fit_linear_svms(shared, codes, 100.0, tolerance=1e-9)
    start = weights + 0.1 * np.random.default_rng(10).normal(size=weights.shape)
    again = fit_linear_svms(shared, codes, 100.0, tolerance=1e-9, start=start)
    assert again == pytest.approx(weights, rel=1e-4, abs=1e-5 * np.abs(weights).max())
    same = fit_linear_svms(shared, codes, 100.0, tolerance=1e-8, start=weights)
    assert same == pytest.approx(weights, abs=1e-10 * np.abs(weights).max())


def test_a_bit_of_one_value_gets_that_value_as_its_bias():
    items, codes = problem("noisy", seed=17, bits=4)
    shared = SharedItems(items)
    expected = fit_linear_svms(shared, codes, 100.0)
    codes[:, 1], codes[:, 3] = 1, -1
    weights = fit_linear_svms(shared, codes, 100.0, start=np.ones_like(expected))
    assert np.all(weights[:-1, [1, 3]] == 0)
    assert weights[-1, [1, 3]].tolist() == [1, -1]
    assert weights[:, 0] == pytest.approx(expected[:, 0], rel=1e-2, abs=1e-3)
    codes[:] = -1
    weights = fit_linear_svms(shared, codes, 100.0)
    assert np.all(weights[:-1] == 0) and np.all(weights[-1] == -1)


def test_items_whose_labels_cancel_get_zero_weights():
    half = np.random.default_rng(18).normal(size=(30, 6))
    items = np.concatenate([half, half])
    codes = np.repeat([[1], [-1]], 30, axis=0)
    weights = fit_linear_svms(SharedItems(items), codes, 100.0)
    assert weights == pytest.approx(np.zeros((7, 1)), abs=1e-12)


def test_items_that_are_not_finite_are_refused():
    items, _ = problem("noisy", seed=19)
    with pytest.raises(ValueError, match="finite"):
        SharedItems(np.where(np.arange(len(items))[:, None] == 3, np.nan, items))
