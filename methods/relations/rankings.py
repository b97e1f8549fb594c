"""Lists of relevant and irrelevant items per query, and the ranking that a large-margin learner fears most.

Lin, Shen, Wu. Optimizing Ranking Measures for Compact Binary Code Learning. ECCV 2014; inference for NDCG
after Chakrabarti, Khanna, Sawant, Bhattacharyya. Structured Learning for Non-smooth Ranking Losses. KDD 2008.

A query's items, seen from it, make pairs. A list has P relevant and Q irrelevant ones; score s = minus the
weighted Hamming distance. A ranking puts m_j irrelevant items above the j-th relevant one.
"""

from dataclasses import dataclass

import numpy as np

from methods.base import Refusal
from methods.base.supervision import affinity_blocks
from methods.relations.pairs import Pairs
from tiebench._compiled import compiled


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
    thresholds = [level for level in training_set.levels if level > 0]
    steps = np.diff([0.0, *(2.0**level - 1 for level in thresholds)])
    keys, counts, sizes, weights, irrelevant_to = [], [], [], [], []
    for rows, affinities in affinity_blocks(training_set, np.arange(items)):
        for row, affinity in zip(rows, affinities):
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
    return RankingLists(
        pairs,
        places.astype(np.int32),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array(counts, np.int32),
        np.array(weights) / np.sum(weights),
    )


def ideal_dcg(relevant):
    """DCG of `relevant` items of gain 1 at the first ranks."""
    return float((1 / np.log2(np.arange(relevant) + 2.0)).sum())


def most_violated(lists, scores, order=None):
    """The ranking of every list that maximises loss + w' psi(y): loss 1 - NDCG, and
    w' psi(y) = sum_jk y_jk (s_j - s_k) / PQ, y_jk = 1 if relevant j is above irrelevant k, else -1.

    scores: float64 (p,), of the pairs; order: int32, a copy of lists.places, which comes back sorted by score
    and saves sorting when it is given again with similar scores. Returns (shift, loss): shift float32 (p,),
    what a bit's mismatches m (p,) add to w' (psi(y*) - psi(y)), y* being the right ranking: shift @ m per
    unit of the bit's weight; loss: the weighted mean of 1 - NDCG. Both over all lists, by their weights.
    """
    order = lists.places.copy() if order is None else order
    most = int(lists.relevant.max())
    longest = int(np.diff(lists.starts).max())
    discounts = 1 / np.log2(np.arange(longest + 1) + 2.0)
    shift, loss = _most_violated(
        scores, order, lists.starts, lists.relevant, lists.weights, discounts, most, longest
    )
    return shift.astype(np.float32), loss


@compiled("f8(f8[::1], f8[::1], f8[::1], f8, i8, i8, i8)", nogil=True)
def _rise(totals, low, discounts, ideal, first, last, m):
    """By how much loss + w' psi rises if relevant items `first` to `last` let one more than m above them."""
    count = last - first + 1
    margin = count * low[m] - (totals[last + 1] - totals[first])
    # The discounts of neighbours cancel.
    return (
        2.0 * margin / ((len(totals) - 1) * len(low))
        + (discounts[first + m] - discounts[last + m + 1]) / ideal
    )


@compiled("void(f8[::1], f8[::1], f8[::1], f8, f8[::1], i8[::1], i8[::1])", nogil=True)
def infer(high, low, discounts, ideal, totals, begins, above):
    """Fill above (P,) with m: how many irrelevant items stand above each relevant one in the ranking of most
    loss + w' psi.

    high, low: scores of relevant and irrelevant items, descending: the best ranking keeps both orders, so
    0 <= m_1 <= m_2 <= ... Each item's value is concave in m, because irrelevant scores descend and discounts
    are convex, so that pooling neighbours whose best places are out of order is exact, as in isotonic
    regression. discounts: 1/log2(rank + 1) from rank 1; ideal: the ideal DCG; totals (P + 1), begins (P):
    scratch.
    """
    count, others = len(high), len(low)
    totals[0] = 0.0
    for j in range(count):
        totals[j + 1] = totals[j] + high[j]
    pools, m = 0, 0  # pool i starts at item begins[i], whose place is that of the pool
    for j in range(count):
        first = j
        while True:
            while m < others and _rise(totals, low, discounts, ideal, first, j, m) > 0:
                m += 1
            while m > 0 and _rise(totals, low, discounts, ideal, first, j, m - 1) <= 0:
                m -= 1
            if pools == 0 or m >= above[begins[pools - 1]]:
                break
            pools -= 1
            first = begins[pools]
        begins[pools] = first
        pools += 1
        above[first] = m
    end = count
    for pool in range(pools - 1, -1, -1):
        above[begins[pool] : end] = above[begins[pool]]
        end = begins[pool]


@compiled("void(f8[::1], i4[::1], f8[::1])", nogil=True)
def _sort(scores, order, sorted_scores):
    """Order pairs by descending score, their scores going to sorted_scores: by insertion, because they are
    nearly sorted."""
    for place in range(len(order)):
        pair = order[place]
        score = scores[pair]
        while place > 0 and sorted_scores[place - 1] < score:
            sorted_scores[place] = sorted_scores[place - 1]
            order[place] = order[place - 1]
            place -= 1
        sorted_scores[place] = score
        order[place] = pair


@compiled(
    "Tuple((f8[::1], f8))(f8[::1], i4[::1], i8[::1], i4[::1], f8[::1], f8[::1], i8, i8)",
    nogil=True,
)
def _most_violated(scores, order, starts, relevant, weights, discounts, most, longest):
    shift, loss = np.zeros(len(scores)), 0.0
    totals, begins, above = np.empty(most + 1), np.empty(most, np.int64), np.empty(most, np.int64)
    high, low = np.empty(longest), np.empty(longest)
    ideals = np.cumsum(discounts)
    for number in range(len(starts) - 1):
        begin, end = starts[number], starts[number + 1]
        middle = begin + relevant[number]
        count, others = middle - begin, end - middle
        _sort(scores, order[begin:middle], high)
        _sort(scores, order[middle:end], low)
        ideal = ideals[count - 1]
        infer(high[:count], low[:others], discounts, ideal, totals[: count + 1], begins, above)
        gain = 0.0
        scale = 2.0 * weights[number] / (count * others)
        k = 0
        for j in range(count):
            gain += discounts[j + above[j]]
            shift[order[begin + j]] -= scale * above[j]
            # Irrelevant items between this relevant one and the last are below j others.
            while k < above[j]:
                shift[order[middle + k]] += scale * (count - j)
                k += 1
        loss += weights[number] * (1.0 - gain / ideal)
    return shift, loss
