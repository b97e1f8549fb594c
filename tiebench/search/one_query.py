"""Hamming distances of one query to a whole database, compiled."""

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
