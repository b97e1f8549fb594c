"""The batched SVM solver against scikit-learn's, and what warm starts and batches must not change."""

import warnings

import numpy as np
import pytest
from sklearn.svm import LinearSVC

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
    weights, report = fit_linear_svms(items, codes, C, tolerance=1e-9)
    assert weights.shape == (items.shape[1] + 1, codes.shape[1])
    assert weights.dtype == np.float64
    assert report.unconverged == 0
    reached = objectives(items, codes, weights, C)
    assert report.objectives == pytest.approx(reached, rel=1e-9)
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
    weights, report = fit_linear_svms(items, codes, 100.0, tolerance)
    assert report.unconverged == 0
    assert np.all(stopping_ratios(items, codes, weights, 100.0) <= tolerance * 1.001)


def test_without_iterations_a_start_comes_back_and_one_iteration_lowers_the_objective():
    items, codes = problem("noisy", seed=6)
    start = np.random.default_rng(7).normal(size=(items.shape[1] + 1, codes.shape[1]))
    weights, report = fit_linear_svms(items, codes, 2.0, start=start, max_iterations=0)
    assert weights == pytest.approx(start, abs=1e-12)
    assert report.unconverged == codes.shape[1]
    assert report.objectives == pytest.approx(objectives(items, codes, start, 2.0), rel=1e-9)
    before = report.objectives
    for most in range(1, 5):
        _, report = fit_linear_svms(items, codes, 2.0, tolerance=1e-8, start=start, max_iterations=most)
        assert np.all(report.objectives < before)
        assert np.all(report.iterations <= most)
        before = report.objectives


def test_bits_that_do_not_converge_are_counted_and_kept():
    items, codes = problem("noisy", seed=8, bits=6)
    codes[:, 2] = 1
    exact, full = fit_linear_svms(items, codes, 2.0, tolerance=1e-8)
    most = int(full.iterations.max()) - 1
    weights, report = fit_linear_svms(items, codes, 2.0, tolerance=1e-8, max_iterations=most)
    late = full.iterations > most
    assert 0 < report.unconverged == np.count_nonzero(late) < 5
    assert np.all(report.iterations == np.minimum(full.iterations, most))
    # Others are as if those had converged, too.
    assert weights[:, ~late] == pytest.approx(exact[:, ~late], abs=1e-5)
    assert np.all(stopping_ratios(items, codes, weights, 2.0)[late] > 1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_leads_to_the_same_weights(kind):
    items, codes = problem(kind, seed=9)
    weights, report = fit_linear_svms(items, codes, 100.0, tolerance=1e-9)
    start = weights + 0.1 * np.random.default_rng(10).normal(size=weights.shape)
    again, _ = fit_linear_svms(items, codes, 100.0, tolerance=1e-9, start=start)
    assert again == pytest.approx(weights, rel=1e-4, abs=1e-5 * np.abs(weights).max())
    same, repeated = fit_linear_svms(items, codes, 100.0, tolerance=1e-8, start=weights)
    assert same == pytest.approx(weights, abs=1e-10 * np.abs(weights).max())
    assert np.all(repeated.iterations == 0)
    assert report.iterations.sum() > 0


def test_items_made_ready_once_and_kinds_of_codes_do_not_matter():
    items, codes = problem("noisy", seed=15)
    expected, _ = fit_linear_svms(items, codes)
    shared = SharedItems(items)
    for given in (codes, codes > 0, codes.astype(np.float64), np.asfortranarray(codes > 0)):
        weights, _ = fit_linear_svms(shared, given)
        assert np.array_equal(weights, expected)


def test_a_bit_of_one_value_gets_that_value_as_its_bias():
    items, codes = problem("noisy", seed=17, bits=4)
    expected, _ = fit_linear_svms(items, codes)
    codes[:, 1], codes[:, 3] = 1, -1
    weights, report = fit_linear_svms(items, codes, start=np.ones_like(expected))
    assert np.all(weights[:-1, [1, 3]] == 0)
    assert weights[-1, [1, 3]].tolist() == [1, -1]
    assert report.iterations[[1, 3]].tolist() == [0, 0]
    assert report.objectives == pytest.approx(objectives(items, codes, weights, 100.0), rel=1e-9)
    assert weights[:, 0] == pytest.approx(expected[:, 0], rel=1e-2, abs=1e-3)
    assert report.unconverged == 0
    codes[:] = -1
    weights, report = fit_linear_svms(items, codes)
    assert np.all(weights[:-1] == 0) and np.all(weights[-1] == -1)
    assert report.unconverged == 0


def test_items_whose_labels_cancel_get_zero_weights():
    half = np.random.default_rng(18).normal(size=(30, 6))
    items = np.concatenate([half, half])
    codes = np.repeat([[1], [-1]], 30, axis=0)
    weights, report = fit_linear_svms(items, codes)
    assert weights == pytest.approx(np.zeros((7, 1)), abs=1e-12)
    assert report.unconverged == 0


def test_refused_arguments():
    items, codes = problem("noisy", seed=19)
    bad = np.where(np.arange(len(items))[:, None] == 3, np.nan, items)
    for arguments, settings, words in [
        ((bad, codes), {}, "finite"),
        ((items[:0], codes[:0]), {}, "items must be"),
        ((items, codes[:-1]), {}, r"\(300, bits\)"),
        ((items, np.maximum(codes, 0)), {}, "-1 and 1"),
        ((items, codes), {"tolerance": 0.0}, "positive"),
        ((items, codes), {"max_iterations": -1}, "at least 0"),
        ((items, codes), {"start": np.zeros((20, 5))}, r"\(21, 5\)"),
    ]:
        with pytest.raises(ValueError, match=words):
            fit_linear_svms(*arguments, **settings)
