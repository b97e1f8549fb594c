"""AP@K per hit at the tie that the cut goes through, compiled: its divisor depends on the order inside it."""

from tiebench._compiled import compiled


@compiled(nogil=True)
def average_precision_per_hit(
    expected_before,
    minimum_before,
    maximum_before,
    hits_before,
    items_before,
    items,
    relevant,
    cut,
    inverse_ranks,
    expected,
    minimum,
    maximum,
):
    """Mean, minimum and maximum of (sum of precisions at the hits) / (number of hits) over tie orders.

    The number h of hits inside the cut tie is hypergeometric; given h, its first m items are a tie of m items
    with h relevant ones, so their expected sum is that of He et al., CVPR 2018, eq. (apt).

    Parameters
    ----------
    expected_before, minimum_before, maximum_before : float64 (Q,)
        The sums over the whole ties before the cut.
    hits_before, items_before : int64 (Q,)
        The hits and the items before the cut tie.
    items, relevant, cut : int64 (Q,)
        Of the cut tie: its items n, its relevant items r, and how many of its items are inside the cut, m < n
        (0: no tie is cut).
    inverse_ranks : float64 (4, Q)
        Sums of 1/rank inside the cut: of all m places, of the first `low` and the first `high` of them, the
        fewest and the most hits that there can be, and of the last `low`.
    expected, minimum, maximum : float64 (Q,)
        The results.
    """
    for q in range(len(cut)):
        n, r, m = items[q], relevant[q], cut[q]
        first, found = items_before[q], hits_before[q]
        low = max(0, m - (n - r))
        high = min(m, r)
        all_places, first_low, first_high, tail = inverse_ranks[:, q]

        # Walk away from the mode both ways, by the ratio of neighbouring probabilities: no factorials, and
        # what is cut off (below 1e-20 of the mode) cannot show.
        mode = min(max((m + 1) * (r + 1) // (n + 2), low), high)
        total = 0.0
        weights = 0.0
        for direction in range(2):
            weight = 1.0
            h = mode
            while True:
                if direction == 0 or h != mode:
                    value = 0.0
                    if found + h > 0:
                        inside = 0.0
                        if h > 0:
                            slope = (h - 1) / (m - 1) if m > 1 else 0.0
                            inside = slope * m + (found + 1 - slope * (first + 1)) * all_places
                            inside *= h / m
                        value = (expected_before[q] + inside) / (found + h)
                    total += weight * value
                    weights += weight
                if direction == 0:
                    if h == high:
                        break
                    weight *= (r - h) / (h + 1) * (m - h) / (n - r - m + h + 1)
                    h += 1
                else:
                    if h == low:
                        break
                    weight *= h / (r - h + 1) * (n - r - m + h) / (m - h + 1)
                    h -= 1
                if weight < 1e-20:
                    break
        expected[q] = total / weights

        # Largest: hits first. One more hit raises the mean of precisions exactly if it exceeds that mean,
        # and precisions of consecutive hits rise: the largest mean is at one of the ends.
        best = 0.0
        for h, inverse in ((low, first_low), (high, first_high)):
            if found + h > 0:
                inside = h + (found - first) * inverse
                best = max(best, (maximum_before[q] + inside) / (found + h))
        maximum[q] = best

        # Smallest: hits last inside the cut. One more is ranked before these, whose precisions it raises by
        # 1/rank each. What it adds grows with their number, so the mean falls up to the smallest one.
        added = minimum_before[q] + low + (found - (first + m - low)) * tail
        h = low
        while h < high:
            inverse = 1.0 / (first + m - h)
            more = tail + (found + 1) * inverse
            if more * (found + h) >= added:
                break
            added += more
            tail += inverse
            h += 1
        minimum[q] = added / (found + h) if found + h > 0 else 0.0
