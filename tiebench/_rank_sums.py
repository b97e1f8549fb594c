"""Sums over ranks, f(1) + … + f(r), for r up to a billion and more: what the ranks of a tie add up to."""

from collections.abc import Callable

import numpy as np

_TABLED = 1 << 20  # ranks whose sums are tabled one by one
_STEP = 1 << 12  # ranks between sums that are kept beyond that
_NODES, _WEIGHTS = (part.astype(np.longdouble) for part in np.polynomial.legendre.leggauss(5))


class RankSums:
    """Prefix sums of a smooth function of the rank, in extended precision.

    f, derivative: functions of a longdouble array of ranks; items: the last rank. In double precision,
    differences of neighbouring sums near 10^8 would lose eight digits. Up to about a million the sums are
    tabled; beyond, every 4,096th is, and the rest is the Euler-Maclaurin formula, whose next term is below
    10^-20 of the sum there. So memory is 16 MB, and 16 B for every 4,096 ranks.
    """

    def __init__(self, f: Callable, derivative: Callable, items: int):
        self._f, self._derivative = f, derivative
        ranks = np.arange(1, min(items, _TABLED) + 1, dtype=np.longdouble)
        zero = np.zeros(1, np.longdouble)
        self._table = np.concatenate([zero, np.cumsum(f(ranks))])
        starts = np.arange(_TABLED, max(items, _TABLED) + 1, _STEP, dtype=np.int64)
        steps = self._from(starts[:-1], starts[1:])
        self._kept = self._table[-1] + np.concatenate([zero, np.cumsum(steps)])

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """Sums of f(1..r) for each r of an integer array, longdouble of its shape; 0 for r = 0."""
        if len(self._table) <= _TABLED:  # all ranks are tabled
            return self._table[ranks]
        sums = self._table[np.minimum(ranks, _TABLED)]
        far = ranks > _TABLED
        if np.any(far):
            beyond = ranks[far]
            block = (beyond - _TABLED) // _STEP
            sums[far] = self._kept[block] + self._from(_TABLED + block * _STEP, beyond)
        return sums

    def between(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Sums of f(begin + 1..end), float64 of the arrays' shape."""
        return (self.at(end) - self.at(begin)).astype(np.float64)

    def _from(self, begin, end):
        """Sum of f(begin + 1..end), a few thousand ranks far out, by Euler-Maclaurin."""
        begin, end = begin.astype(np.longdouble), end.astype(np.longdouble)
        half = (end - begin) / 2
        ranks = begin[..., None] + half[..., None] * (1 + _NODES)
        integral = half * (self._f(ranks) * _WEIGHTS).sum(axis=-1)
        edges = (self._f(end) - self._f(begin)) / 2
        return integral + edges + (self._derivative(end) - self._derivative(begin)) / 12


def harmonic(items: int) -> RankSums:
    """Sums of 1/t, for ranks up to `items` at least."""
    return _kept("harmonic", items, lambda t: 1 / t, lambda t: -1 / t**2)


def discounts(items: int) -> RankSums:
    """Sums of 1/log2(t + 1), the discounts of DCG, for ranks up to `items` at least."""
    two = np.log(np.longdouble(2))
    return _kept(
        "discounts", items, lambda t: two / np.log1p(t), lambda t: -two / ((1 + t) * np.log1p(t) ** 2)
    )


_longest: dict[str, tuple[int, RankSums]] = {}  # what is asked for most grows rarely: one of each is enough


def _kept(name, items, f, derivative):
    if name not in _longest or _longest[name][0] < items:
        _longest[name] = items, RankSums(f, derivative, items)
    return _longest[name][1]
