"""Packed codes to joint histograms of Hamming distance and affinity, without ever holding a Q x N matrix.

The histograms hold everything that ranking metrics can depend on: items at one distance are tied, and a
metric that averages over the orders of ties only needs to know how many items of each affinity a tie holds
(McSherry and Najork 2008; He et al. 2018, Proposition 1). `tiebench.rankings.exact` computes the metrics from
them. Compiled kernels count where Numba is installed; without it NumPy does, to the same integers.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tiebench._compiled import NUMBA
from tiebench.affinities import (
    Affinity,
    AffinityBlocks,
    EqualLabels,
    SharedLabels,
    SparseJudgements,
    check_affinity,
    checked_blocks,
)
from tiebench.codes.packing import as_words, check_bits, check_packed
from tiebench.rankings.ties import Ties, from_counts
from tiebench.values import as_array, integer

if NUMBA:
    from tiebench.counting import bitslice

SLICED_BITS = 128  # up to which the bit-sliced kernel counts, where Numba is installed
BLOCK_PAIRS = 1 << 22  # pairs whose affinities are held at once where they are given block by block
_NUMPY_PAIRS = 1 << 20  # pairs that NumPy counts at once, some 30 bytes of memory each


@dataclass(frozen=True)
class JointHistograms:
    """Items by distance and affinity: all that ranking metrics of codes depend on.

    Parameters
    ----------
    levels : int64 (V,)
        The affinities, ascending from 0.
    counts : int64 (Q, V, b + 1)
        counts[q, v, d] is the number of database items at distance d whose affinity to query q is levels[v].
    memo : dict
        What metrics keep for one another.
    """

    levels: np.ndarray
    counts: np.ndarray
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("levels", "counts"):
            object.__setattr__(self, name, as_array(getattr(self, name), name))

    @property
    def bits(self) -> int:
        """b, the number of bits of a code."""
        return self.counts.shape[2] - 1

    @cached_property
    def ties(self) -> Ties:
        """The ties, a distance each; affinity > 0 is relevant. Most metrics start from them."""
        items = self.counts.sum(axis=1)
        return from_counts(items, items - self.counts[:, 0])


def merge(parts: Iterable[JointHistograms]) -> JointHistograms:
    """Joint histograms of a database from those of its parts: counts add up, so nothing is approximated.

    Parameters
    ----------
    parts : iterable of `JointHistograms`
        Of the same queries against disjoint parts of one database, any number of them. A part may lack the
        higher affinity levels.

    Returns
    -------
    `JointHistograms`

    Raises
    ------
    ValueError
        If queries or bits differ, or if there are no parts.
    """
    parts = list(parts)
    if not parts:
        raise ValueError("there are no histograms to merge")
    levels = np.unique(np.concatenate([part.levels for part in parts]))
    queries, _, distances = parts[0].counts.shape
    counts = np.zeros((queries, len(levels), distances), np.int64)
    for part in parts:
        if part.counts.shape[::2] != (queries, distances):
            raise ValueError(
                f"histograms of {len(part.counts)} queries and {part.bits} bits do not belong with those of "
                f"{queries} queries and {distances - 1} bits"
            )
        counts[:, np.searchsorted(levels, part.levels)] += part.counts
    return JointHistograms(levels, counts)


def joint_histograms(
    query: ArrayLike, database: ArrayLike, bits: int, affinity: Affinity, threads: int = 1
) -> JointHistograms:
    """Joint histograms of Hamming distance and affinity, a query at a time against the whole database.

    Memory: the codes once more as bit planes, and the histograms; nothing of size Q x N. Labels and up to 128
    bits are counted by the bit-sliced kernel, all else by one popcount a pair; both need Numba. Without it,
    NumPy counts some queries at a time.

    Parameters
    ----------
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        Packed codes.
    bits : int
        b, 1 to 1024.
    affinity : `EqualLabels`, `SharedLabels`, `SparseJudgements` or `AffinityBlocks`
        Of these queries and items.
    threads : int
        They share the queries; the counts do not depend on it.

    Returns
    -------
    `JointHistograms`

    Raises
    ------
    ValueError
        One line, for codes and labels that do not fit.
    """
    bits = check_bits(bits)
    query = check_packed(query, bits, "query codes")
    database = check_packed(database, bits, "database codes")
    levels = check_affinity(affinity, len(query), len(database))
    counts = np.zeros((len(query), len(levels), bits + 1), np.int64)
    if not NUMBA:
        count = _numpy_counter(query, database, bits, affinity, counts)
    elif isinstance(affinity, AffinityBlocks) or bits > SLICED_BITS:
        count = _popcount_counter(query, database, bits, affinity, counts)
    else:
        count = _bitslice_counter(query, database, bits, affinity, counts)
    share_queries(count, len(query), threads)
    if isinstance(affinity, SparseJudgements) and NUMBA:
        _move_judged(query, database, affinity, counts)
    return JointHistograms(levels, counts)


def share_queries(count: Callable[[int, int], None], queries: int, threads: int) -> None:
    """Call count(begin, end) for parts of the queries, one part for each thread.

    Parameters
    ----------
    count : function
        Of the first query of a part and the first behind it.
    queries : int
        Their number.
    threads : int
        At most one for each 64 queries is used.

    Raises
    ------
    ValueError
        For threads < 1; and what `count` raises.
    """
    # Never so few queries that slicing the work costs more than it saves.
    shares = max(1, min(integer(threads, "threads", 1), queries // 64))
    edges = np.linspace(0, queries, shares + 1).astype(int)
    if shares == 1:
        count(0, queries)
        return
    with ThreadPoolExecutor(shares) as pool:
        list(pool.map(count, edges[:-1], edges[1:]))


def _bitslice_counter(query, database, bits, affinity, counts):
    width = -(-bits // 8) * 8
    query_bits = np.unpackbits(query, axis=1).astype(bool)
    query_masks = np.where(query_bits, ~np.uint64(0), np.uint64(0))
    items = len(database)
    if isinstance(affinity, SharedLabels):
        labels = affinity.database.shape[1]
        planes = bitslice.slice_bits(database, bits, width)
        label_planes = bitslice.slice_bits(np.packbits(affinity.database, axis=1), labels, labels)
        query_labels = affinity.query.astype(bool)

        def count_labels(low, high):
            bitslice.count_shared_labels(
                planes,
                items,
                query_masks[low:high],
                label_planes,
                query_labels[low:high],
                counts.shape[1],
                bits,
                counts[low:high],
            )

        return count_labels

    begin = end = np.zeros(len(query), np.int64)  # judged pairs: all as irrelevant; `_move_judged` follows
    if isinstance(affinity, EqualLabels):
        order = _class_order(affinity.database)
        classes = affinity.database[order]
        begin = np.searchsorted(classes, affinity.query, side="left")
        end = np.searchsorted(classes, affinity.query, side="right")
        database = database.take(order, axis=0)
    planes = bitslice.slice_bits(database, bits, width)

    def count_classes(low, high):
        bitslice.count_equal_labels(
            planes, items, query_masks[low:high], begin[low:high], end[low:high], bits, counts[low:high]
        )

    return count_classes


def _move_judged(query, database, judgements, counts):
    """Move the judged pairs, which were counted as all others, from level 0 to their own."""
    level = np.searchsorted(judgements.levels, judgements.values)
    for begin in range(0, len(level), BLOCK_PAIRS >> 4):
        some = slice(begin, begin + (BLOCK_PAIRS >> 4))
        rows = judgements.rows[some]
        differing = np.bitwise_count(query[rows] ^ database[judgements.columns[some]])
        distance = differing.sum(axis=1, dtype=np.int64)
        np.subtract.at(counts, (rows, 0, distance), 1)
        np.add.at(counts, (rows, level[some], distance), 1)


def _class_order(classes):
    """Items in the order of their classes. NumPy sorts 16-bit integers by radix, six times as fast."""
    low = int(classes.min())
    if int(classes.max()) - low < 1 << 16:
        classes = (classes.astype(np.int64) - low).astype(np.uint16)
    return np.argsort(classes, kind="stable")


def _popcount_counter(query, database, bits, affinity, counts):
    # Imported here: most scores never need it, and loading a compiled kernel takes time.
    from tiebench.counting import popcount

    query_words, database_words = as_words(query), np.ascontiguousarray(as_words(database).T)
    if isinstance(affinity, (SharedLabels, SparseJudgements)):
        # Judged pairs share no label and are moved later.
        none = np.zeros(len(query), np.uint8)[:, None], np.zeros(len(database), np.uint8)[:, None]
        labels = none if isinstance(affinity, SparseJudgements) else (affinity.query, affinity.database)
        query_labels = as_words(np.packbits(labels[0], axis=1))
        database_labels = np.ascontiguousarray(as_words(np.packbits(labels[1], axis=1)).T)

        def count_labels(low, high):
            popcount.count_shared_labels(
                query_words[low:high], database_words, query_labels[low:high], database_labels, bits,
                counts[low:high],
            )  # fmt: skip

        return count_labels

    step = max(popcount.QUERIES, BLOCK_PAIRS // len(database))
    levels_of = checked_blocks(affinity, len(database))

    def count(low, high):
        for begin in range(low, high, step):
            end = min(begin + step, high)
            levels = levels_of(begin, end)
            popcount.count_levels(query_words[begin:end], database_words, levels, bits, counts[begin:end])

    return count


def _numpy_counter(query, database, bits, affinity, counts):
    query_words, database_words = as_words(query), np.ascontiguousarray(as_words(database).T)
    slots = counts.shape[1] * (bits + 1)
    step = max(1, _NUMPY_PAIRS // len(database))
    levels_of = checked_blocks(affinity, len(database))

    def count(low, high):
        for begin in range(low, high, step):
            end = min(begin + step, high)
            place = levels_of(begin, end).astype(np.int64)
            place *= bits + 1
            for word, column in enumerate(database_words):
                place += np.bitwise_count(query_words[begin:end, word, None] ^ column)
            place += np.arange(end - begin)[:, None] * slots
            found = np.bincount(place.ravel(), minlength=(end - begin) * slots)
            counts[begin:end] += found.reshape(end - begin, *counts.shape[1:])

    return count
