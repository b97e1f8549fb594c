"""RaBitQ and BBQ: what they estimate, against printed formulas in loops, and by simulation."""

import functools
import math

import numpy as np
import pytest
from refusing import refused

from methods.base import TrainingSet
from methods.base.catalogue import load_class
from methods.base.estimates import rounded
from tiebench.codes.packing import pack
from tiebench.search.rescoring import estimated_similarity

DIMENSIONS = 12


def vectors(count, dimensions=DIMENSIONS, seed=0):
    return (np.random.default_rng(seed).standard_normal((count, dimensions)) + 0.3).astype(np.float32)


def fitted(name, bits, items, **settings):
    return load_class(name)(bits=bits, **settings).fit(TrainingSet(items, affinity=None))


def estimates(method, queries, items):
    """The squared distances that a method estimates, less |q - c|^2, times -1."""
    database = pack(method.encode(items))
    given = method.query_vectors(queries), database, method.item_factors(items)
    return estimated_similarity(*given, method.bits)


def printed_formula(item, query, centre, directions):
    """|o_r - c|^2 - 2 |o_r - c| |q_r - c| <o-bar, q> / <o-bar, o>, in float64 and in loops, times -1.

    directions: p_1 .. p_b, the rows of the rotation that make a bit.
    """
    residual = [float(a) - float(b) for a, b in zip(item, centre)]
    rest = [float(a) - float(b) for a, b in zip(query, centre)]
    length, query_length = (math.sqrt(sum(value**2 for value in of)) for of in (residual, rest))
    o, q = [value / length for value in residual], [value / query_length for value in rest]
    coded = [0.0] * len(item)
    for direction in directions:
        sign = 1.0 if sum(a * b for a, b in zip(direction, residual)) > 0 else -1.0
        for place, value in enumerate(direction):
            coded[place] += sign * value / math.sqrt(len(directions))
    inner = sum(a * b for a, b in zip(coded, q)) / sum(a * b for a, b in zip(coded, o))
    return -(length**2 - 2 * length * query_length * inner)


@pytest.mark.parametrize(("name", "bits"), [("rabitq", 12), ("rabitq", 5), ("rabitq", 20), ("bbq", 12)])
def test_estimates_are_the_printed_formula(name, bits):
    items, queries = vectors(30), vectors(6, seed=1)
    method = fitted(name, bits, items, query_bits=None)
    centre = items.astype(np.float64).mean(axis=0)
    directions = np.eye(DIMENSIONS)
    if name == "rabitq":
        padded = np.zeros((bits, max(bits, DIMENSIONS)))
        padded[:, :DIMENSIONS] = method.projections.T
        if bits <= DIMENSIONS:
            assert np.allclose(padded @ padded.T, np.eye(bits), atol=1e-12)
        else:  # of a rotation of the padded vectors, these are columns
            assert np.allclose(padded.T @ padded, np.diag([1.0] * DIMENSIONS + [0.0] * 8), atol=1e-12)
        directions = method.projections.T
    found = estimates(method, queries, items)
    expected = [[printed_formula(item, query, centre, directions) for item in items] for query in queries]
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_with_fewer_bits_bbq_is_that_of_the_first_dimensions():
    items, queries = vectors(30), vectors(6, seed=1)
    few = fitted("bbq", 5, items)
    cut = fitted("bbq", 5, items[:, :5])
    assert np.array_equal(few.encode(items), cut.encode(items[:, :5]))
    assert np.array_equal(estimates(few, queries, items), estimates(cut, queries[:, :5], items[:, :5]))
    with refused("bbq makes one bit per dimension: 12 from these items, not 13"):
        fitted("bbq", 13, items)


@pytest.mark.parametrize("name", ["rabitq", "bbq"])
def test_the_estimate_is_exact_for_an_item_as_its_own_query_and_at_the_centroid(name):
    items = vectors(40)
    items[0] = items[1:].astype(np.float64).mean(axis=0)
    method = fitted(name, DIMENSIONS, items, query_bits=None)
    found = estimates(method, items, items)
    squares = np.square(items.astype(np.float64) - method.mean).sum(axis=1)
    assert np.allclose(np.diagonal(found), squares, rtol=1e-5, atol=1e-5)
    method.mean = items[0].astype(np.float64)
    assert method.item_factors(items[:1]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("name", ["rabitq", "bbq"])
def test_two_numbers_are_kept_of_each_item_whatever_the_blocks(name, monkeypatch):
    items = vectors(40)
    method = fitted(name, DIMENSIONS, items)
    whole = method.item_factors(items)
    assert whole.shape == (40, 2) and whole.dtype == np.float32 and whole[0].nbytes == 8
    monkeypatch.setattr("methods.base.ENCODE_ROWS", 7)
    assert np.allclose(method.item_factors(items), whole, rtol=1e-6)


def test_rounding_to_the_nearest_of_sixteen_values_and_at_random():
    coordinates = np.random.default_rng(2).standard_normal((5, 20))
    found = rounded(coordinates, 4, 0.5)
    for row, values in zip(coordinates, found):
        levels = [row.min() + (row.max() - row.min()) * place / 15 for place in range(16)]
        for value, made in zip(row, values):
            assert made == pytest.approx(min(levels, key=lambda level: abs(level - value)))
    chances = np.random.default_rng(3).random((1000, 20))
    draws = np.stack([rounded(coordinates[:1], 4, chance)[0] for chance in chances])
    errors = draws.mean(axis=0) - coordinates[0]
    assert (np.abs(errors) <= 4 * draws.std(axis=0, ddof=1) / math.sqrt(1000) + 1e-12).all()
    assert np.array_equal(rounded(np.ones((1, 3)), 4, 0.5), np.ones((1, 3)))


@functools.cache
def simulated(bits, dimensions, query_bits, draws):
    """Errors of the estimate of <o, q>, and <o-bar, o>, over rotations; o and q are of length 1."""
    rng = np.random.default_rng(5)
    o, q = rng.standard_normal((2, dimensions))
    q = q / np.linalg.norm(q) + o / np.linalg.norm(o)  # not at right angles, where all would be 0
    o, q = (v / np.linalg.norm(v) for v in (o, q))
    items = np.stack([o, -o])  # whose mean is 0
    errors, quality = np.zeros(draws), np.zeros(draws)
    for seed in range(draws):
        method = fitted("rabitq", bits, items, seed=seed, query_bits=query_bits)
        scale, shift = method.item_factors(items[:1])[0].astype(float)
        signs = np.where(method.encode(items[:1])[0], 1.0, -1.0)
        errors[seed] = scale / 2 * float(signs @ method.query_vectors(q[None])[0]) - o @ q
        quality[seed] = -2 * shift / scale / math.sqrt(bits)  # sum |r| / sqrt(b), with |o| = 1
    return errors, quality, 1 - (o @ q) ** 2


@pytest.mark.thorough
@pytest.mark.parametrize(("bits", "query_bits"), [(24, 4), (10, None), (40, 4)])
def test_the_estimate_is_unbiased_over_rotations(bits, query_bits):
    errors, _, _ = simulated(bits, 24, query_bits, 1000)
    assert abs(errors.mean()) <= 4 * errors.std(ddof=1) / math.sqrt(len(errors))


@pytest.mark.parametrize("bits", [24, 10])
def test_the_error_is_that_of_the_paper_s_lemma(bits):
    """Given x = <o-bar, o>, the mean square is (1 - x^2) / x^2 (1 - <o, q>^2) / (D - 1)."""
    errors, quality, sine = simulated(bits, 24, None, 1000)
    excess = errors**2 - (1 - quality**2) / quality**2 * sine / 23
    assert abs(excess.mean()) <= 4 * excess.std(ddof=1) / math.sqrt(len(excess))


@pytest.mark.parametrize("name", ["rabitq", "bbq"])
@pytest.mark.parametrize("query_bits", [0, 9])
def test_query_bits_that_mean_nothing_are_refused(name, query_bits):
    with refused(f"query_bits must be in [1, 8], not {query_bits}"):
        fitted(name, 4, vectors(5), query_bits=query_bits)
