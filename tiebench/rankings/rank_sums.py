"""Sums over ranks, f(1) + … + f(r), for r up to a billion and more: what the ranks of a tie add up to."""

from collections.abc import Callable

import numpy as np

_TABLED = 1 << 20  # ranks whose sums are tabled one by one
_STEP = 1 << 12  # ranks between sums that are kept beyond that
_NODES, _WEIGHTS = (part.astype(np.longdouble) for part in np.polynomial.legendre.leggauss(5))


class RankSums:
    """Prefix sums of a smooth function of the rank, in extended precision.

    In double precision, differences of neighbouring sums near 10^8 would lose eight digits. Up to about a
    million the sums are tabled; beyond, every 4,096th is, and the rest is the Euler-Maclaurin formula, whose
    next term is below 10^-20 of the sum there. So memory is 16 MB, and 16 B for every 4,096 ranks.

    A tabled sum is two doubles, the parts of a complex number: the sum rounded, and what is missing. A
    difference of both rounds each part once, so it is as exact as that of longdoubles, in half the time.

    Parameters
    ----------
    f, derivative : functions
        Of a longdouble array of ranks.
    items : int
        The last rank.
    """

    def __init__(self, f: Callable, derivative: Callable, items: int):
        self._f, self._derivative = f, derivative
        ranks = np.arange(1, min(items, _TABLED) + 1, dtype=np.longdouble)
        zero = np.zeros(1, np.longdouble)
        table = np.concatenate([zero, np.cumsum(f(ranks))])
        self._table = _pairs(table)
        starts = np.arange(_TABLED, max(items, _TABLED) + 1, _STEP, dtype=np.int64)
        steps = self._from(starts[:-1], starts[1:])
        self._kept = table[-1] + np.concatenate([zero, np.cumsum(steps)])

    def between(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Sums of f(begin + 1..end).

        Parameters
        ----------
        begin, end : integers of one shape

        Returns
        -------
        float64, of their shape
        """
        sums = self._at(end)
        sums -= self._at(begin)
        return sums.real + sums.imag

    def successive(self, ends: np.ndarray) -> np.ndarray:
        """Sums of f over stretches of ranks that follow one another.

        Parameters
        ----------
        ends : integers of any shape
            Last ranks, ascending along the last axis; the first stretch begins at rank 1, and one that ends
            where the one before it does is empty.

        Returns
        -------
        float64, of their shape
        """
        sums = self._at(ends)
        steps = sums.copy()
        steps[..., 1:] -= sums[..., :-1]
        return steps.real + steps.imag

    def _at(self, ranks):
        """Sums of f(1..r) for each r, as pairs: complex of the array's shape; r = 0 has the sum 0."""
        if len(self._table) <= _TABLED:  # all ranks are tabled
            return self._table.take(ranks)
        sums = self._table.take(np.minimum(ranks, _TABLED))
        far = ranks > _TABLED
        if np.any(far):  # seldom, and costly: each once, since empty ties repeat the rank before them
            beyond, places = np.unique(ranks[far], return_inverse=True)
            block = (beyond - _TABLED) // _STEP
            sums[far] = _pairs(self._kept[block] + self._from(_TABLED + block * _STEP, beyond))[places]
        return sums

    def _from(self, begin, end):
        """Sum of f(begin + 1..end), a few thousand ranks far out, by Euler-Maclaurin."""
        begin, end = begin.astype(np.longdouble), end.astype(np.longdouble)
        half = (end - begin) / 2
        ranks = begin[..., None] + half[..., None] * (1 + _NODES)
        integral = half * (self._f(ranks) * _WEIGHTS).sum(axis=-1)
        edges = (self._f(end) - self._f(begin)) / 2
        return integral + edges + (self._derivative(end) - self._derivative(begin)) / 12


def _pairs(sums):
    """Longdoubles as complex numbers: the nearest double, and the rest."""
    pairs = np.empty(len(sums), np.complex128)
    pairs.real = sums
    pairs.imag = sums - pairs.real
    return pairs


def harmonic(items: int) -> RankSums:
    """Sums of 1/t.

    Parameters
    ----------
    items : int
        The last rank that they reach, at least.

    Returns
    -------
    `RankSums`
    """
    return _kept("harmonic", items, lambda t: 1 / t, lambda t: -1 / t**2)


def discounts(items: int) -> RankSums:
    """Sums of 1/log2(t + 1), the discounts of DCG.

    Parameters
    ----------
    items : int
        The last rank that they reach, at least.

    Returns
    -------
    `RankSums`
    """
    two = np.log(np.longdouble(2))
    return _kept(
        "discounts", items, lambda t: two / np.log1p(t), lambda t: -two / ((1 + t) * np.log1p(t) ** 2)
    )


_longest: dict[str, tuple[int, RankSums]] = {}  # what is asked for most grows rarely: one of each is enough


def _kept(name, items, f, derivative):
    found = _longest.get(name)
    if found is None or found[0] < items:
        # Returned from here and not from the table: another thread may have put a shorter one there.
        found = _longest[name] = items, RankSums(f, derivative, items)
    return found[1]
