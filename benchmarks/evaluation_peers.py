"""Other ways to evaluate codes, on one thread: common implementations, and the limits of the machine."""

import numpy as np
from numba import njit
from sklearn.metrics import ndcg_score

from tiebench.counting.bitslice import popcount


def signs(packed, bits):
    """Packed codes as float32 (n, b) of -1 and +1."""
    return np.unpackbits(packed, axis=1, count=bits).astype(np.float32) * 2 - 1


def columns(words):
    """Words (n, W) as W contiguous arrays (n,): a fixed place of all codes each."""
    return [np.ascontiguousarray(column) for column in words.T]


def distances(query, database):
    """Hamming distances of words (Q, W) and (N, W): float64 (Q, N)."""
    return sum(np.bitwise_count(one[:, None] ^ other) for one, other in zip(query.T, database.T)).astype(
        np.float64
    )


def numpy_histograms(query, database, bits, levels, depth):
    """Joint histograms int64 (Q, depth, b + 1) with numpy alone: bitwise_count and bincount, query by query.

    query, database: `columns` of the codes; levels uint8 (Q, N): given affinities.
    """
    counts = np.empty((len(levels), depth, bits + 1), np.int64)
    for q in range(len(levels)):
        slot = levels[q] * np.int64(bits + 1)
        for one, other in zip(query, database):
            slot += np.bitwise_count(other ^ one[q])
        counts[q] = np.bincount(slot, minlength=depth * (bits + 1)).reshape(depth, bits + 1)
    return counts


def argsort_average_precision(query, database, query_labels, database_labels):
    """Mean average precision as the field's code computes it: sort by distance, ties in the sort's order.

    After CalcTopMap of DeepHash-pytorch and its many copies: codes float32 (n, b) in {-1, +1}; labels (n, L),
    one-hot or multi-hot; a query at a time. Those programs keep labels as int64, whose matrix product no
    BLAS serves; float32 labels are quicker.
    """
    total = 0.0
    for q in range(len(query)):
        relevant = (query_labels[q] @ database_labels.T > 0).astype(np.float32)
        distance = 0.5 * (query.shape[1] - query[q] @ database.T)
        ranked = relevant[np.argsort(distance)]
        hits = int(ranked.sum())
        if hits:
            total += np.mean(np.arange(1, hits + 1) / (np.flatnonzero(ranked) + 1.0))
    return total / len(query)


def one_hot(labels, classes):
    """Labels for `argsort_average_precision`: class numbers or multi-hot rows as int64 (n, L)."""
    if labels.ndim == 2:
        return labels.astype(np.int64)
    return np.eye(classes, dtype=np.int64)[labels]


def sklearn_ndcg(distances, affinities):
    """Tie-averaged NDCG of scikit-learn, the distances (Q, N) and affinities (Q, N) being given."""
    return ndcg_score(np.exp2(affinities) - 1, -distances)


@njit(cache=True, boundscheck=False)
def sum_of_distances(query, database):
    """Sum of the Hamming distances of all pairs of 64-bit words: XOR and popcount only."""
    total = np.uint64(0)
    block = 2048  # words that stay in the level-1 cache
    for begin in range(0, len(database), block):
        part = database[begin : begin + block]
        for q in range(len(query)):
            word = query[q]
            for item in range(len(part)):
                total += popcount(part[item] ^ word)
    return total
