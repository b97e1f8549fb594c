"""The listwise objectives and their gradients with respect to distances, one query row at a time, compiled.

For query i, soft histograms c_d (all items) and g_d (items weighted by gain) over bins + 1 centres; an
objective is a function of them (`objectives`), and needs nothing else: so neither the number of
affinity levels nor the number of bins enters the cost per pair. Per pair there is one scatter on the way
there (what two neighbouring bins get of an item follows from weights and weighted shares summed at the lower
one) and one gather on the way back (the derivative by a distance is a difference of neighbouring bins'
derivatives).

Loops over items or bins start at 0, hold few arrays, and divide as NumPy does: only then does Numba's
compiler know that no index is negative, no memory shared and no exception due, and uses the vector units.
"""

import math

import numpy as np

from tiebench._compiled import compiled
from tiebench.losses.objectives import MUTUAL_INFORMATION, NDCG_FULL, NDCG_SIMPLIFIED, evaluate

MAX_AFFINITY = 255
_MOST_ROOM = 18  # bits for a query's sum of gains; above it, what is left for shares is coarser than float32


@compiled(nogil=True, boundscheck=False)
def both_ways(slopes, upstream, factor, out):
    """out[i, j] = u[i] slopes[i, j] + u[j] slopes[j, i]: all (M, M), u = factor upstream (M,)."""
    block = np.uint32(8)  # a block and its mirror image, in and out, stay in the level-1 cache
    items = np.uint32(slopes.shape[0])
    u = upstream * slopes.dtype.type(factor)
    blocks = (items + block - np.uint32(1)) // block
    for row in range(blocks):
        for column in range(row, blocks):
            row_end = min((row + np.uint32(1)) * block, items)
            column_end = min((column + np.uint32(1)) * block, items)
            for i in range(row * block, row_end):
                for j in range(column * block, column_end):
                    both = u[i] * slopes[i, j] + u[j] * slopes[j, i]
                    out[i, j] = both
                    out[j, i] = both


@compiled(nogil=True, boundscheck=False)
def _survey(levels, own):
    """The items' levels, or-ed, and how many are above 0; the query itself left out."""
    seen = np.int64(0)
    relevant = np.int64(0)
    for j in range(len(levels)):
        level = levels[j] if j != own else np.int64(0)
        seen |= level
        relevant += np.int64(level > 0)
    return seen, relevant


@compiled(nogil=True, boundscheck=False)
def _ideal_dcg(levels, own, highest, gain_of, discounts, counts):
    """Ideal DCG of all items but the query itself.

    highest: no level is above; discounts: as in `objective_and_slopes`; counts: int64 (256,), scratch.
    """
    counts[: highest + 1] = 0
    if highest < 8:
        # A word holds all eight counts, a byte each, for as many items as a byte can count.
        for first in range(0, len(levels), 255):
            block = levels[first : first + 255]
            word = np.uint64(0)
            for j in range(len(block)):
                word += np.uint64(1) << np.uint64(8 * (block[j] & 7))
            for level in range(highest + 1):
                counts[level] += np.int64((word >> np.uint64(8 * level)) & np.uint64(255))
        counts[levels[own] & 7] -= 1
    else:
        for j in range(len(levels)):
            counts[np.uint8(levels[j])] += 1
        counts[np.uint8(levels[own])] -= 1
    ideal = 0.0
    rank = 0
    for level in range(highest, 0, -1):
        end = rank + counts[level]
        ideal += gain_of[level] * (discounts[end] - discounts[rank])
        rank = end
    return ideal


@compiled(nogil=True, boundscheck=False)
def _locate(positions, bins, slots, shares):
    """The centre below each position, slots[j], and how far it lies beyond, in bins, shares[j].

    Returns whether all shares lie in -1/2..3/2: no NaN, and nothing far outside of the bins.
    """
    zero = positions.dtype.type(0)
    half = positions.dtype.type(0.5)
    one = positions.dtype.type(1)
    last = positions.dtype.type(bins - 1)
    usual = True
    for j in range(len(positions)):
        z = positions[j]
        bounded = z if z > zero else zero  # NaN, too, becomes 0
        bounded = bounded if bounded < last else last
        k = np.int32(bounded)
        share = z - positions.dtype.type(k)
        usual &= abs(share - half) <= one
        slots[j] = np.uint32(k)
        shares[j] = share
    return usual


@compiled(nogil=True, boundscheck=False)
def _mark_relevant(levels, size, slots):
    """Add `size` to the slots of relevant items: theirs follow those of the others."""
    for j in range(len(levels)):
        slots[j] += np.uint32(size) if levels[j] > 0 else np.uint32(0)


@compiled(nogil=True, boundscheck=False)
def _scatter(sums, slots, amounts):
    """sums[:, slots[j]] += amounts[j]: sums (2, slots) are to be added, and written in turn, so that an
    addition seldom waits for the one before."""
    one = np.uint32(1)
    pairs = len(slots) // 2
    for pair in range(pairs):
        j = np.uint32(2) * np.uint32(pair)
        sums[0, slots[j]] += amounts[j]
        sums[1, slots[j + one]] += amounts[j + one]
    if len(slots) % 2:
        j = np.uint32(2 * pairs)
        sums[0, slots[j]] += amounts[j]


# Centre k gets 1 - f of the items between k and k + 1, and f of those between k - 1 and k: weights and
# weighted shares at the items' slots are all there is to sum. That makes two histograms, one from slot 0 on,
# one from bins + 1 on: with graded gains c and g, else those of items without and with gain, by their slots.


@compiled(nogil=True, boundscheck=False)
def _histograms(slots, shares, gains, own, graded, sums, rests, first, second, out):
    """out (2, bins + 1), in floating point: for anything."""
    size = out.shape[1]
    sums[:] = 0.0
    rests[:] = 0.0
    first[:] = 1.0
    first[own] = 0.0
    for j in range(len(slots)):
        second[j] = first[j] * shares[j]
    _scatter(sums, slots, first)
    _scatter(rests, slots, second)
    if graded:
        for j in range(len(slots)):
            second[j] = gains[j] * shares[j]
        _scatter(sums[:, size:], slots, gains)
        _scatter(rests[:, size:], slots, second)
    for histogram in range(2):
        before = 0.0
        for k in range(size):
            at = histogram * size + k
            rest = rests[0, at] + rests[1, at]
            out[histogram, k] = sums[0, at] + sums[1, at] - rest + before
            before = rest


@compiled(nogil=True, boundscheck=False)
def _histograms_fixed(slots, shares, gains, own, graded, room, sums, first, second, out):
    """As `_histograms` by half as many additions: an item's weight and share in one integer.

    The weight stands in the bits from 62 - room up, the weighted share below, in units of 2^-(60 - 2 room).
    Needs whole gains that sum to at most 2^room, and shares of -1/2..3/2.
    """
    size = out.shape[1]
    field = np.int64(62 - room)
    fraction = np.int64(60 - 2 * room)
    one = np.int64(1) << field
    unit = shares.dtype.type(np.int64(1) << fraction)
    for j in range(len(slots)):
        first[j] = one + np.int64(shares[j] * unit)
    first[own] = 0
    sums[:] = 0
    _scatter(sums, slots, first)
    if graded:
        for j in range(len(slots)):
            second[j] = np.int64(gains[j]) * first[j]
        _scatter(sums[:, size:], slots, second)
    half = np.int64(1) << (field - 1)
    scale = 1.0 / (np.int64(1) << fraction)
    for histogram in range(2):
        before = np.int64(0)
        for k in range(size):
            at = histogram * size + k
            total = sums[0, at] + sums[1, at]
            weight = (total + half) >> field
            rest = total - (weight << field)
            out[histogram, k] = ((weight << fraction) - rest + before) * scale
            before = rest


@compiled(nogil=True, boundscheck=False)
def _slopes(slots, gains, graded, by_c, by_g, table, out):
    """Derivatives by the positions: for an item between two centres, the difference of theirs.

    table (2 bins + 2), scratch: c's, then g's; or of an item without gain, then with.
    """
    size = len(by_c)
    for k in range(size - 1):
        step_c = by_c[k + 1] - by_c[k]
        step_g = by_g[k + 1] - by_g[k]
        table[k] = step_c
        table[size + k] = step_g if graded else step_c + step_g
    if graded:
        of_gain = table[size:]
        for j in range(len(slots)):
            out[j] = table[slots[j]] + gains[j] * of_gain[slots[j]]
    else:
        for j in range(len(slots)):
            out[j] = table[slots[j]]


@compiled(nogil=True, boundscheck=False)
def _wide_histograms(positions, gains, own, bins, delta, c, g):
    """c and g for any delta. Returns NaN where a position is NaN, which no bin would show, else 0."""
    c[:] = 0.0
    g[:] = 0.0
    poison = 0.0
    for j in range(len(positions)):
        if j == own:
            continue
        z = positions[j]
        poison += 0.0 * z
        low = min(max(np.int64(math.ceil(z - delta)), 0), bins + 1)
        high = min(max(np.int64(math.floor(z + delta)), -1), bins)
        for k in range(low, high + 1):
            share = 1.0 - abs(z - k) / delta
            c[k] += share
            g[k] += share * gains[j]
    return poison


@compiled(nogil=True, boundscheck=False)
def _wide_slopes(positions, gains, bins, delta, by_c, by_g):
    """Overwrite positions by the derivatives by them, for any delta."""
    for j in range(len(positions)):
        z = positions[j]
        low = min(max(np.int64(math.ceil(z - delta)), 0), bins + 1)
        high = min(max(np.int64(math.floor(z + delta)), -1), bins)
        slope = 0.0 * z  # NaN stays NaN
        for k in range(low, high + 1):
            sign = 1.0 if z <= k else -1.0
            slope += sign * (by_c[k] + gains[j] * by_g[k])
        positions[j] = slope / delta


@compiled(nogil=True, boundscheck=False)
def objective_and_slopes(positions, affinity, bins, delta, objective, discounts, table, values):
    """Objective of every query row; positions is overwritten by its derivatives.

    positions (M, M): distances in units of the bin width; affinity int64 (M, M); discounts: prefix sums of
    1/log2(t + 1), (M,); table: `discount_sum_table` (used by NDCG_FULL alone); values (M,), written.
    Returns False, with the output unusable, if an affinity lies outside 0..255.
    """
    items = positions.shape[0]
    size = bins + 1
    graded = objective in (NDCG_SIMPLIFIED, NDCG_FULL)
    gain_of = np.empty(MAX_AFFINITY + 1)
    for level in range(MAX_AFFINITY + 1):
        gain_of[level] = 2.0**level - 1.0 if graded else 1.0 * (level > 0)
    histograms = np.empty((2, size))
    c, g = histograms
    by_c, by_g = np.empty(size), np.empty(size)
    slope_table = np.empty(2 * size)
    work = (np.empty(size), np.empty(size))
    level_counts = np.empty(MAX_AFFINITY + 1, np.int64)
    gains = np.empty(items)
    slots = np.empty(items, np.uint32)
    shares = np.empty(items, positions.dtype)
    sums, rests = np.empty((2, 2 * size)), np.empty((2, 2 * size))
    first, second = np.empty(items), np.empty(items)
    sums_fixed = np.empty((2, 2 * size), np.int64)
    first_fixed, second_fixed = np.empty(items, np.int64), np.empty(items, np.int64)
    for i in range(items):
        seen, relevant = _survey(affinity[i], i)
        if seen < 0 or seen > MAX_AFFINITY:
            return False
        ideal = _ideal_dcg(affinity[i], i, seen, gain_of, discounts, level_counts) if graded else 0.0
        if relevant == 0 or (objective == MUTUAL_INFORMATION and relevant == items - 1):
            values[i] = 1.0 if graded else 0.0  # nothing to rank, or nothing to tell apart
            for j in range(items):
                positions[i, j] = 0.0 * positions[i, j]  # NaN stays NaN
            continue

        if graded or delta != 1.0:
            for j in range(items):
                gains[j] = gain_of[np.uint8(affinity[i, j])]
            gains[i] = 0.0
        if delta == 1.0:
            usual = _locate(positions[i], bins, slots, shares)
            if not graded:
                _mark_relevant(affinity[i], size, slots)
            room = math.ceil(math.log2(items * gain_of[seen]))
            if usual and positions.itemsize == 4 and room <= _MOST_ROOM:
                _histograms_fixed(
                    slots, shares, gains, i, graded, room, sums_fixed, first_fixed, second_fixed, histograms
                )
            else:
                _histograms(slots, shares, gains, i, graded, sums, rests, first, second, histograms)
            if not graded:
                c += g
            values[i] = evaluate(objective, c, g, relevant, ideal, items - 1, table, by_c, by_g, work)
            _slopes(slots, gains, graded, by_c, by_g, slope_table, positions[i])
        else:
            poison = _wide_histograms(positions[i], gains, i, bins, delta, c, g)
            values[i] = evaluate(objective, c, g, relevant, ideal, items - 1, table, by_c, by_g, work)
            values[i] += poison
            _wide_slopes(positions[i], gains, bins, delta, by_c, by_g)
        positions[i, i] = 0.0
    return True
