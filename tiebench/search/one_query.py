"""Hamming distances of one query to a whole database, and its ranking in an order of it, compiled."""

import numpy as np

from tiebench._compiled import compiled
from tiebench.counting.popcount import _ITEMS, _add_distances


@compiled(nogil=True, boundscheck=False)
def distances_of(code, database_words, distances, counts):
    """Write the distances of a query to distances uint16 (N,), and count the items at each.

    code uint64 (W,); database_words uint64 (W, N), C-contiguous; counts int64 (b + 1,), added to.
    """
    items = database_words.shape[1]
    slots = np.empty(_ITEMS, np.uint32)
    for first in range(0, items, _ITEMS):
        slots[:] = 0
        _add_distances(slots, code, database_words, first)
        for item in range(min(_ITEMS, items - first)):
            distances[first + item] = np.uint16(slots[item])
            counts[slots[item]] += 1


@compiled(nogil=True, boundscheck=False)
def rank_relevant(distances, level, order, bits, ranks, indices):
    """Write rank and level of the relevant items of one query, best first, ties in the given order.

    distances uint16 (N,); level uint8 (N,), 0 for irrelevant items; order int64 (N,), places of the items;
    ranks int64 and indices uint8, both at least as long as there are relevant items. A counting sort: items
    and relevant items are counted at each distance, then each item in turn takes the next rank of its own.
    """
    rank = np.zeros(bits + 2, np.int64)
    slot = np.zeros(bits + 2, np.int64)
    for item in range(len(distances)):
        rank[distances[item] + 1] += 1
        slot[distances[item] + 1] += level[item] != 0
    for distance in range(bits + 1):
        rank[distance + 1] += rank[distance]
        slot[distance + 1] += slot[distance]
    for item in order:
        distance = distances[item]
        rank[distance] += 1
        if level[item] != 0:
            ranks[slot[distance]] = rank[distance]
            indices[slot[distance]] = level[item]
            slot[distance] += 1
