"""Joint histograms of Hamming distance and affinity by popcounts: any number of bits, any affinity.

Distances of some items to eight queries are computed first, word by word, which vector units do; then each
query counts into a histogram of its own, so that increments of neighbouring pairs seldom wait for one
another's store.
"""

import numpy as np

from tiebench._compiled import compiled
from tiebench.counting.bitslice import popcount

QUERIES = 8
_ITEMS = 512  # whose distances to eight queries stay in the first-level cache


@compiled(nogil=True, boundscheck=False)
def _add_distances(slots, code, database_words, first):
    """Add Hamming distances of one query, code (W,), to the items from `first` on, to slots (_ITEMS,)."""
    for word in range(len(code)):
        bits = code[word]
        column = database_words[word, first : first + _ITEMS]
        for item in range(len(column)):
            slots[item] += np.uint32(popcount(column[item] ^ bits))


@compiled(nogil=True, boundscheck=False)
def _increment(table, slots, present, block):
    """table[k, slots[k, item]] += 1 of the first `present` queries and `block` items."""
    if present == QUERIES:
        for item in range(block):
            for k in range(QUERIES):  # unrolled, being constant
                table[k, slots[k, item]] += np.uint32(1)
    else:
        for k in range(present):
            for item in range(block):
                table[k, slots[k, item]] += np.uint32(1)


@compiled(nogil=True, boundscheck=False)
def _add_counts(table, counts):
    """Add table (queries or more, V (b + 1)) to counts (queries, V, b + 1), and clear it."""
    for k in range(len(counts)):
        row = counts[k].reshape(-1)
        for slot in range(len(row)):
            row[slot] += np.int64(table[k, slot])
    table[:] = 0


@compiled(nogil=True, boundscheck=False)
def count_levels(query_words, database_words, levels, bits, counts):
    """Add each pair to counts[query, level, distance].

    Parameters
    ----------
    query_words : uint64 (Q, W)
        Bits above `bits` are zero in every word.
    database_words : uint64 (W, N)
        C-contiguous, likewise; N < 2^32.
    levels : uint8 (Q, N)
        Each below V (checked by the caller).
    bits : int
        b.
    counts : int64 (Q, V, b + 1)
        Changed in place.
    """
    items = database_words.shape[1]
    stride = np.uint32(bits + 1)
    table = np.zeros((QUERIES, counts.shape[1] * (bits + 1)), np.uint32)
    slots = np.empty((QUERIES, _ITEMS), np.uint32)
    for begin in range(0, query_words.shape[0], QUERIES):
        present = min(QUERIES, query_words.shape[0] - begin)
        for first in range(0, items, _ITEMS):
            for k in range(present):
                row = slots[k]
                level = levels[begin + k, first : first + _ITEMS]
                for item in range(len(level)):
                    row[item] = np.uint32(level[item]) * stride
                _add_distances(row, query_words[begin + k], database_words, first)
            _increment(table, slots, present, min(_ITEMS, items - first))
        _add_counts(table, counts[begin : begin + present])


@compiled(nogil=True, boundscheck=False)
def count_shared_labels(query_words, database_words, query_labels, database_labels, bits, counts):
    """As `count_levels`, the level being the number of shared labels, or the last one where that is less.

    Parameters
    ----------
    query_words, database_words, bits, counts
        As of `count_levels`.
    query_labels : uint64 (Q, L')
        Labels as bits of L' words.
    database_labels : uint64 (L', N)
        Likewise.
    """
    items = database_words.shape[1]
    stride = np.uint32(bits + 1)
    most = np.uint32(counts.shape[1] - 1)
    table = np.zeros((QUERIES, counts.shape[1] * (bits + 1)), np.uint32)
    slots = np.empty((QUERIES, _ITEMS), np.uint32)
    for begin in range(0, query_words.shape[0], QUERIES):
        present = min(QUERIES, query_words.shape[0] - begin)
        for first in range(0, items, _ITEMS):
            for k in range(present):
                row = slots[k]
                row[:] = 0
                for word in range(query_labels.shape[1]):
                    labels = query_labels[begin + k, word]
                    column = database_labels[word, first : first + _ITEMS]
                    for item in range(len(column)):
                        row[item] += np.uint32(popcount(column[item] & labels))
                for item in range(_ITEMS):
                    row[item] = min(row[item], most) * stride
                _add_distances(row, query_words[begin + k], database_words, first)
            _increment(table, slots, present, min(_ITEMS, items - first))
        _add_counts(table, counts[begin : begin + present])


@compiled(nogil=True, boundscheck=False)
def count_prefixes(query_words, database_words, levels, prefixes, counts):
    """As `count_levels` for the first bits of codes, several numbers of them in one pass.

    Parameters
    ----------
    query_words, database_words, levels
        As of `count_levels`.
    prefixes : int64 (P,)
        Numbers of bits, ascending.
    counts : int64 (Q, P, V, last prefix + 1)
        counts[q, p, v, d], changed in place.
    """
    items = database_words.shape[1]
    stride = np.uint32(counts.shape[3])
    table = np.zeros((len(prefixes), QUERIES, counts.shape[2] * counts.shape[3]), np.uint32)
    slots = np.empty((QUERIES, _ITEMS), np.uint32)
    cut = np.empty((QUERIES, _ITEMS), np.uint32)
    for begin in range(0, query_words.shape[0], QUERIES):
        present = min(QUERIES, query_words.shape[0] - begin)
        for first in range(0, items, _ITEMS):
            block = min(_ITEMS, items - first)
            for k in range(present):
                level = levels[begin + k, first : first + _ITEMS]
                for item in range(len(level)):
                    slots[k, item] = np.uint32(level[item]) * stride
            done = 0  # words whose distances are in the slots
            for p in range(len(prefixes)):
                whole, rest = prefixes[p] // 64, prefixes[p] % 64
                for k in range(present):
                    _add_distances(
                        slots[k], query_words[begin + k, done:whole], database_words[done:whole], first
                    )
                done = whole
                if rest == 0:
                    _increment(table[p], slots, present, block)
                    continue
                mask = _leading(rest)
                for k in range(present):
                    code = query_words[begin + k, whole]
                    column = database_words[whole, first : first + _ITEMS]
                    for item in range(len(column)):
                        differing = (column[item] ^ code) & mask
                        cut[k, item] = slots[k, item] + np.uint32(popcount(differing))
                _increment(table[p], cut, present, block)
        for p in range(len(prefixes)):
            for k in range(present):
                row = counts[begin + k, p].reshape(-1)
                for slot in range(len(row)):
                    row[slot] += np.int64(table[p, k, slot])
        table[:] = 0


@compiled(nogil=True, boundscheck=False)
def _leading(bits):
    """Mask of the first bits of a word of packed codes: the lowest byte first, each from its highest bit."""
    mask = np.uint64(0)
    for byte in range(8):
        kept = min(max(bits - 8 * byte, 0), 8)
        mask |= np.uint64((0xFF00 >> kept) & 0xFF) << np.uint64(8 * byte)
    return mask
