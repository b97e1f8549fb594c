"""Joint histograms of Hamming distance and affinity in NumPy alone: where Numba is not installed."""

from collections.abc import Callable

import numpy as np

_PAIRS_AT_ONCE = 1 << 20  # some 30 bytes of memory each


def count_levels(
    query_words: np.ndarray,
    database_words: np.ndarray,
    block: Callable[[int, int], np.ndarray],
    bits: int,
    counts: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Add the pairs of queries low..high-1 to counts[query, level, distance].

    Parameters
    ----------
    query_words : uint64 (Q, W)
    database_words : uint64 (W, N)
    block : function
        block(begin, end): level indices, integers (end - begin, N), of those queries.
    bits : int
        b.
    counts : int64 (Q, V, b + 1)
        Changed in place.
    low, high : int
        The queries.
    """
    items, slots = database_words.shape[1], counts.shape[1] * (bits + 1)
    step = max(1, _PAIRS_AT_ONCE // items)
    for begin in range(low, high, step):
        end = min(begin + step, high)
        place = block(begin, end).astype(np.int64)
        place *= bits + 1
        for word, column in enumerate(database_words):
            place += np.bitwise_count(query_words[begin:end, word, None] ^ column)
        place += np.arange(end - begin)[:, None] * slots
        found = np.bincount(place.ravel(), minlength=(end - begin) * slots)
        counts[begin:end] += found.reshape(end - begin, *counts.shape[1:])
