"""Tie-aware ranking metrics from joint histograms: exact means and true ranges over all orders of tied items.

Notation of He et al. (CVPR 2018): a *tie* is the set of items at one Hamming distance d; n_d items, of
which n_d^+ relevant, N_{d-1} items and N_{d-1}^+ relevant ones before it. Every function returns, per query,
the mean over all permutations inside ties (tie-aware: AP_T, NDCG_T), and the smallest and largest value that
any permutation reaches. Sums over ranks are differences of prefix sums of 1/t and 1/log2(t + 1), so the cost
does not depend on the size of the database.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiebench import _rank_sums, ties
from tiebench.ties import AP_AT_NORMALISERS as AP_AT_NORMALISERS
from tiebench.ties import TieRange as TieRange
from tiebench.ties import divide

if TYPE_CHECKING:  # these need no kernel, and loading one takes time
    from tiebench.hamming import JointHistograms

Gain: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _check_cut(at):
    if at is not None and (at != int(at) or at < 1):
        raise ValueError(f"the cut K must be a positive integer, not {at}")


def average_precision(
    histograms: "JointHistograms", at: int | None = None, normaliser: str = "hits"
) -> TieRange:
    """Tie-aware average precision AP_T (eq. (apt)), or AP@K, with its range over tie orders.

    histograms: `JointHistograms`; affinity > 0 is relevant. at: K, or None for the whole ranking.
    normaliser divides the sum of precisions at the relevant ranks up to K by
    * "hits": the number of relevant items among the first K (the convention of hashing papers),
    * "min": min(K, relevant items), or * "relevant": all relevant items.
    Under "hits" the divisor itself depends on the order of the tie that K cuts: the mean conditions on the
    number of relevant items inside the cut, which is hypergeometric. A query with nothing to divide by has
    AP 0. Returns TieRange of (Q,) arrays in [0, 1]. Raises ValueError for K < 1 or an unknown normaliser.
    """
    _check_cut(at)
    return ties.average_precision(histograms.ties, at, normaliser)


def exponential_gain(affinity: NDArray[np.float64]) -> NDArray[np.float64]:
    """2^affinity - 1, the gain of the hashing papers and of web search."""
    return np.exp2(affinity) - 1


def linear_gain(affinity: NDArray[np.float64]) -> NDArray[np.float64]:
    """The affinity itself, the gain of trec_eval and of scikit-learn."""
    return affinity


def dcg(histograms: "JointHistograms", at: int | None = None, gain: Gain = exponential_gain) -> TieRange:
    """Tie-aware DCG (eq. (dcgt)), or DCG@K, with its range over tie orders; arguments as `ndcg`.

    Returns TieRange of (Q,) arrays. Raises ValueError for K < 1 or negative gains.
    """
    counts, gains = _by_gain(histograms.counts, histograms.levels, gain)
    queries, levels, distances = counts.shape
    tied = histograms.ties.items
    mean_gain = divide(np.tensordot(counts, gains, axes=([1], [0])), tied)
    by_distance = counts.transpose(0, 2, 1)  # (Q, b + 1, V): inside a tie, level after level
    ascending = by_distance.reshape(queries, distances * levels)
    descending = by_distance[:, :, ::-1].reshape(queries, distances * levels)
    return TieRange(
        _dcg_of_runs(tied, mean_gain, at),
        _dcg_of_runs(ascending, np.tile(gains, distances), at),
        _dcg_of_runs(descending, np.tile(gains[::-1], distances), at),
    )


def ideal_dcg(
    items: NDArray[np.int64],
    levels: NDArray[np.int64],
    at: int | None = None,
    gain: Gain = exponential_gain,
) -> NDArray[np.float64]:
    """Largest DCG, or DCG@K, that any ranking of some items has: float64 (Q,).

    items: int64 (Q, V), how many items have each of the affinities levels (V,); the rest as `ndcg`.
    """
    counts, gains = _by_gain(items, levels, gain)
    return _dcg_of_runs(counts[:, ::-1], gains[::-1], at)


def ndcg(histograms: "JointHistograms", at: int | None = None, gain: Gain = exponential_gain) -> TieRange:
    """Tie-aware NDCG_T (eq. (dcgt)), or NDCG@K, with its range over tie orders.

    Discount 1/log2(rank + 1); the ideal ranking is cut at K too. gain: function of affinities, a float64
    array, to gains of its shape, none negative: `exponential_gain`, `linear_gain` or any other. A query whose
    ideal DCG is 0 has NDCG 1. Returns TieRange of (Q,) arrays in [0, 1]. Raises ValueError for K < 1 or
    negative gains.
    """
    ideal = ideal_dcg(histograms.counts.sum(axis=2), histograms.levels, at, gain)
    return TieRange(*(divide(value, ideal, empty=1.0) for value in dcg(histograms, at, gain)))


def _by_gain(counts, levels, gain):
    """Counts with their levels, axis 1, in ascending order of gain, and these gains."""
    gains = np.asarray(gain(levels.astype(np.float64)), np.float64)
    if gains.shape != levels.shape or not np.all(gains >= 0):
        raise ValueError(f"gains must be non-negative numbers, one for each affinity, not {gains}")
    if np.all(gains[1:] >= gains[:-1]):
        return counts, gains
    order = np.argsort(gains, kind="stable")
    return counts[:, order], gains[order]


def _dcg_of_runs(items, gains, at):
    """DCG of (Q, runs) runs of items one after the other; gains: of their items, (Q, runs) or (runs,)."""
    _check_cut(at)
    return ties.dcg(np.cumsum(items, axis=1) - items, items, gains, at)


def average_cumulative_gain(histograms: "JointHistograms", at: int) -> TieRange:
    """ACG@K: mean affinity of the first K items (of all items if there are fewer), with its range.

    Returns TieRange of (Q,) arrays. Raises ValueError for K < 1. Järvelin and Kekäläinen, SIGIR 2000, as
    used for several labels by Zhao et al., CVPR 2015.
    """
    _check_cut(at)
    tied, levels = histograms.ties, histograms.levels
    queries, tie, taken = ties.cut(tied, at)
    gained = np.tensordot(histograms.counts, levels, axes=([1], [0]))
    before = (np.cumsum(gained, axis=1) - gained)[queries, tie]
    inside = histograms.counts[queries, :, tie]

    def first(inside, levels):  # affinities of the first items of the tie, one level after the other
        begin = np.cumsum(inside, axis=1) - inside
        return np.clip(taken[:, None] - begin, 0, inside) @ levels

    values = (
        divide(gained[queries, tie] * taken, tied.items[queries, tie]),
        first(inside, levels),
        first(inside[:, ::-1], levels[::-1]),
    )
    return TieRange(*((before + value) / np.minimum(at, tied.total_items) for value in values))


def weighted_average_precision(histograms: "JointHistograms") -> TieRange:
    """WAP: mean, over the relevant items, of ACG@p at their ranks p, with its range over tie orders.

    Zhao et al., CVPR 2015; with affinities 0 and 1 it is AP. In a tie of n items, r of them relevant, with
    affinities of sum S, after N items with affinities of sum A, the expected term of place j is
    [A r/n + S/n + (j - 1)(r - 1) S / (n (n - 1))] / (N + j): either the item itself, or one of the j - 1
    before it, which is any other item of the tie. The largest value has each tie in descending order of
    affinity, the smallest in ascending order: swapping two neighbours changes the terms of their two places
    alone, and never for the better. Returns TieRange of (Q,) arrays, 0 for a query without relevant items.
    """
    tied, counts = histograms.ties, histograms.counts
    levels = histograms.levels.astype(np.float64)
    harmonic = _rank_sums.harmonic(max(int(tied.total_items.max()), 1))
    n, r, before = tied.items, tied.relevant, tied.items_before
    gained = np.tensordot(counts, levels, axes=([1], [0]))
    gained_before = np.cumsum(gained, axis=1) - gained
    slope = divide((r - 1) * gained, n * (n - 1.0))
    constant = divide(gained_before * r + gained, n) - slope * (before + 1)
    expected = slope * n + constant * harmonic.between(before, before + n)

    def of_order(counts, levels):
        through = np.cumsum(counts, axis=1)
        gain = counts * levels[:, None]
        begin = before[:, None] + through - counts
        cumulated = gained_before[:, None] + np.cumsum(gain, axis=1) - gain
        relevant = levels > 0
        begin, counts, gain, cumulated = (a[:, relevant] for a in (begin, counts, gain, cumulated))
        slopes = levels[relevant][:, None]
        terms = gain + (cumulated - begin * slopes) * harmonic.between(begin, begin + counts)
        return terms.sum(axis=(1, 2))

    sums = (expected.sum(axis=1), of_order(counts, levels), of_order(counts[:, ::-1], levels[::-1]))
    return TieRange(*(divide(value, tied.total_relevant) for value in sums))


def precision(histograms: "JointHistograms", at: int) -> TieRange:
    """Precision among the first K items (of all items if there are fewer), with its range over tie orders.

    Returns TieRange of (Q,) arrays. Raises ValueError for K < 1.
    """
    _check_cut(at)
    return ties.precision(histograms.ties, at)


def recall(histograms: "JointHistograms", at: int) -> TieRange:
    """Share of all relevant items that is among the first K, with its range over tie orders.

    Returns TieRange of (Q,) arrays, 0 for a query without relevant items. Raises ValueError for K < 1.
    """
    _check_cut(at)
    return ties.recall(histograms.ties, at)


def success(histograms: "JointHistograms", at: int) -> TieRange:
    """Whether any of the first K items is relevant, as a probability over tie orders, with its range.

    Returns TieRange of (Q,) arrays, 0 for a query without relevant items. Raises ValueError for K < 1.
    """
    _check_cut(at)
    return ties.success(histograms.ties, at)


def r_precision(histograms: "JointHistograms") -> TieRange:
    """Precision among the first R items, R the number of relevant ones, with its range over tie orders.

    Returns TieRange of (Q,) arrays, 0 for a query without relevant items.
    """
    return ties.r_precision(histograms.ties)


def reciprocal_rank(histograms: "JointHistograms", at: int | None = None) -> TieRange:
    """1 / rank of the first relevant item, with its range over tie orders; see `ties.reciprocal_rank`.

    at: K, or None for the whole ranking; where no relevant item is among the first K, the value is 0.
    Returns TieRange of (Q,) arrays. Raises ValueError for K < 1.
    """
    _check_cut(at)
    return ties.reciprocal_rank(histograms.ties, at)


def precision_within_radius(histograms: "JointHistograms", radius: int = 2) -> NDArray[np.float64]:
    """Share of relevant items at Hamming distance <= radius, 0 if no item is so near: float64 (Q,)."""
    near = slice(0, radius + 1)
    items = histograms.counts[:, :, near].sum(axis=(1, 2))
    irrelevant = histograms.counts[:, 0, near].sum(axis=1)
    return divide(items - irrelevant, items)


def precision_recall_curve(
    histograms: "JointHistograms",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision and recall of retrieving everything within radius 0, 1, ..., b: two float64 (b + 1,) arrays.

    Precision is averaged over the queries that retrieve anything at that radius (NaN where none does), recall
    over those with something relevant. Whole ties are retrieved, so no order plays a part.
    """
    tied = histograms.ties
    items = tied.items_before + tied.items
    hits = tied.relevant_before + tied.relevant
    precision_sum = divide(hits, items).sum(axis=0)
    answered = tied.total_relevant > 0
    recalled = divide(hits[answered], tied.total_relevant[answered, None])
    mean_recall = recalled.mean(axis=0) if answered.any() else np.full(items.shape[1], np.nan)
    return divide(precision_sum, (items > 0).sum(axis=0), empty=np.nan), mean_recall


def precision_at_curve(
    histograms: "JointHistograms", cuts: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """Tie-aware precision among the first K items, averaged over queries, for each K: float64 (len(cuts),).

    Inside a tie the expected number of relevant items grows linearly with rank, as all orders are alike.
    K beyond the database counts as the whole database. Raises ValueError for K < 1.
    """
    if np.min(cuts) < 1:
        raise ValueError(f"the cuts K must be positive, not {np.min(cuts)}")
    tied = histograms.ties
    ranks_cut = np.minimum(cuts, tied.total_items[0])
    zero = np.zeros((len(tied.items), 1), np.int64)
    items = np.hstack([zero, tied.items_before + tied.items])
    relevant = np.hstack([zero, tied.relevant_before + tied.relevant])
    hits = np.zeros(len(ranks_cut))
    for ranks, found in zip(items, relevant):
        hits += np.interp(ranks_cut, ranks, found)
    return hits / (ranks_cut * len(items))


def distance_shares(histograms: "JointHistograms") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How (query, item) pairs are spread over the distances 0..b, relevant and irrelevant ones apart.

    Returns two float64 (b + 1,) arrays that sum to 1, or hold NaN if there is no such pair.
    """
    irrelevant = histograms.counts[:, 0].sum(axis=0)
    relevant = histograms.counts[:, 1:].sum(axis=(0, 1))
    return divide(relevant, relevant.sum(), np.nan), divide(irrelevant, irrelevant.sum(), np.nan)


def queries_without_relevant(histograms: "JointHistograms") -> int:
    """Number of queries to which no database item is relevant."""
    return int(np.count_nonzero(histograms.counts[:, 1:].sum(axis=(1, 2)) == 0))
