"""Lists of relevant and irrelevant items per query, and the ranking that a large-margin learner fears most.

Lin, Shen, Wu. Optimizing Ranking Measures for Compact Binary Code Learning. ECCV 2014; inference for NDCG
after Chakrabarti, Khanna, Sawant, Bhattacharyya. Structured Learning for Non-smooth Ranking Losses. KDD 2008.

A query's items, seen from it, make pairs. A list has P relevant and Q irrelevant ones; score s = minus the
weighted Hamming distance. A ranking puts m_j irrelevant items above the j-th relevant one.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from methods._base import Refusal
from methods._pairs import Pairs

_ROWS = 256


@dataclass(frozen=True)
class RankingLists:
    """Lists over pairs. List l has the pairs places[starts[l] : starts[l + 1]] (int32, into `pairs`), the
    first relevant[l] (int32) of them relevant, and weighs weights[l] (float64; they add up to 1)."""

    pairs: Pairs
    places: np.ndarray
    starts: np.ndarray
    relevant: np.ndarray
    weights: np.ndarray


def make_lists(training_set, relevant, irrelevant, generator):
    """`RankingLists` with every item as a query and up to `relevant` and `irrelevant` items drawn for it.

    Graded affinities make one list per threshold t, relevant meaning affinity >= t. With gains G(v) = 2^v - 1
    the NDCG of a ranking is the mean of the lists' NDCG, list t weighing
    (G(t) - G(t')) * (ideal DCG of list t) / (ideal DCG), t' being the threshold below: so those are the
    weights, and the sum of the lists' losses, each with a ranking of its own, bounds the query's from above.
    A pair counts as similar if no list has it as irrelevant.
    Raises `Refusal` if no query has both relevant and irrelevant items.
    """
    items = len(training_set)
    everything = np.arange(items)
    thresholds = [level for level in training_set.levels if level > 0]
    steps = np.diff([0.0, *(2.0**level - 1 for level in thresholds)])
    keys, counts, sizes, weights, irrelevant_to = [], [], [], [], []
    for begin in range(0, items, _ROWS):
        rows = everything[begin : begin + _ROWS]
        for row, affinity in zip(rows, training_set.affinity(rows, everything)):
            lists = []
            for threshold, step in zip(thresholds, steps):
                above = affinity >= threshold
                above[row] = False
                below = affinity < threshold
                below[row] = False
                drawn = [
                    others if len(others) <= most else generator.choice(others, most, replace=False)
                    for others, most in (
                        (np.flatnonzero(above), relevant),
                        (np.flatnonzero(below), irrelevant),
                    )
                ]
                if len(drawn[0]) and len(drawn[1]):
                    lists.append((drawn, step * ideal_dcg(len(drawn[0]))))
            total = sum(weight for _, weight in lists)
            for (high, low), weight in lists:
                others = np.concatenate([high, low])
                keys.append(np.minimum(row, others) * items + np.maximum(row, others))
                irrelevant_to.append(np.arange(len(others)) >= len(high))
                counts.append(len(high))
                sizes.append(len(others))
                weights.append(weight / total)
    if not keys:
        raise Refusal("no training item has both relevant and irrelevant others: one class only?")
    distinct, places = np.unique(np.concatenate(keys), return_inverse=True)
    # Blocks must not hold a pair that any list wants apart.
    parted = np.bincount(places, np.concatenate(irrelevant_to), len(distinct)) > 0
    pairs = Pairs(
        items,
        (distinct // items).astype(np.int32),
        (distinct % items).astype(np.int32),
        ~parted,
    )
    weights = np.array(weights)
    return RankingLists(
        pairs,
        places.astype(np.int32),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array(counts, np.int32),
        weights / weights.sum(),
    )


def ideal_dcg(relevant):
    """DCG of `relevant` items of gain 1 at the first ranks."""
    return float((1 / np.log2(np.arange(relevant) + 2.0)).sum())


def most_violated(lists, scores):
    """The ranking of every list that maximises loss + w' psi(y): loss 1 - NDCG, and
    w' psi(y) = sum_jk y_jk (s_j - s_k) / PQ, y_jk = 1 if relevant j is above irrelevant k, else -1.

    scores: float64 (p,), of the pairs. Returns (shift, loss): shift float32 (p,), what a bit's mismatches
    m (p,) add to w' (psi(y*) - psi(y)), y* being the right ranking: shift @ m per unit of the bit's weight;
    loss: the weighted mean of 1 - NDCG. Both over all lists, by their weights.
    """
    most = int(lists.relevant.max())
    longest = int(np.diff(lists.starts).max())
    discounts = 1 / np.log2(np.arange(longest + 1) + 2.0)
    shift, loss = _most_violated(
        scores, lists.places, lists.starts, lists.relevant, lists.weights, discounts, most, longest
    )
    return shift.astype(np.float32), loss


@njit("i8[::1](f8[::1], f8[::1], f8[::1], f8, f8[::1], i4[:, ::1], f8[::1])", nogil=True, cache=True)
def infer(high, low, discounts, ideal, best, choices, sums):
    """m (P,): how many irrelevant items stand above each relevant one in the ranking of most loss + w' psi.

    high, low: scores of relevant and irrelevant items, descending: the best ranking keeps both orders, so
    0 <= m_1 <= m_2 <= ... By dynamic programming over (j, m). discounts: 1/log2(rank + 1) from rank 1;
    ideal: the ideal DCG; best (Q + 1), choices (P, Q + 1), sums (Q + 1): scratch.
    """
    count, others = len(high), len(low)
    sums[0] = 0.0
    for k in range(others):
        sums[k + 1] = sums[k] + low[k]
    scale = 1.0 / (count * others)
    best[: others + 1] = 0.0
    for j in range(count):
        top, at = -np.inf, 0
        for m in range(others + 1):
            if best[m] > top:
                top, at = best[m], m
            choices[j, m] = at
            # sum over k of y_jk (s_j - s_k): the first m of them are above j.
            margin = (others - 2 * m) * high[j] - (sums[others] - 2 * sums[m])
            best[m] = top + scale * margin - discounts[j + m] / ideal
    above = np.empty(count, np.int64)
    m = 0
    for candidate in range(others + 1):
        if best[candidate] > best[m]:
            m = candidate
    for j in range(count - 1, -1, -1):
        above[j] = m
        m = np.int64(choices[j, m])
    return above


@njit(
    "Tuple((f8[::1], f8))(f8[::1], i4[::1], i8[::1], i4[::1], f8[::1], f8[::1], i8, i8)",
    nogil=True,
    cache=True,
)
def _most_violated(scores, places, starts, relevant, weights, discounts, most, longest):
    shift, loss = np.zeros(len(scores)), 0.0
    best, sums = np.empty(longest + 1), np.empty(longest + 1)
    choices = np.empty((most, longest + 1), np.int32)
    high, low = np.empty(longest), np.empty(longest)
    ideals = np.cumsum(discounts)
    for number in range(len(starts) - 1):
        begin, end = starts[number], starts[number + 1]
        middle = begin + relevant[number]
        count, others = middle - begin, end - middle
        high_order = np.argsort(-scores[places[begin:middle]], kind="mergesort")
        low_order = np.argsort(-scores[places[middle:end]], kind="mergesort")
        for j in range(count):
            high[j] = scores[places[begin + high_order[j]]]
        for k in range(others):
            low[k] = scores[places[middle + low_order[k]]]
        ideal = ideals[count - 1]
        above = infer(high[:count], low[:others], discounts, ideal, best, choices, sums)
        gain = 0.0
        scale = 2.0 * weights[number] / (count * others)
        k = 0
        for j in range(count):
            gain += discounts[j + above[j]]
            shift[places[begin + high_order[j]]] -= scale * above[j]
            # Irrelevant items between this relevant one and the last are below j others.
            while k < above[j]:
                shift[places[middle + low_order[k]]] += scale * (count - j)
                k += 1
        loss += weights[number] * (1.0 - gain / ideal)
    return shift, loss
