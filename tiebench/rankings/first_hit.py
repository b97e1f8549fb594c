"""The first relevant item of a tie: whether it is within a cut, and the mean of 1 / rank; compiled."""

import math

from tiebench._compiled import compiled

_NEGLIGIBLE = 1e-18
_DECAY = 46.0  # exp(-46) is below 1e-19


@compiled(nogil=True)
def probability_of_a_hit(items, relevant, taken, expected):
    """The probability that m of n items, drawn at random, hold one of r: 1 - C(n - r, m) / C(n, m).

    The ratio is a product of min(r, m) factors.

    Parameters
    ----------
    items, relevant, taken : int64 (Q,)
        n, r and m.
    expected : float64 (Q,)
        The result.
    """
    for q in range(len(items)):
        n, fewer, more = items[q], min(relevant[q], taken[q]), max(relevant[q], taken[q])
        none = 1.0
        for i in range(fewer):
            none *= (n - more - i) / (n - i)
            if none < _NEGLIGIBLE:
                none = 0.0
                break
        expected[q] = 1.0 - none


@compiled(nogil=True)
def expected_reciprocal_rank(items, relevant, before, last, harmonic, expected):
    """Mean of 1 / rank of the first relevant item of a tie, 0 where that rank is beyond `last`.

    With E(r) the mean, that of a tie of n items with r relevant ones, two neighbours are related by
        E(r) = r / ((r - 1)(n - r + 1)) ((N + n - r + 2) E(r - 1) - 1)
    (absorb r - 1 into the binomial coefficient of C(n - j, r - 1) / C(n, r) and sum over j), E(1) is a
    difference of harmonic numbers over n and E(n) = 1 / (N + 1). Upwards in r, errors grow by about ((N + n -
    r + 2) / (n - r + 1))^r beside E itself; downwards they shrink by as much, so that any start far enough
    above will do. Or the terms are summed, which decay by 1 - r/n. One of the three is always short.

    Parameters
    ----------
    items, relevant, before : int64 (Q,)
        n; r, where 0 gives the result 0; N, the items before the tie.
    last : int64 (Q,)
        K.
    harmonic : float64 (Q,)
        Sum of 1/t, t = N + 1..N + n.
    expected : float64 (Q,)
        The result.
    """
    for q in range(len(items)):
        n, r, first = items[q], relevant[q], before[q]
        if r == 0 or first >= last[q]:
            expected[q] = 0.0
            continue
        places = min(n - r + 1, last[q] - first)
        terms = min(places, int(_DECAY * n / r) + 1)
        growth = math.log((first + n - r + 2) / (n - r + 1))
        downwards = min(n - r, int((_DECAY + math.log(n)) / growth) + 1)
        if places == n - r + 1 and min(r, downwards) < terms:
            if r * growth < 3.0 and r <= downwards:
                value = harmonic[q] / n
                for k in range(2, r + 1):
                    value = k / ((k - 1) * (n - k + 1)) * ((first + n - k + 2) * value - 1.0)
                expected[q] = value
                continue
            if downwards < terms:
                start = r + downwards
                value = 1.0 / (first + 1) if start == n else 1.0 / (first + (n + 1) / (start + 1))
                for k in range(start, r, -1):
                    value = ((k - 1) * (n - k + 1) / k * value + 1.0) / (first + n - k + 2)
                expected[q] = value
                continue
        total = 0.0
        none = 1.0  # probability that none of the places so far holds a relevant item
        for j in range(1, places + 1):
            total += none * r / (n - j + 1) / (first + j)
            none *= (n - r - j + 1) / (n - j + 1)
            if none < _NEGLIGIBLE * total:  # what is left is below `none`
                break
        expected[q] = total
