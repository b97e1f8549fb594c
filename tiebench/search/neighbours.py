"""The nearest database items of queries by Hamming distance, and where a list of them cuts a tie.

One query at a time is compared with the whole database: memory is that of the codes and of one row of
distances.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench._compiled import NUMBA
from tiebench.codes.packing import as_words, check_bits, check_packed
from tiebench.values import integer


class Neighbours(NamedTuple):
    """Items found for one query.

    Parameters
    ----------
    items : int64 (m,)
        Rows of the database, nearest first, in the order of the database inside a tie.
    distances : int64 (m,)
        Hamming distances.
    left_out : int
        Items at the last distance that are not listed, as the list ends inside their tie; 0 if it ends
        between two distances.
    """

    items: NDArray[np.int64]
    distances: NDArray[np.int64]
    left_out: int


def nearest(
    query: ArrayLike, database: ArrayLike, bits: int, neighbours: int, *, whole_ties: bool = False
) -> Iterator[Neighbours]:
    """The nearest items of each query, query by query.

    Parameters
    ----------
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        Packed codes.
    bits : int
        b, 1 to 1024.
    neighbours : int
        How many items, at most all N. Where the last place is inside a tie, the items of the tie that stand
        first in the database are taken.
    whole_ties : bool
        Take the whole tie instead, so that more items are found.

    Raises
    ------
    ValueError
        For codes that do not fit, or a number below 1.
    """
    bits, neighbours = check_bits(bits), integer(neighbours, "neighbours", 1)
    codes, items = _checked(query, database, bits)
    return _found(codes, items, bits, min(neighbours, len(items)), whole_ties)


def within(query: ArrayLike, database: ArrayLike, bits: int, radius: int) -> Iterator[Neighbours]:
    """All items within a Hamming radius of each query, query by query; codes as of `nearest`.

    Raises
    ------
    ValueError
        For codes that do not fit, or a radius that is not 0 to b.
    """
    bits = check_bits(bits)
    codes, items = _checked(query, database, bits)
    radius = integer(radius, "radius", 0, bits, "the number of bits")
    return _found(codes, items, bits, None, True, radius)


def _checked(query, database, bits):
    return check_packed(query, bits, "query codes"), check_packed(database, bits, "database codes")


def _found(query, database, bits, neighbours, whole_ties, radius=0):
    words = np.ascontiguousarray(as_words(database).T)
    distances = np.empty(len(database), np.uint16)
    for code in as_words(query):
        counts = distances_to(code, words, bits, distances)
        if neighbours is not None:
            radius = int(np.searchsorted(np.cumsum(counts), neighbours))
        items = np.flatnonzero(distances <= radius)
        items = items[np.argsort(distances[items], kind="stable")]
        kept = len(items) if whole_ties else neighbours
        yield Neighbours(items[:kept], distances[items[:kept]].astype(np.int64), len(items) - kept)


def distances_to(
    code: NDArray[np.uint64], words: NDArray[np.uint64], bits: int, distances: NDArray[np.uint16]
) -> NDArray[np.int64]:
    """Fill `distances` (N,) with those of one code (W,) to items (W, N); items at each, int64 (b + 1,)."""
    counts = np.zeros(bits + 1, np.int64)
    if NUMBA:
        from tiebench.search import one_query

        one_query.distances_of(code, words, distances, counts)
        return counts
    distances[:] = 0
    for word, column in zip(code, words):
        distances += np.bitwise_count(column ^ word)
    counts += np.bincount(distances, minlength=bits + 1)
    return counts
