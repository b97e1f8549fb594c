"""What a lookup in hash tables costs, counted: buckets that are probed and items that are found in them.

Counts are the same on every machine, and they show what a time hides: codes that share few buckets make
cheap probes and long lists of candidates.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.codes.packing import check_bits, check_packed
from tiebench.values import integer

_ITEMS_AT_ONCE = 1 << 16  # of the database: its substrings and distances then stay in the cache


class LookupCost(NamedTuple):
    """Costs per query, in the order of the queries.

    Parameters
    ----------
    radius : int64 (Q,)
        The Hamming radius that was searched.
    buckets : list of Q int
        Buckets that are probed; they may exceed 64 bits.
    candidates : int64 (Q,)
        Items in these buckets, counted once per table.
    distinct : int64 (Q,)
        The different items among them, whose distance has to be computed.
    within : int64 (Q,)
        Those that are within the radius.
    """

    radius: NDArray[np.int64]
    buckets: list[int]
    candidates: NDArray[np.int64]
    distinct: NDArray[np.int64]
    within: NDArray[np.int64]


def substring_bits(bits: int, tables: int) -> list[int]:
    """Bits of the substring of each table: consecutive ones, the first b mod m longer by one."""
    bits, tables = integer(bits, "bits", 1), integer(tables, "tables", 1)
    return [bits // tables + (table < bits % tables) for table in range(tables)]


def table_radii(radius: int, tables: int) -> list[int]:
    """Radius to which each of m tables is searched, -1 for not at all, to find every item within `radius`.

    For r = m r' + a with 0 <= a < m, the first a + 1 tables are searched to r', the others to r' - 1: an item
    outside all of these differs by at least (a + 1)(r' + 1) + (m - a - 1) r' = r + 1 bits (multi-index
    hashing: Norouzi, Punjani and Fleet, CVPR 2012 and TPAMI 2014).
    """
    each, more = divmod(integer(radius, "radius", 0), integer(tables, "tables", 1))
    return [each - (table > more) for table in range(tables)]


def bucket_count(bits: int, radius: int, tables: int = 1) -> int:
    """Number of buckets that a lookup to a Hamming radius probes, empty ones included.

    One table: the sum of C(b, i), i <= radius. Several: the same of each substring to its `table_radii`.
    """
    return sum(
        math.comb(length, distance)
        for length, near in zip(substring_bits(bits, tables), table_radii(radius, tables))
        for distance in range(min(near, length) + 1)
    )


def lookup_cost(
    query: ArrayLike,
    database: ArrayLike,
    bits: int,
    radius: int | None = None,
    tables: int = 1,
    neighbours: int | None = None,
) -> LookupCost:
    """Buckets and candidates of a lookup of every query in hash tables of the codes.

    The time is that of Q N m substring comparisons, memory that of the codes and of a block of the database.

    Parameters
    ----------
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        Packed codes.
    bits : int
        b, 1 to 1024.
    radius : int, optional
        Every item within this Hamming distance is to be found: 2, unless `neighbours` is given.
    tables : int
        1 for one table of whole codes; m for multi-index hashing, in which each table holds a substring of
        b/m consecutive bits (`substring_bits`) and is searched to its own radius (`table_radii`).
    neighbours : int, optional
        As many nearest items as that are to be found: each query is searched to the smallest radius that
        holds them, as multi-index hashing does by growing its radius.

    Returns
    -------
    `LookupCost`

    Raises
    ------
    ValueError
        For codes that do not fit, a number out of range, or both `radius` and `neighbours`.
    """
    bits = check_bits(bits)
    query = check_packed(query, bits, "query codes")
    database = check_packed(database, bits, "database codes")
    tables = integer(tables, "tables", 1, bits, "the number of bits")
    if neighbours is None:
        radius = integer(2 if radius is None else radius, "radius", 0, bits, "the number of bits")
    elif radius is not None:
        raise ValueError("radius and neighbours exclude each other")
    else:
        neighbours = integer(neighbours, "neighbours", 1, len(database), "the number of items")

    lengths = substring_bits(bits, tables)
    queries = _substrings(query, bits, lengths)
    items = [np.ascontiguousarray(words.T) for words in _substrings(database, bits, lengths)]
    if neighbours is None:
        radii = np.full(len(query), radius, np.int64)
    else:
        radii = np.array([_nearest(words, items, neighbours, bits) for words in zip(*queries)], np.int64)
    found = np.zeros((3, len(query)), np.int64)
    for place, (reach, *words) in enumerate(zip(radii.tolist(), *queries)):
        near = table_radii(reach, tables)
        for begin in range(0, len(database), _ITEMS_AT_ONCE):
            in_tables = np.zeros(min(_ITEMS_AT_ONCE, len(database) - begin), np.uint16)
            whole = np.zeros(len(in_tables), np.uint16)
            for distances, its in zip(_distances(words, items, begin), near):
                in_tables += distances <= its
                whole += distances
            different, inside = np.count_nonzero(in_tables), np.count_nonzero(whole <= reach)
            found[:, place] += in_tables.sum(dtype=np.int64), different, inside
    per_radius = {reach: bucket_count(bits, reach, tables) for reach in set(radii.tolist())}
    return LookupCost(radii, [per_radius[reach] for reach in radii.tolist()], *found)


def _substrings(codes, bits, lengths):
    """Each table's substrings as unsigned words: list of (n, W) arrays."""
    unpacked = np.unpackbits(codes, axis=1, count=bits)
    columns = []
    for end, length in zip(np.cumsum(lengths), lengths):
        packed = np.packbits(unpacked[:, end - length : end], axis=1)
        # The smallest word that holds them all: less memory to read.
        size = min(8, 1 << (packed.shape[1] - 1).bit_length())
        padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % size)))
        columns.append(np.ascontiguousarray(padded).view(f"u{size}"))
    return columns


def _distances(words, items, begin):
    """Per table, the distances of one query's substring (W,) to those of a block of items (W, N)."""
    part = slice(begin, begin + _ITEMS_AT_ONCE)
    for its, columns in zip(words, items):
        first, *others = (np.bitwise_count(column[part] ^ word) for word, column in zip(its, columns))
        yield sum((other.astype(np.uint16) for other in others), start=first)


def _nearest(words, items, neighbours, bits):
    """Smallest radius around one query that holds so many items."""
    counts = np.zeros(bits + 1, np.int64)
    for begin in range(0, items[0].shape[1], _ITEMS_AT_ONCE):
        whole = sum(distances.astype(np.int64) for distances in _distances(words, items, begin))
        counts += np.bincount(whole, minlength=bits + 1)
    return int(np.searchsorted(np.cumsum(counts), neighbours))
