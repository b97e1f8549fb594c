"""Tie-aware ranking metrics from joint histograms: exact means and true ranges over all orders of tied items.

Notation of He et al. (CVPR 2018): a *tie* is the set of items at one Hamming distance d; n_d items, of
which n_d^+ relevant, N_{d-1} items and N_{d-1}^+ relevant ones before it. Every function returns, per query,
the mean over all permutations inside ties (tie-aware: AP_T, NDCG_T), and the smallest and largest value that
any permutation reaches. Sums over ranks are differences of prefix sums of 1/t and 1/log2(t + 1), so the cost
does not depend on the size of the database.

What depends on relevance alone is of `tiebench.rankings.ties`: its functions take joint histograms, too.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiebench.rankings import rank_sums, ties
from tiebench.rankings.ties import AP_AT_NORMALISERS as AP_AT_NORMALISERS
from tiebench.rankings.ties import TieRange as TieRange
from tiebench.rankings.ties import average_precision as average_precision
from tiebench.rankings.ties import divide
from tiebench.rankings.ties import precision as precision
from tiebench.rankings.ties import r_precision as r_precision
from tiebench.rankings.ties import recall as recall
from tiebench.rankings.ties import reciprocal_rank as reciprocal_rank
from tiebench.rankings.ties import success as success
from tiebench.values import as_array, cutoff, integers

if TYPE_CHECKING:  # these need no kernel, and loading one takes time
    from tiebench.counting.histograms import JointHistograms

Gain: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def exponential_gain(affinity: NDArray[np.float64]) -> NDArray[np.float64]:
    """2^affinity - 1, the gain of the hashing papers and of web search.

    Parameters
    ----------
    affinity : float64, of any shape

    Returns
    -------
    float64, of its shape
    """
    return np.exp2(as_array(affinity, "affinity")) - 1


def linear_gain(affinity: NDArray[np.float64]) -> NDArray[np.float64]:
    """The affinity itself, the gain of trec_eval and of scikit-learn.

    Parameters
    ----------
    affinity : float64, of any shape

    Returns
    -------
    float64, of its shape
    """
    return as_array(affinity, "affinity")


def dcg(histograms: "JointHistograms", at: int | None = None, gain: Gain = exponential_gain) -> TieRange:
    """Tie-aware DCG, or DCG@K, with its range over tie orders.

    Source: McSherry and Najork, ECIR 2008; He et al., CVPR 2018, eq. (dcgt).

    Parameters
    ----------
    histograms, at, gain
        As of `ndcg`.

    Returns
    -------
    TieRange of (Q,) arrays

    Raises
    ------
    ValueError
        For K < 1 or negative gains.
    """
    at = None if at is None else cutoff(at)
    counts, gains = _by_gain(histograms.counts, histograms.levels, gain)
    mean_gain = divide(np.tensordot(counts, gains, axes=([1], [0])), histograms.ties.items)
    distances = counts.shape[2]
    averaged, ascending, descending = _weights_of_orders(histograms, counts, at)
    return TieRange(
        (averaged * mean_gain).sum(axis=1),
        (ascending * np.tile(gains, distances)).sum(axis=1),
        (descending * np.tile(gains[::-1], distances)).sum(axis=1),
    )


def _weights_of_orders(histograms, counts, at):
    """Sums of discounts of the ties, (Q, b + 1), and of their levels in ascending and in descending order.

    Gains that rise with the affinity share the last two, (Q, (b + 1) V): these are kept for the next call.
    """
    kept = counts is histograms.counts
    if kept and histograms.memo.get("cut of weights", 0) == at:
        return histograms.memo["weights"]
    by_distance = counts.transpose(0, 2, 1)  # inside a tie, level after level
    ascending, descending = (
        order.reshape(len(counts), -1) for order in (by_distance, by_distance[:, :, ::-1])
    )
    weights = tuple(_weights(items, at) for items in (histograms.ties.items, ascending, descending))
    if kept:
        histograms.memo.update({"cut of weights": at, "weights": weights})
    return weights


def ideal_dcg(
    items: NDArray[np.int64],
    levels: NDArray[np.int64],
    at: int | None = None,
    gain: Gain = exponential_gain,
) -> NDArray[np.float64]:
    """Largest DCG, or DCG@K, that any ranking of some items has.

    Parameters
    ----------
    items : int64 (Q, V)
        How many items have each affinity.
    levels : int64 (V,)
        The affinities.
    at, gain
        As of `ndcg`.

    Returns
    -------
    float64 (Q,)

    Raises
    ------
    ValueError
        For K < 1 or negative gains.
    """
    at = None if at is None else cutoff(at)
    counts, gains = _by_gain(integers(items, "items"), integers(levels, "levels"), gain)
    return (_weights(counts[:, ::-1], at) * gains[::-1]).sum(axis=1)


def ndcg(histograms: "JointHistograms", at: int | None = None, gain: Gain = exponential_gain) -> TieRange:
    """Tie-aware NDCG_T, or NDCG@K, with its range over tie orders; discount 1/log2(rank + 1).

    Source: McSherry and Najork, ECIR 2008; He et al., CVPR 2018, eq. (dcgt).

    Parameters
    ----------
    histograms : `JointHistograms`
    at : int, optional
        K >= 1, where the ideal ranking is cut too; by default the whole ranking.
    gain : function
        Of affinities, a float64 array, to gains of its shape, none negative: `exponential_gain`,
        `linear_gain` or any other.

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]
        1 for a query whose ideal DCG is 0.

    Raises
    ------
    ValueError
        For K < 1 or negative gains.
    """
    ideal = ideal_dcg(histograms.counts.sum(axis=2), histograms.levels, at, gain)
    return TieRange(*(divide(value, ideal, empty=1.0) for value in dcg(histograms, at, gain)))


def _by_gain(counts, levels, gain):
    """Counts with their levels, axis 1, in ascending order of gain, and these gains."""
    gains = as_array(gain(levels.astype(np.float64)), "gains").astype(np.float64)
    if gains.shape != levels.shape or not np.all(gains >= 0):
        raise ValueError(f"gains must be non-negative numbers, one for each affinity, not {gains}")
    if np.all(gains[1:] >= gains[:-1]):
        return counts, gains
    order = np.argsort(gains, kind="stable")
    return counts[:, order], gains[order]


def _weights(items, at):
    """Sums of the discounts of (Q, runs) runs of items one after the other, up to rank K: float64."""
    end = np.cumsum(items, axis=1)
    longest = max(int(end[:, -1].max()), 1)
    cut = longest if at is None else min(at, longest)
    if cut < longest:
        end = np.minimum(end, cut)
    return rank_sums.discounts(longest).successive(end)


def average_cumulative_gain(histograms: "JointHistograms", at: int) -> TieRange:
    """ACG@K: affinity of the first K items, over K, with its range; places beyond the last item count as 0.

    Source: Järvelin and Kekäläinen, SIGIR 2000; for several labels Zhao et al., CVPR 2015.

    Parameters
    ----------
    histograms : `JointHistograms`
    at : int
        K >= 1.

    Returns
    -------
    TieRange of (Q,) arrays

    Raises
    ------
    ValueError
        For K < 1.
    """
    at = cutoff(at)
    tied, levels = histograms.ties, histograms.levels
    queries, tie, taken = ties.cut(tied, at)
    gained = np.tensordot(histograms.counts, levels, axes=([1], [0]))
    before = (np.cumsum(gained, axis=1) - gained)[queries, tie]
    inside = histograms.counts[queries, :, tie]

    def first(inside, levels):  # affinities of the first items of the tie, one level after the other
        begin = np.cumsum(inside, axis=1) - inside
        return np.clip(taken[:, None] - begin, 0, inside) @ levels

    values = (
        divide(gained[queries, tie].astype(np.float64) * taken, tied.items[queries, tie]),
        first(inside, levels),
        first(inside[:, ::-1], levels[::-1]),
    )
    return TieRange(*((before + value) / at for value in values))


def weighted_average_precision(histograms: "JointHistograms") -> TieRange:
    """WAP: mean, over the relevant items, of ACG@p at their ranks p, with its range over tie orders.

    With affinities 0 and 1 it is AP. In a tie of n items, r of them relevant, with affinities of sum S, after
    N items with affinities of sum A, the expected term of place j is [A r/n + S/n + (j - 1)(r - 1) S / (n (n
    - 1))] / (N + j): either the item itself, or one of the j - 1 before it, which is any other item of the
    tie. The largest value has each tie in descending order of affinity, the smallest in ascending order:
    swapping two neighbours changes the terms of their two places alone, and never for the better.

    Source: Zhao et al., CVPR 2015.

    Parameters
    ----------
    histograms : `JointHistograms`

    Returns
    -------
    TieRange of (Q,) arrays
        0 for a query without relevant items.
    """
    tied, counts = histograms.ties, histograms.counts
    levels = histograms.levels.astype(np.float64)
    harmonic = rank_sums.harmonic(int(tied.total_items.max(initial=1)))
    n, r, before = tied.items, tied.relevant, tied.items_before
    gained = np.tensordot(counts, levels, axes=([1], [0]))
    gained_before = np.cumsum(gained, axis=1) - gained
    slope = divide((r - 1) * gained, n * (n - 1.0))
    constant = divide(gained_before * r + gained, n) - slope * (before + 1)
    expected = slope * n
    some = r > 0
    expected[some] += constant[some] * harmonic.between(before[some], (before + n)[some])

    def of_order(counts, levels):
        gain = counts * levels[:, None]
        begin = before[:, None] + np.cumsum(counts, axis=1) - counts
        cumulated = gained_before[:, None] + np.cumsum(gain, axis=1) - gain
        some = (counts > 0) & (levels > 0)[:, None]
        begin, slopes = begin[some], np.broadcast_to(levels[:, None], counts.shape)[some]
        terms = np.zeros(counts.shape)
        terms[some] = cumulated[some] - begin * slopes
        terms[some] *= harmonic.between(begin, begin + counts[some])
        return (gain + terms).sum(axis=(1, 2))

    sums = (expected.sum(axis=1), of_order(counts, levels), of_order(counts[:, ::-1], levels[::-1]))
    return TieRange(*(divide(value, tied.total_relevant) for value in sums))


def precision_at_curve(
    histograms: "JointHistograms", cuts: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """Tie-aware precision among the first K items, averaged over queries, for each K.

    Inside a tie the expected number of relevant items grows linearly with rank, as all orders are alike.
    Places beyond the last item count as irrelevant, as of `precision`.

    Parameters
    ----------
    histograms : `JointHistograms`
    cuts : sequence of int
        The K.

    Returns
    -------
    float64 (len(cuts),)

    Raises
    ------
    ValueError
        For K < 1.
    """
    cuts = np.array([cutoff(one) for one in as_array(cuts, "cuts").ravel()], np.int64)
    tied = histograms.ties
    ranks_cut = np.minimum(cuts, tied.total_items[0])
    queries, width = tied.items.shape
    # Ties in rows, and short integers, so that vector units compare and count them for many queries at once.
    small = np.int32 if tied.total_items.max(initial=0) < 2**31 else np.int64
    counter = np.int16 if width < 2**15 else np.int64
    end = np.ascontiguousarray((tied.items_before + tied.items).T, small)
    flat = [part.reshape(-1) for part in tied[:4]]
    first = np.arange(queries) * width
    hits = np.zeros(len(ranks_cut))
    for place, rank in enumerate(ranks_cut.tolist()):
        whole = np.add.reduce(end <= small(rank), axis=0, dtype=counter)  # ties among the first K
        cut = first + np.minimum(whole, width - 1)
        items, relevant, items_before, relevant_before = (part.take(cut) for part in flat)
        hits[place] = (
            relevant_before + divide(relevant * (rank - items_before).astype(np.float64), items)
        ).sum()
    return hits / (cuts.astype(np.float64) * queries)


def distance_shares(histograms: "JointHistograms") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How (query, item) pairs are spread over the distances 0..b, relevant and irrelevant ones apart.

    Parameters
    ----------
    histograms : `JointHistograms`

    Returns
    -------
    (float64 (b + 1,), float64 (b + 1,))
        Of relevant and of irrelevant pairs; each sums to 1, or holds NaN if there is no such pair.
    """
    irrelevant = histograms.counts[:, 0].sum(axis=0)
    relevant = histograms.counts[:, 1:].sum(axis=(0, 1))
    return divide(relevant, relevant.sum(), np.nan), divide(irrelevant, irrelevant.sum(), np.nan)


def queries_without_relevant(histograms: "JointHistograms") -> int:
    """Number of queries to which no database item is relevant.

    Parameters
    ----------
    histograms : `JointHistograms`

    Returns
    -------
    int
    """
    return int(np.count_nonzero(histograms.counts[:, 1:].sum(axis=(1, 2)) == 0))
