"""The listwise objectives and their gradients with respect to distances, one query row at a time, compiled.

For query i, soft histograms c_d (all items) and g_d (items weighted by gain) over bins + 1 centres; an
objective is a function of them, and needs nothing else: so neither the number of affinity levels nor the
number of bins enters the cost per pair. Per pair there is one scatter on the way there (the items' shares of
two neighbouring bins follow from four sums kept at one index) and one gather on the way back (the derivative
with respect to a distance is a difference of neighbouring bins' derivatives).

The paper's names: c_d, c_d^+, C_d (cumulative), AP_s and DCG_s (the simplified objectives of the appendix),
AP_r and DCG_r (Proposition 2).
"""

import math

import numpy as np

from evaluation._compiled import compiled
from evaluation._discount_sums import DISCOUNT_KNOTS

AP_SIMPLIFIED, AP_FULL, NDCG_SIMPLIFIED, NDCG_FULL, MUTUAL_INFORMATION = range(5)
MAX_AFFINITY = 255
_COPIES = 2  # tables written in turn, so that a scatter rarely waits for the one before


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


@compiled(nogil=True)
def _ap_simplified(c, g, relevant, by_c, by_g, work):
    """AP_s and its derivatives by the histograms (appendix, 'Differentiating the Objectives')."""
    bins = len(c)
    through_c = 0.0
    through_g = 0.0
    for d in range(bins):  # T_d and P_d
        by_c[d] = 2 * through_c + c[d] + 1
        by_g[d] = 2 * through_g + g[d] + 1
        through_c += c[d]
        through_g += g[d]
    value = 0.0
    scale = 1.0 / relevant
    for d in range(bins):  # derivatives of the bin's own summand
        inverse = scale / by_c[d]
        ratio = by_g[d] * inverse
        share = g[d] * inverse
        value += g[d] * ratio
        work[d] = share
        by_c[d] = -share * ratio * relevant
        by_g[d] = ratio + share
    later_c = 0.0
    later_g = 0.0
    for d in range(bins - 1, -1, -1):  # twice those of all later bins
        own = by_c[d]
        by_c[d] = own + later_c
        by_g[d] += later_g
        later_c += 2 * own
        later_g += 2 * work[d]
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


@compiled(nogil=True)
def _ndcg_simplified(c, g, ideal, by_c, by_g):
    """DCG_s / ideal DCG and its derivatives (appendix, eq. (dcg_s))."""
    before = 0.0
    value = 0.0
    scale = 1.0 / ideal
    ln2 = math.log(2.0)
    for d in range(len(c)):
        middle = before + 0.5 * c[d] + 1.5
        inverse = ln2 / math.log(middle)
        value += g[d] * inverse
        by_g[d] = inverse * scale
        by_c[d] = -g[d] * inverse * inverse / (ln2 * middle) * scale
        before += c[d]
    later = 0.0
    for d in range(len(c) - 1, -1, -1):
        own = by_c[d]
        by_c[d] = 0.5 * own + later
        later += own
    return value * scale


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
        return _ndcg_simplified(c, g, ideal, by_c, by_g)
    if objective == NDCG_FULL:
        return _ndcg_full(c, g, ideal, table, by_c, by_g)
    return _mutual_information(c, g, relevant, items, by_c, by_g)


@compiled(nogil=True, boundscheck=False)
def both_ways(slopes, upstream, out):
    """out[i, j] = upstream[i] slopes[i, j] + upstream[j] slopes[j, i]: all (M, M), upstream (M,)."""
    items = slopes.shape[0]
    block = 8  # a block and its mirror image, in and out, stay in the level-1 cache
    for row in range(0, items, block):
        for column in range(row, items, block):
            for i in range(row, min(row + block, items)):
                for j in range(column, min(column + block, items)):
                    both = upstream[i] * slopes[i, j] + upstream[j] * slopes[j, i]
                    out[i, j] = both
                    out[j, i] = both


@compiled(nogil=True, boundscheck=False)
def _survey(levels, begin, end, low, high, relevant):
    """Smallest and largest of levels[begin:end] and the number above 0, carried on from those given."""
    for j in range(begin, end):
        low = min(low, levels[j])
        high = max(high, levels[j])
        relevant += levels[j] > 0
    return low, high, relevant


@compiled(nogil=True, boundscheck=False)
def _scatter(sums, index, shares, gains, begin, end):
    for j in range(begin, end):
        row = sums[j % _COPIES, index[j]]
        f = shares[j]
        gain = gains[j]
        row[0] += 1.0
        row[1] += f
        row[2] += gain
        row[3] += gain * f


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
    gains = np.empty(MAX_AFFINITY + 1)
    for level in range(MAX_AFFINITY + 1):
        gains[level] = 2.0**level - 1.0 if graded else 1.0 * (level > 0)
    sums = np.empty((_COPIES, size, 4), np.float64)
    merged = np.empty((size, 4))
    c = np.empty(size)
    g = np.empty(size)
    by_c = np.empty(size)
    by_g = np.empty(size)
    slope_c = np.empty(size)
    slope_g = np.empty(size)
    work = np.empty(size)
    level_counts = np.zeros((_COPIES, MAX_AFFINITY + 1), np.int64)
    row_gains = np.empty(items)
    index = np.empty(items, np.int32)
    shares = np.empty(items, positions.dtype)
    zero = positions.dtype.type(0)
    last = positions.dtype.type(bins - 1)
    for i in range(items):
        low_level, high_level, relevant = _survey(affinity[i], 0, i, 0, 0, 0)
        low_level, high_level, relevant = _survey(affinity[i], i + 1, items, low_level, high_level, relevant)
        if low_level < 0 or high_level > MAX_AFFINITY:
            return False
        for begin, end in ((0, i), (i + 1, items)):
            if graded:
                for j in range(begin, end):
                    row_gains[j] = gains[affinity[i, j]]
            else:
                for j in range(begin, end):
                    row_gains[j] = 1.0 if affinity[i, j] > 0 else 0.0
        row_gains[i] = 0.0
        ideal = 0.0
        if graded:
            for begin, end in ((0, i), (i + 1, items)):
                for j in range(begin, end):
                    level_counts[j % _COPIES, affinity[i, j]] += 1
            rank = 0
            for level in range(high_level, 0, -1):
                end = rank
                for copy in range(_COPIES):
                    end += level_counts[copy, level]
                ideal += gains[level] * (discounts[end] - discounts[rank])
                rank = end
            for copy in range(_COPIES):
                level_counts[copy, : high_level + 1] = 0
        if relevant == 0 or (objective == MUTUAL_INFORMATION and relevant == items - 1):
            values[i] = 1.0 if graded else 0.0  # nothing to rank, or nothing to tell apart
            for j in range(items):
                positions[i, j] = 0.0 * positions[i, j]  # NaN stays NaN
            continue

        poison = 0.0  # NaN where a position is: no bin would show it
        if delta == 1.0:
            for j in range(items):
                z = positions[i, j]
                bounded = z if z > zero else zero  # NaN, too, becomes 0
                bounded = bounded if bounded < last else last
                k = np.int32(bounded)
                index[j] = k
                shares[j] = z - positions.dtype.type(k)
            sums[:] = 0.0
            _scatter(sums, index, shares, row_gains, 0, i)
            _scatter(sums, index, shares, row_gains, i + 1, items)
            # Centre k gets 1 - f of the items between k and k + 1, and f of those between k - 1 and k.
            for k in range(size):
                for m in range(4):
                    total = 0.0
                    for copy in range(_COPIES):
                        total += sums[copy, k, m]
                    merged[k, m] = total
            c[0] = merged[0, 0] - merged[0, 1]
            g[0] = merged[0, 2] - merged[0, 3]
            for k in range(1, size):
                c[k] = merged[k, 0] - merged[k, 1] + merged[k - 1, 1]
                g[k] = merged[k, 2] - merged[k, 3] + merged[k - 1, 3]
        else:
            c[:] = 0.0
            g[:] = 0.0
            for j in range(items):
                if j == i:
                    continue
                z = positions[i, j]
                poison += 0.0 * z
                low = min(max(np.int64(math.ceil(z - delta)), 0), size)
                high = min(max(np.int64(math.floor(z + delta)), -1), bins)
                for k in range(low, high + 1):
                    share = 1.0 - abs(z - k) / delta
                    c[k] += share
                    g[k] += share * row_gains[j]

        values[i] = _objective(objective, c, g, relevant, ideal, items - 1, table, by_c, by_g, work) + poison

        if delta == 1.0:
            for k in range(bins):  # derivative by a distance between centres k and k + 1
                slope_c[k] = by_c[k + 1] - by_c[k]
                slope_g[k] = by_g[k + 1] - by_g[k]
            for j in range(items):
                k = index[j]
                positions[i, j] = slope_c[k] + row_gains[j] * slope_g[k] + 0.0 * shares[j]  # NaN stays NaN
        else:
            for j in range(items):
                z = positions[i, j]
                low = min(max(np.int64(math.ceil(z - delta)), 0), size)
                high = min(max(np.int64(math.floor(z + delta)), -1), bins)
                slope = 0.0 * z
                for k in range(low, high + 1):
                    sign = 1.0 if z <= k else -1.0
                    slope += sign * (by_c[k] + row_gains[j] * by_g[k])
                positions[i, j] = slope / delta
        positions[i, i] = 0.0
    return True
