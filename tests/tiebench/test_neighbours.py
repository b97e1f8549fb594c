"""Nearest items against sorted distances of unpacked bits, with and without Numba."""

import numpy as np
import pytest
from refusals import refused

from tiebench.codes.packing import pack
from tiebench.search import neighbours
from tiebench.search.neighbours import nearest, within


def made(bits, queries=5, items=700):
    """Codes around few centres, so that distances are small and ties are large."""
    generator = np.random.default_rng(bits)
    centres = generator.integers(0, 2, (3, bits))
    codes = centres[generator.integers(0, 3, queries + items)]
    codes ^= generator.random(codes.shape) < 0.1
    return codes[:queries], codes[queries:]


@pytest.mark.parametrize("numba", [True, False])
@pytest.mark.parametrize("bits", [1, 7, 8, 13, 64, 65, 200, 1024])
def test_neighbours_are_those_of_a_stable_sort_by_distance(bits, numba, monkeypatch):
    if not numba:
        monkeypatch.setattr(neighbours, "NUMBA", False)
    query, database = made(bits)
    distances = (query[:, None] != database).sum(axis=2)
    order = np.argsort(distances, axis=1, kind="stable")
    packed = pack(query), pack(database), bits
    for k in (1, 10, 600, 700, 1000):
        cut, whole = list(nearest(*packed, k)), list(nearest(*packed, k, whole_ties=True))
        assert len(cut) == len(whole) == 5
        for row, (one, all_of_tie) in enumerate(zip(cut, whole)):
            assert one.items.tolist() == order[row, :k].tolist()
            assert one.distances.tolist() == distances[row, one.items].tolist()
            last = one.distances[-1]
            reached = np.count_nonzero(distances[row] <= last)
            assert one.left_out == reached - len(one.items)
            assert all_of_tie.items.tolist() == order[row, :reached].tolist()
            assert all_of_tie.left_out == 0
    for radius in sorted({0, 1, min(2, bits), bits // 2, bits}):
        for row, one in enumerate(within(*packed, radius)):
            assert set(one.items.tolist()) == set(np.flatnonzero(distances[row] <= radius).tolist())
            assert one.items.tolist() == order[row, : len(one.items)].tolist() and one.left_out == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda codes: nearest(codes, codes, 8, 0), "neighbours must be a positive integer, not 0"),
        (lambda codes: within(codes, codes, 8, -1), "radius must be between 0 and 8"),
        (lambda codes: within(codes, codes, 8, 9), "radius must be between 0 and 8"),
        (lambda codes: nearest(codes, codes, 9, 1), "query codes of 9 bits must be uint8 of shape (n, 2)"),
        (lambda codes: nearest(codes, codes[:0], 8, 1), "database codes holds no codes"),
    ],
)
def test_numbers_out_of_range_are_refused_at_once(call, message):
    """Not at the first query, as in a generator."""
    with refused(message):
        call(np.zeros((5, 1), np.uint8))
