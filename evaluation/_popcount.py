"""Joint histograms of Hamming distance and affinity by popcounts: any number of bits, any affinity.

Eight queries share a pass over the database, each with a histogram of its own: increments of neighbouring
pairs then seldom wait for one another's store.
"""

import numpy as np
from numba import njit

from evaluation._bitslice import popcount

QUERIES = 8


@njit(nogil=True, boundscheck=False, cache=True)
def count_levels(query_words, database_words, levels, bits, counts):
    """Add each pair to counts[query, level, distance].

    query_words uint64 (Q, W); database_words uint64 (N, W); levels uint8 (Q, N), each below counts.shape[1]
    (checked by the caller); counts int64 (Q, V, b + 1). Bits above `bits` are zero in every word.
    """
    one = np.uint64(1)
    items = np.uint64(database_words.shape[0])
    words = np.uint64(database_words.shape[1])
    stride = np.uint64(bits + 1)
    depth = np.uint64(counts.shape[1])
    size = stride * depth
    table = np.zeros(QUERIES * counts.shape[1] * (bits + 1), np.int64)
    for begin in range(0, query_words.shape[0], QUERIES):
        present = min(QUERIES, query_words.shape[0] - begin)
        table[:] = 0
        for item in range(items):
            for k in range(present):
                distance = np.uint64(0)
                for word in range(words):
                    distance += popcount(database_words[item, word] ^ query_words[begin + k, word])
                slot = np.uint64(k) * size + np.uint64(levels[begin + k, item]) * stride + distance
                table[slot] += np.int64(one)
        for k in range(present):
            for level in range(counts.shape[1]):
                for distance in range(bits + 1):
                    counts[begin + k, level, distance] += table[
                        (k * counts.shape[1] + level) * (bits + 1) + distance
                    ]
