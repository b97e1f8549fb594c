"""Codes as a first stage: rankings by asymmetric similarity and by estimates, and rescoring, exactly.

A vector database ranks documents by the Hamming distance of their codes, or by an estimate of the distance,
takes the first c of them, and ranks these again by a better score, as that of the original embeddings. The
c-th place usually cuts a tie: which documents of the cut tie are rescored is arbitrary. `rescored` gives the
exact mean of each metric over all choices, and the smallest and the largest value that a choice reaches.

With c' documents before the cut tie, which has n of them, m = c - c' are taken from it. A document x of the
tie is taken with probability m / n, and the number of documents of the tie that stand before x is then
hypergeometric: m - 1 draws of n - 1, of which those with a better score count; for a document before the tie,
m draws of n. The bounds are found by dynamic programming over the documents in the order of the better score.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tiebench._compiled import compiled
from tiebench.affinities import SparseJudgements, check_affinity, check_levels
from tiebench.codes.packing import check_bits, check_packed
from tiebench.counting.histograms import JointHistograms
from tiebench.rankings import exact
from tiebench.values import cutoffs, form, integer, integers, numbers


def asymmetric_similarity(query: np.ndarray, database: np.ndarray, bits: int) -> NDArray[np.float64]:
    """Inner products of real-valued queries and binary documents.

    Equal codes have equal similarities, to the last bit: they tie.

    Parameters
    ----------
    query : real (Q, b)
        What a query was before its bits were taken: its embedding, centred or projected.
    database : uint8 (N, ceil(b/8))
        Packed codes, whose bits count as -1 and +1.
    bits : int
        b.

    Returns
    -------
    float64 (Q, N)

    Raises
    ------
    ValueError
        One line, for arrays that do not fit, and for queries that are not finite.
    """
    bits = check_bits(bits)
    query = numbers(query, "query")
    if query.ndim != 2 or query.shape[1] != bits:
        raise ValueError(f"real-valued queries of {bits} bits must be (n, {bits}), not {query.shape}")
    if not np.isfinite(query).all():
        raise ValueError("real-valued queries must be finite")
    database = check_packed(database, bits, "database codes")
    # Equal codes once: products of matrices may round equal columns differently.
    codes, place = np.unique(database, axis=0, return_inverse=True)
    signs = np.unpackbits(codes, axis=1, count=bits).astype(np.float64) * 2 - 1
    return (query @ signs.T)[:, place.reshape(-1)]


def estimated_similarity(
    query: np.ndarray, database: np.ndarray, factors: np.ndarray, bits: int
) -> NDArray[np.float64]:
    """What a quantiser estimates from codes and two numbers of each document: float64 (Q, N).

    The estimate is factors[:, 0] times `asymmetric_similarity`, plus factors[:, 1]: minus the squared
    distance of query and document, but for the query's own part (`methods.base.estimates`). query, database,
    bits: as there; factors: real (N, 2). Documents of equal codes and factors tie, to the last bit. Raises
    ValueError for arrays that do not fit.
    """
    factors = numbers(factors, "factors")
    if factors.shape != (len(database), 2) or not np.isfinite(factors).all():
        raise ValueError(f"factors must be finite, of shape {(len(database), 2)}, not {form(factors)}")
    scale, shift = factors.T
    return asymmetric_similarity(query, database, bits) * scale + shift


def ranked_histograms(similarity: np.ndarray, level: np.ndarray, levels: np.ndarray) -> JointHistograms:
    """`JointHistograms` of rankings by any similarity: items of equal similarity are a tie.

    Neighbouring ties without any affinity are joined: no metric depends on the order of irrelevant items.

    Parameters
    ----------
    similarity : real (Q, N)
        Higher is nearer.
    level : integers (Q, N)
        Places in `levels`.
    levels : int64 (V,)
        The affinity values, ascending from 0.

    Returns
    -------
    `JointHistograms`
        Counts (Q, V, D), whose last axis numbers the ties of a query, nearest first, instead of distances.

    Raises
    ------
    ValueError
        One line, for arrays that do not fit, and for similarities that are not finite.
    """
    similarity, level = numbers(similarity, "similarity"), integers(level, "level")
    levels = integers(levels, "levels").astype(np.int64)
    check_levels(levels)
    if similarity.ndim != 2 or level.shape != similarity.shape:
        raise ValueError(
            f"similarity must be real numbers (Q, N) and level integers (Q, N), not {form(similarity)} and "
            f"{form(level)}"
        )
    if not np.isfinite(similarity).all():
        raise ValueError("similarities must be finite")
    if level.size and not (level.min() >= 0 and level.max() < len(levels)):
        raise ValueError(f"level must be 0 to {len(levels) - 1}, as there are {len(levels)} levels")
    queries, items = similarity.shape
    order = np.argsort(-similarity, axis=1)
    ranked = np.take_along_axis(similarity, order, axis=1)
    level = np.take_along_axis(level.astype(np.int64), order, axis=1)
    first = np.ones((queries, items), bool)  # whether an item is the first of its tie
    np.not_equal(ranked[:, 1:], ranked[:, :-1], out=first[:, 1:])
    tie = np.cumsum(first, axis=1) - 1
    tie += np.arange(queries)[:, None] * items
    relevant = np.bincount(tie[level > 0], minlength=queries * items)[tie] > 0  # whether its tie has any
    first[:, 1:] &= relevant[:, 1:] | relevant[:, :-1]
    place = np.cumsum(first, axis=1) - 1
    ties = int(place.max(initial=0)) + 1
    place += level * ties
    place += np.arange(queries)[:, None] * (len(levels) * ties)
    counts = np.bincount(place.ravel(), minlength=queries * len(levels) * ties)
    return JointHistograms(levels, counts.reshape(queries, len(levels), ties))


def rescored(
    query: np.ndarray,
    database: np.ndarray,
    bits: int,
    judgements: SparseJudgements,
    similarity: Callable[[int, NDArray[np.int64]], np.ndarray],
    candidates: int,
    at: int | Sequence[int] = (10,),
) -> dict[str, exact.TieRange]:
    """Metrics of the nearest `candidates` codes, ranked again by a better score; nothing else is retrieved.

    Cost: that of the Hamming distances and better scores of a query's candidates and of the cut tie, and
    K * (candidates + cut tie) for the bounds.

    Parameters
    ----------
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        Packed codes.
    bits : int
        b.
    judgements : `SparseJudgements`
        The affinity of documents to queries.
    similarity : function
        similarity(q, items): the better score of documents `items`, int64 (n,), to query q: real (n,), higher
        is nearer; equal scores are ranked in the order of the database.
    candidates : int
        How many codes are ranked again, 1 or more.
    at : int or sequence of int
        The cutoffs K.

    Returns
    -------
    dict
        "ndcg@K" (gain 2^affinity - 1, the ideal ranking of the whole database) and "recall@K" for each K, and
        "reciprocal_rank", each a `TieRange` of (Q,) arrays: the mean over all equally likely choices of the
        documents that are taken from the tie that the cut divides, the smallest and the largest value.
        Queries without relevant documents have NDCG 1 and the others 0.

    Raises
    ------
    ValueError
        One line, for what does not fit.
    """
    bits = check_bits(bits)
    query, database = check_packed(query, bits, "query codes"), check_packed(database, bits, "database codes")
    check_affinity(judgements, len(query), len(database))

    def distance(q: int) -> NDArray[np.int64]:
        return np.bitwise_count(database ^ query[q]).sum(axis=1, dtype=np.int64)

    return rescored_by(distance, judgements, similarity, candidates, at)


def rescored_by(
    distance: Callable[[int], np.ndarray],
    judgements: SparseJudgements,
    similarity: Callable[[int, NDArray[np.int64]], np.ndarray],
    candidates: int,
    at: int | Sequence[int] = (10,),
) -> dict[str, exact.TieRange]:
    """As `rescored`, of a first stage by any distance: the candidates are the documents of the smallest.

    distance(q): distances of all documents to query q, finite numbers (N,), where equal ones tie; it is
    called once for each query, in their order.
    """
    check_levels(judgements.levels)
    at, (queries, documents) = cutoffs(at), judgements.shape
    candidates = min(integer(candidates, "candidates", 1), documents)
    names = [*(f"{metric}@{k}" for k in at for metric in ("ndcg", "recall")), "reciprocal_rank"]
    found = {name: np.zeros((3, queries)) for name in names}
    log_factorials = _log_factorials(documents)
    edges = np.searchsorted(np.sort(judgements.rows), np.arange(queries + 1))
    by_query = np.argsort(judgements.rows, kind="stable")
    affinity = np.zeros(documents)
    for q in range(queries):
        mine = by_query[edges[q] : edges[q + 1]]
        values = judgements.values[mine].astype(np.float64)
        affinity[judgements.columns[mine]] = values
        distances = numbers(distance(q), "distance")
        if distances.shape != (documents,) or not np.isfinite(distances).all():
            raise ValueError(f"distances of query {q} must be finite, of shape {(documents,)}")
        cut = np.partition(distances, candidates - 1)[candidates - 1]
        items = np.flatnonzero(distances <= cut)
        scores = numbers(similarity(q, items), "similarity")
        if scores.shape != items.shape or not np.isfinite(scores).all():
            raise ValueError(f"similarity of query {q} must be finite, of shape {items.shape}")
        order = np.argsort(-scores, kind="stable")
        tied = distances[items[order]] == cut
        taken = candidates - int(np.count_nonzero(~tied))
        relevance = affinity[items[order]]
        affinity[judgements.columns[mine]] = 0.0
        positive = np.sort(values[values > 0])[::-1]
        for k in at:
            discounts = 1 / np.log2(np.arange(2, min(k, documents) + 2))
            ideal = float(np.sum((np.exp2(positive[:k]) - 1) * discounts[: len(positive)]))
            gains = np.exp2(relevance) - 1
            for name, gain, discount, whole in (
                (f"ndcg@{k}", gains, discounts, ideal),
                (f"recall@{k}", (relevance > 0).astype(float), np.ones(len(discounts)), float(len(positive))),
            ):
                if len(positive):
                    found[name][:, q] = _sums(tied, gain, taken, discount, log_factorials)
                    found[name][:, q] /= whole
                else:
                    found[name][:, q] = name.startswith("ndcg")
        if len(positive):
            found["reciprocal_rank"][:, q] = _first(tied, relevance > 0, taken, log_factorials)
    # The mean of equal values may leave them by a rounding.
    return {
        name: exact.TieRange(np.clip(mean, low, high), low, high) for name, (mean, low, high) in found.items()
    }


def _log_factorials(most):
    """log(i!) for i = 0..most, float64, summed in extended precision: what follows are differences."""
    logs = np.log(np.arange(1, most + 1, dtype=np.longdouble))
    return np.concatenate([[0.0], np.cumsum(logs)]).astype(np.float64)


@compiled()
def _chance(drawn, n, marked, m, log_factorials):
    """Probability of `drawn` marked ones among m of n without replacement."""
    if drawn < 0 or drawn > marked or m - drawn < 0 or m - drawn > n - marked:
        return 0.0
    f = log_factorials
    chosen = f[marked] - f[drawn] - f[marked - drawn]
    others = f[n - marked] - f[m - drawn] - f[n - marked - m + drawn]
    return np.exp(chosen + others - f[n] + f[m] + f[n - m])


@compiled()
def _sums(tied, gains, taken, discounts, log_factorials):
    """Mean, smallest and largest sum of gain * discount of the rank, over the choices from the cut tie.

    tied: bool (e,), whether a document is of the tie, gains: float64 (e,), both in the order of the better
    score; taken: how many are taken from the tie, at least 1; discounts: float64 (K,), of the first ranks.
    """
    cut = len(discounts)
    n = int(np.sum(tied))
    mean = 0.0
    certain = 0  # documents before this one that are taken for sure, and those of the tie
    uncertain = 0
    for item in range(len(tied)):
        if gains[item] > 0:
            others, draws, chance = n, taken, 1.0
            if tied[item]:
                others, draws, chance = n - 1, taken - 1, taken / n
            for ahead in range(min(draws, uncertain, cut - 1 - certain) + 1):
                some = _chance(ahead, others, uncertain, draws, log_factorials)
                mean += gains[item] * chance * some * discounts[certain + ahead]
        if tied[item]:
            uncertain += 1
        else:
            certain += 1
        if certain >= cut:
            break
    # best[j], worst[j]: of choices with j documents of the tie so far; K stands for K or more, whose
    # documents are beyond the last rank that counts.
    most = min(taken, cut)
    best, worst = np.full(most + 1, -np.inf), np.full(most + 1, np.inf)
    best[0] = worst[0] = 0.0
    certain = 0
    uncertain = 0
    for item in range(len(tied)):
        if certain >= cut:
            break
        if not tied[item]:
            for j in range(min(most, cut - 1 - certain) + 1):
                best[j] += gains[item] * discounts[certain + j]
                worst[j] += gains[item] * discounts[certain + j]
            certain += 1
            continue
        uncertain += 1
        needed = taken - (n - uncertain)  # that many have to be chosen by now
        for j in range(most, -1, -1):
            stay_best, stay_worst = best[j], worst[j]
            if j < needed and j < cut:  # leaving this one out would leave too few
                stay_best, stay_worst = -np.inf, np.inf
            if j > 0:
                gain = gains[item] * discounts[certain + j - 1] if certain + j - 1 < cut else 0.0
                stay_best = max(stay_best, best[j - 1] + gain)
                stay_worst = min(stay_worst, worst[j - 1] + gain)
            best[j], worst[j] = stay_best, stay_worst
    return mean, np.min(worst), np.max(best)


@compiled()
def _first(tied, relevant, taken, log_factorials):
    """Mean, smallest and largest reciprocal rank of the first relevant document; arguments as `_sums`."""
    n = int(np.sum(tied))
    mean, low, high = 0.0, np.inf, 0.0
    certain, skipped, uncertain = 0, 0, 0  # before: taken for sure; of the tie and relevant, irrelevant
    for item in range(len(tied)):
        before = skipped + uncertain
        if not relevant[item]:
            if tied[item]:
                uncertain += 1
            else:
                certain += 1
            continue
        # The relevant documents of the tie so far are not taken, or one of them would be the first.
        of_tie = 1 if tied[item] else 0
        others, draws = n - skipped - of_tie, taken - of_tie
        if 0 <= draws <= others:
            f = log_factorials
            absent = f[others] - f[draws] - f[others - draws] - f[n] + f[taken] + f[n - taken]
            least = max(0, draws - (n - before - of_tie))
            most = min(draws, uncertain)
            for ahead in range(least, most + 1):
                some = np.exp(absent) * _chance(ahead, others, uncertain, draws, f)
                mean += some / (certain + ahead + 1)
            high = max(high, 1 / (certain + least + 1))
            low = min(low, 1 / (certain + most + 1))
        if not tied[item]:
            return mean, low, high
        skipped += 1
    if taken <= n - skipped:  # a choice without any relevant document
        low = 0.0
    return mean, low, high
