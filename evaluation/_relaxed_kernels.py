"""The listwise objectives and their gradients with respect to distances, one query row at a time, compiled.

For query i, soft histograms c_d (all items) and g_d (items weighted by gain) over bins + 1 centres; an
objective is a function of them, and needs nothing else: so neither the number of affinity levels nor the
number of bins enters the cost per pair. Per pair there is one scatter on the way there (what two
neighbouring bins get of an item follows from weights and weighted shares summed at the lower one) and one
gather on the way back (the derivative by a distance is a difference of neighbouring bins' derivatives).

Loops over items or bins start at 0, hold few arrays, and divide as NumPy does: only then does Numba's
compiler know that no index is negative, no memory shared and no exception due, and uses the vector units.

The paper's names: c_d, c_d^+, C_d (cumulative), AP_s and DCG_s (the simplified objectives of the appendix),
AP_r and DCG_r (Proposition 2).
"""

import math

import numpy as np

from evaluation._compiled import compiled
from evaluation._discount_sums import DISCOUNT_KNOTS

AP_SIMPLIFIED, AP_FULL, NDCG_SIMPLIFIED, NDCG_FULL, MUTUAL_INFORMATION = range(5)
MAX_AFFINITY = 255
_MOST_ROOM = 18  # bits for a query's sum of gains; above it, what is left for shares is coarser than float32


@compiled(nogil=True)
def _digamma(x):
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (
        1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse * (1 / 132))))
    )
    return shift + math.log(x) - 0.5 / x - series


@compiled(nogil=True)
def _trigamma(x):
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / (x * x)
        x += 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (
        1 / 6 - inverse * (1 / 30 - inverse * (1 / 42 - inverse * (1 / 30 - inverse * (5 / 66))))
    )
    return shift + (1.0 + 0.5 / x + series) / x


@compiled(nogil=True)
def _hermite(x, table):
    """L(x) and L'(x) from `discount_sum_table`."""
    position = x * DISCOUNT_KNOTS
    knot = min(max(int(position), 0), table.shape[1] - 2)
    t = position - knot
    step = 1.0 / DISCOUNT_KNOTS
    y0, y1 = table[0, knot], table[0, knot + 1]
    m0, m1 = table[1, knot] * step, table[1, knot + 1] * step
    a = 2 * (y0 - y1) + m0 + m1
    b = 3 * (y1 - y0) - 2 * m0 - m1
    return ((a * t + b) * t + m0) * t + y0, ((3 * a * t + 2 * b) * t + m0) * DISCOUNT_KNOTS


@compiled(nogil=True)
def _curvature(before, count):
    """R = (c - (C + 1)(psi(C + c + 1) - psi(C + 1))) / (c - 1) and its derivatives by c and C (= before).

    The slope (c+ - 1)/(c - 1) of eq. (apr) times what it multiplies, less the factor c+ - 1. The pole at
    c = 1 is removable; within 1e-3 of it R is interpolated.
    """
    near = 1e-3
    if abs(count - 1.0) < near:
        low, _, low_before = _curvature_away(before, 1.0 - near)
        high, _, high_before = _curvature_away(before, 1.0 + near)
        part = (count - 1.0 + near) / (2 * near)
        return (
            low + part * (high - low),
            (high - low) / (2 * near),
            low_before + part * (high_before - low_before),
        )
    return _curvature_away(before, count)


@compiled(nogil=True)
def _curvature_away(before, count):
    harmonic = _digamma(before + count + 1) - _digamma(before + 1)
    end = _trigamma(before + count + 1)
    value = (count - (before + 1) * harmonic) / (count - 1)
    by_count = (1 - (before + 1) * end - value) / (count - 1)
    by_before = (-harmonic - (before + 1) * (end - _trigamma(before + 1))) / (count - 1)
    return value, by_count, by_before


@compiled(nogil=True, error_model="numpy")
def _ap_simplified(c, g, relevant, by_c, by_g, work):
    """AP_s and its derivatives by the histograms (appendix, 'Differentiating the Objectives')."""
    bins = len(c)
    shares, terms = work
    through_c = 1.0
    through_g = 1.0
    for d in range(bins):  # T_d and P_d
        by_c[d] = through_c + c[d]
        by_g[d] = through_g + g[d]
        through_c += 2 * c[d]
        through_g += 2 * g[d]
    scale = 1.0 / relevant
    for d in range(bins):  # derivatives of the bin's own summand
        inverse = scale / by_c[d]
        ratio = by_g[d] * inverse
        share = g[d] * inverse
        shares[d] = share
        terms[d] = g[d] * ratio
        by_c[d] = -share * ratio * relevant
        by_g[d] = ratio + share
    value = 0.0
    later_c = 0.0
    later_g = 0.0
    for k in range(bins):  # twice those of all later bins
        d = np.uint64(bins - 1 - k)
        own = by_c[d]
        by_c[d] = own + later_c
        by_g[d] += later_g
        later_c += 2 * own
        later_g += 2 * shares[d]
        value += terms[d]
    return value


@compiled(nogil=True)
def _ap_full(c, g, relevant, by_c, by_g):
    """AP_r: the tie-aware AP with real counts; harmonic sums continued by the digamma function."""
    tiny = 1e-6
    bins = len(c)
    before = 0.0
    before_g = 0.0
    value = 0.0
    scale = 1.0 / relevant
    later_c = np.empty(bins)
    later_g = np.empty(bins)
    for d in range(bins):
        n, p = c[d], g[d]
        if n < tiny:
            u = _trigamma(before + 1)
            w = (before + 1) * u - 1
            u_c = w_c = u_b = w_b = 0.0
        else:
            end = _trigamma(before + n + 1)
            u = (_digamma(before + n + 1) - _digamma(before + 1)) / n
            r, r_c, r_b = _curvature(before, n)
            w = r / n
            u_c = (end - u) / n
            w_c = (r_c - w) / n
            u_b = (end - _trigamma(before + 1)) / n
            w_b = r_b / n
        value += p * ((before_g + 1) * u + (p - 1) * w)
        by_g[d] = ((before_g + 1) * u + (2 * p - 1) * w) * scale
        by_c[d] = p * ((before_g + 1) * u_c + (p - 1) * w_c) * scale
        later_g[d] = p * u * scale
        later_c[d] = p * ((before_g + 1) * u_b + (p - 1) * w_b) * scale
        before += n
        before_g += p
    _add_later(later_c, by_c)
    _add_later(later_g, by_g)
    return value * scale


@compiled(nogil=True)
def _add_later(later, out):
    total = 0.0
    for d in range(len(out) - 1, -1, -1):
        out[d] += total
        total += later[d]


@compiled(nogil=True, error_model="numpy")
def _ndcg_simplified(c, g, ideal, by_c, by_g, work):
    """DCG_s / ideal DCG and its derivatives (appendix, eq. (dcg_s))."""
    bins = len(c)
    middles, terms = work
    before = 1.5
    for d in range(bins):
        middles[d] = before + 0.5 * c[d]
        before += c[d]
    ln2 = math.log(2.0)
    scale = 1.0 / ideal
    for d in range(bins):
        by_g[d] = scale * ln2 / math.log(middles[d])
    for d in range(bins):
        terms[d] = g[d] * by_g[d]
        by_c[d] = -terms[d] * by_g[d] / (scale * ln2 * middles[d])
    value = 0.0
    later = 0.0
    for k in range(bins):
        d = np.uint64(bins - 1 - k)
        own = by_c[d]
        by_c[d] = 0.5 * own + later
        later += own
        value += terms[d]
    return value


@compiled(nogil=True)
def _ndcg_full(c, g, ideal, table, by_c, by_g):
    """DCG_r / ideal DCG: the tie-aware DCG with real counts; discount sums continued by `_hermite`."""
    tiny = 1e-6
    bins = len(c)
    before = 0.0
    value = 0.0
    scale = 1.0 / ideal
    later = np.empty(bins)
    sum_before, slope_before = _hermite(0.0, table)
    for d in range(bins):
        n = c[d]
        sum_end, slope_end = _hermite(before + n, table)
        if n < tiny:
            mean = slope_before
            by_c[d] = 0.0
            later[d] = 0.0
        else:
            mean = (sum_end - sum_before) / n
            by_c[d] = g[d] * (slope_end - mean) / n * scale
            later[d] = g[d] * (slope_end - slope_before) / n * scale
        by_g[d] = mean * scale
        value += g[d] * mean
        before += n
        sum_before, slope_before = sum_end, slope_end
    _add_later(later, by_c)
    return value * scale


@compiled(nogil=True)
def _entropy_term(p):
    """p log2 p and its derivative, taken as 1 + log2 p for p > 0 and 1 at p = 0 (the MIHash code's way)."""
    if p <= 0.0:
        return 0.0, 1.0
    log = math.log(p) / math.log(2.0)
    return p * log, log + 1.0


@compiled(nogil=True)
def _mutual_information(c, g, relevant, items, by_c, by_g):
    """I(D; C) in bits: H(D) - H(D | C), each conditional histogram normalised by its hard count."""
    irrelevant = items - relevant
    prior = relevant / items
    value = 0.0
    for d in range(len(c)):
        whole, whole_slope = _entropy_term(c[d] / items)
        positive, positive_slope = _entropy_term(g[d] / relevant)
        negative, negative_slope = _entropy_term((c[d] - g[d]) / irrelevant)
        value += -whole + prior * positive + (1 - prior) * negative
        # With P = c/items, P+ = g/relevant, P- = (c - g)/irrelevant: every factor is 1/items.
        by_c[d] = (negative_slope - whole_slope) / items
        by_g[d] = (positive_slope - negative_slope) / items
    return value


@compiled(nogil=True)
def _objective(objective, c, g, relevant, ideal, items, table, by_c, by_g, work):
    if objective == AP_SIMPLIFIED:
        return _ap_simplified(c, g, relevant, by_c, by_g, work)
    if objective == AP_FULL:
        return _ap_full(c, g, relevant, by_c, by_g)
    if objective == NDCG_SIMPLIFIED:
        return _ndcg_simplified(c, g, ideal, by_c, by_g, work)
    if objective == NDCG_FULL:
        return _ndcg_full(c, g, ideal, table, by_c, by_g)
    return _mutual_information(c, g, relevant, items, by_c, by_g)


@compiled(nogil=True, boundscheck=False)
def both_ways(slopes, upstream, out):
    """out[i, j] = upstream[i] slopes[i, j] + upstream[j] slopes[j, i]: all (M, M), upstream (M,)."""
    block = np.uint32(8)  # a block and its mirror image, in and out, stay in the level-1 cache
    items = np.uint32(slopes.shape[0])
    blocks = (items + block - np.uint32(1)) // block
    for row in range(blocks):
        for column in range(row, blocks):
            row_end = min((row + np.uint32(1)) * block, items)
            column_end = min((column + np.uint32(1)) * block, items)
            for i in range(row * block, row_end):
                for j in range(column * block, column_end):
                    both = upstream[i] * slopes[i, j] + upstream[j] * slopes[j, i]
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
    1/log2(t + 1), (M,); table: `discount_sum_table` (used by NDCG_FULL alone); values float64 (M,), written.
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
            values[i] = _objective(objective, c, g, relevant, ideal, items - 1, table, by_c, by_g, work)
            _slopes(slots, gains, graded, by_c, by_g, slope_table, positions[i])
        else:
            poison = _wide_histograms(positions[i], gains, i, bins, delta, c, g)
            values[i] = _objective(objective, c, g, relevant, ideal, items - 1, table, by_c, by_g, work)
            values[i] += poison
            _wide_slopes(positions[i], gains, bins, delta, by_c, by_g)
        positions[i, i] = 0.0
    return True
