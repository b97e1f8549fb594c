"""Sums over ranks against mpmath's many digits, near and far, and against adding up plainly."""

import mpmath
import numpy as np
import pytest

from tiebench.rankings import rank_sums

FAR = [
    *(1, 2, 3, 10, 4096, 2**20 - 1, 2**20, 2**20 + 1, 2**20 + 4096, 2**20 + 4097),
    *(10**7, 10**8 - 1, 10**8, 10**9),
]


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(40):
        yield


def test_harmonic_numbers():
    sums = rank_sums.harmonic(10**9)
    for rank, found in zip(FAR, sums._at(np.array(FAR)).tolist()):
        assert abs(mpmath.mpf(found.real) + mpmath.mpf(found.imag) - mpmath.harmonic(rank)) < 1e-15
    assert sums._at(np.array([0])) == 0


@pytest.mark.parametrize("length", [1, 2, 1000, 5000])
@pytest.mark.parametrize("begin", [0, 2**20 - 700, 2**20 + 4000, 10**8 - 7777])
def test_sums_of_a_tie_are_exact_to_double_precision(begin, length):
    begins, ends = np.array([begin]), np.array([begin + length])
    exact = [
        mpmath.fsum(1 / mpmath.mpf(t) for t in range(begin + 1, begin + length + 1)),
        mpmath.fsum(1 / mpmath.log(t + 1, 2) for t in range(begin + 1, begin + length + 1)),
    ]
    for sums, expected in zip((rank_sums.harmonic(10**8), rank_sums.discounts(10**8)), exact):
        # Ties of one item far out are differences of sums near 10^7: a few of their 19 digits are lost.
        close = pytest.approx(float(expected), rel=2e-9 if length < 3 else 1e-11)
        assert sums.between(begins, ends)[0] == close


def test_shapes_and_the_edges_of_the_table():
    sums = rank_sums.harmonic(2**20 + 5000)
    ranks = np.arange(2**20 - 50, 2**20 + 5000).reshape(50, -1)
    steps = sums.successive(ranks.ravel())[1:]
    assert sums.successive(ranks).shape == ranks.shape
    assert steps == pytest.approx(1 / ranks.ravel()[1:], rel=1e-11)
    few = rank_sums.harmonic(3).between(np.zeros((2, 2), int), np.array([[0, 1], [2, 3]]))
    assert few.tolist() == [[0, 1], [1.5, 11 / 6]]
