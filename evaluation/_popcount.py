"""Joint histograms of Hamming distance and affinity by popcounts: any number of bits, any affinity.

Distances of some items to eight queries are computed first, word by word, which vector units do; then each
query counts into a histogram of its own, so that increments of neighbouring pairs seldom wait for one
another's store.
"""

import numpy as np

from evaluation._bitslice import popcount
from evaluation._compiled import compiled

QUERIES = 8
_ITEMS = 512  # whose distances to eight queries stay in the first-level cache


@compiled(nogil=True, boundscheck=False)
def count_levels(query_words, database_words, levels, bits, counts):
    """Add each pair to counts[query, level, distance].

    query_words uint64 (Q, W); database_words uint64 (W, N), C-contiguous; levels uint8 (Q, N), each below
    counts.shape[1] (checked by the caller); counts int64 (Q, V, b + 1); N < 2^32. Bits above `bits` are zero
    in every word.
    """
    words, items = database_words.shape
    stride = np.uint32(bits + 1)
    size = counts.shape[1] * (bits + 1)
    table = np.empty((QUERIES, size), np.uint32)
    slots = np.empty((QUERIES, _ITEMS), np.uint32)
    for begin in range(0, query_words.shape[0], QUERIES):
        present = min(QUERIES, query_words.shape[0] - begin)
        table[:] = 0
        for first in range(0, items, _ITEMS):
            block = min(_ITEMS, items - first)
            for k in range(present):
                row = slots[k]
                level = levels[begin + k, first : first + block]
                for item in range(block):
                    row[item] = np.uint32(level[item]) * stride
                for word in range(words):
                    code = query_words[begin + k, word]
                    column = database_words[word, first : first + block]
                    for item in range(block):
                        row[item] += np.uint32(popcount(column[item] ^ code))
            if present == QUERIES:
                for item in range(block):
                    for k in range(QUERIES):  # unrolled, being constant
                        table[k, slots[k, item]] += np.uint32(1)
            else:
                for k in range(present):
                    for item in range(block):
                        table[k, slots[k, item]] += np.uint32(1)
        for k in range(present):
            row = counts[begin + k].reshape(-1)
            for slot in range(size):
                row[slot] += np.int64(table[k, slot])
