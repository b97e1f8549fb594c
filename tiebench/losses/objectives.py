"""The listwise objectives as functions of a query's histograms, and their derivatives by them, compiled.

c_d and g_d are the soft histograms of `kernels`: all items, and items weighted by gain. Each
function returns the objective and writes its derivatives by_c and by_g.

The paper's names: c_d, c_d^+, C_d (cumulative), AP_s and DCG_s (the simplified objectives of the appendix),
AP_r and DCG_r (Proposition 2).
"""

import math

import numpy as np

from tiebench._compiled import compiled
from tiebench.rankings.discount_sums import DISCOUNT_KNOTS

AP_SIMPLIFIED, AP_FULL, NDCG_SIMPLIFIED, NDCG_FULL, MUTUAL_INFORMATION = range(5)


@compiled(nogil=True)
def digamma(x):
    """The derivative of the logarithm of the gamma function at x > 0."""
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
def trigamma(x):
    """The derivative of `digamma` at x > 0."""
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
    harmonic = digamma(before + count + 1) - digamma(before + 1)
    end = trigamma(before + count + 1)
    value = (count - (before + 1) * harmonic) / (count - 1)
    by_count = (1 - (before + 1) * end - value) / (count - 1)
    by_before = (-harmonic - (before + 1) * (end - trigamma(before + 1))) / (count - 1)
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
            u = trigamma(before + 1)
            w = (before + 1) * u - 1
            u_c = w_c = u_b = w_b = 0.0
        else:
            end = trigamma(before + n + 1)
            u = (digamma(before + n + 1) - digamma(before + 1)) / n
            r, r_c, r_b = _curvature(before, n)
            w = r / n
            u_c = (end - u) / n
            w_c = (r_c - w) / n
            u_b = (end - trigamma(before + 1)) / n
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
def evaluate(objective, c, g, relevant, ideal, items, table, by_c, by_g, work):
    """The objective of that number. relevant, items: how many of the query's items; ideal: its ideal DCG."""
    if objective == AP_SIMPLIFIED:
        return _ap_simplified(c, g, relevant, by_c, by_g, work)
    if objective == AP_FULL:
        return _ap_full(c, g, relevant, by_c, by_g)
    if objective == NDCG_SIMPLIFIED:
        return _ndcg_simplified(c, g, ideal, by_c, by_g, work)
    if objective == NDCG_FULL:
        return _ndcg_full(c, g, ideal, table, by_c, by_g)
    return _mutual_information(c, g, relevant, items, by_c, by_g)
