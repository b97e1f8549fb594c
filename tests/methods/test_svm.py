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


KINDS = [
    "noisy",
    "wide",
    "square",
    "one dimension",
    "separable",
    "unbalanced",
    "not negative",
    "scaled apart",
    "duplicated columns",
    "repeated items",
]


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


@pytest.mark.parametrize("kind", KINDS)
def test_no_neighbour_is_better(kind):
    items, codes = problem(kind, seed=1)
    weights, _ = fit_linear_svms(items, codes, 10.0, tolerance=1e-9)
    best = objectives(items, codes, weights, 10.0)
    generator = np.random.default_rng(2)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            moved = weights + size * generator.normal(size=weights.shape)
            assert np.all(objectives(items, codes, moved, 10.0) > best)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_meets_the_tolerance_of_liblinear(kind, tolerance, dtype):
    items, codes = problem(kind, seed=3)
    items = items.astype(dtype)
    weights, report = fit_linear_svms(items, codes, 100.0, tolerance)
    assert report.unconverged == 0
    assert np.all(stopping_ratios(items, codes, weights, 100.0) <= tolerance * 1.001)


def test_the_gradient_these_tests_go_by_is_that_of_the_objective():
    items, codes = problem("noisy", seed=4)
    weights = np.random.default_rng(5).normal(size=(items.shape[1] + 1, codes.shape[1])) * 0.3
    step = 1e-6
    for row in range(len(weights)):
        moved = np.zeros_like(weights)
        moved[row] = step
        higher = objectives(items, codes, weights + moved, 3.0)
        lower = objectives(items, codes, weights - moved, 3.0)
        slope = gradients(items, codes, weights, 3.0)[row]
        assert (higher - lower) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-3)


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


def test_a_warm_start_takes_fewer_iterations_and_products():
    items, codes = problem("not negative", seed=11, bits=12)
    flipped = np.where(np.random.default_rng(12).random(codes.shape) < 0.01, -codes, codes)
    shared = SharedItems(items)
    before, _ = fit_linear_svms(shared, codes, 100.0)
    cold, cold_report = fit_linear_svms(shared, flipped, 100.0)
    warm, warm_report = fit_linear_svms(shared, flipped, 100.0, start=before)
    assert warm_report.iterations.sum() < cold_report.iterations.sum()
    assert warm_report.products.sum() < cold_report.products.sum()
    assert warm_report.objectives == pytest.approx(cold_report.objectives, rel=1e-4)
    assert np.all(stopping_ratios(items, flipped, warm, 100.0) <= 1e-3)
    assert np.all(stopping_ratios(items, flipped, cold, 100.0) <= 1e-3)


def test_a_path_of_growing_c_spares_products_where_labels_are_separable(monkeypatch):
    items, codes = problem("not negative", seed=20)
    items = np.concatenate([items, np.random.default_rng(21).random((300, 200)) / 5], axis=1)
    _, path_report = fit_linear_svms(items, codes, 1e4, 1e-7, max_iterations=1000)
    monkeypatch.setattr(svm, "_EASY", np.inf)
    _, direct_report = fit_linear_svms(items, codes, 1e4, 1e-7, max_iterations=1000)
    assert path_report.unconverged == direct_report.unconverged == 0
    assert path_report.products.sum() < 0.7 * direct_report.products.sum()
    assert path_report.objectives == pytest.approx(direct_report.objectives, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_bits_do_not_see_each_other(kind):
    items, codes = problem(kind, seed=13)
    together, report = fit_linear_svms(items, codes, 10.0, tolerance=1e-9)
    for bit in range(codes.shape[1]):
        alone, own = fit_linear_svms(items, codes[:, bit : bit + 1], 10.0, tolerance=1e-9)
        assert alone[:, 0] == pytest.approx(together[:, bit], rel=1e-5, abs=1e-6 * np.abs(alone).max())
        assert own.objectives[0] == pytest.approx(report.objectives[bit], rel=1e-9)


def test_the_same_call_gives_the_same_bytes():
    items, codes = problem("noisy", seed=14)
    first, first_report = fit_linear_svms(items.astype(np.float32), codes, start=None)
    second, second_report = fit_linear_svms(items.astype(np.float32), codes, start=None)
    assert first.tobytes() == second.tobytes()
    assert np.array_equal(first_report.products, second_report.products)


def test_items_made_ready_once_and_kinds_of_codes_do_not_matter():
    items, codes = problem("noisy", seed=15)
    expected, _ = fit_linear_svms(items, codes)
    shared = SharedItems(items)
    for given in (codes, codes > 0, codes.astype(np.float64), np.asfortranarray(codes > 0)):
        weights, _ = fit_linear_svms(shared, given)
        assert np.array_equal(weights, expected)


@pytest.mark.parametrize("shape", [(30, 8), (8, 8), (8, 30), (1, 3), (2, 1)])
def test_shared_items_are_the_items_in_another_basis(shape):
    items = np.random.default_rng(16).normal(size=shape)
    shared = SharedItems(items)
    extended = np.concatenate([items, np.ones((len(items), 1))], axis=1)
    rank = min(shape[0], shape[1] + 1)
    assert len(shared) == shape[0]
    assert shared.basis.shape == (shape[1] + 1, rank)
    assert shared.basis.T @ shared.basis == pytest.approx(np.eye(rank), abs=1e-12)
    assert shared.rotated @ shared.basis.T == pytest.approx(extended, abs=1e-12)
    assert shared.rotated.T @ shared.rotated == pytest.approx(np.diag(shared.spectrum), abs=1e-11)


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


def test_two_items():
    """By hand: w x = 1 - slack at ±x with bias 0, so that w = 4 C x / (1 + 4 C x^2)."""
    weights, _ = fit_linear_svms(
        np.array([[2.0], [-2.0]]), np.array([[1, -1], [-1, 1]]), 3.0, tolerance=1e-10
    )
    assert weights == pytest.approx(np.array([[24 / 49, -24 / 49], [0, 0]]), abs=1e-9)


def test_refused_arguments():
    items, codes = problem("noisy", seed=19)
    bad = items.copy()
    bad[3, 4] = np.nan
    for arguments, settings, words in [
        ((bad, codes), {}, "finite"),
        ((items[:, 0], codes), {}, "items must be"),
        ((items[:0], codes[:0]), {}, "items must be"),
        ((items, codes[:-1]), {}, r"\(300, bits\)"),
        ((items, codes[:, 0]), {}, r"\(300, bits\)"),
        ((items, np.maximum(codes, 0)), {}, "-1 and 1"),
        ((items, codes, 0.0), {}, "positive"),
        ((items, codes), {"tolerance": 0.0}, "positive"),
        ((items, codes), {"max_iterations": -1}, "at least 0"),
        ((items, codes), {"start": np.zeros((20, 5))}, r"\(21, 5\)"),
        ((items, codes), {"start": np.full((21, 5), np.inf)}, "finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            fit_linear_svms(*arguments, **settings)
