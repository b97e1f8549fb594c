"""Tie-aware ranking metrics from joint histograms: exact means and true ranges over all orders of tied items.

Notation of He et al. (CVPR 2018): a *tie* is the set of items at one Hamming distance d; n_d items, of
which n_d^+ relevant, N_{d-1} items and N_{d-1}^+ relevant ones before it. Every function returns, per query,
the mean over all permutations inside ties (tie-aware: AP_T, NDCG_T), and the smallest and largest value that
any permutation reaches. Sums over ranks are differences of prefix sums of 1/t and 1/log2(t + 1), so the cost
does not depend on the size of the database.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebench import _rank_sums

if TYPE_CHECKING:  # these need no kernel, and loading one takes time
    from tiebench.hamming import JointHistograms

AP_AT_NORMALISERS = ("hits", "min", "relevant")


class TieRange(NamedTuple):
    """A metric per query: float64 (Q,) arrays; expected is the tie-aware value."""

    expected: NDArray[np.float64]
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]


class _Ties(NamedTuple):
    """Per query and distance, int64 (Q, b + 1): items, relevant items, and how many of each come before."""

    items: np.ndarray
    relevant: np.ndarray
    items_before: np.ndarray
    relevant_before: np.ndarray
    total_relevant: np.ndarray  # (Q,)
    database: int


def _ties(histograms):
    counts = histograms.counts
    items = counts.sum(axis=1)
    relevant = items - counts[:, 0]
    through = np.cumsum(items, axis=1)
    relevant_through = np.cumsum(relevant, axis=1)
    return _Ties(
        items,
        relevant,
        through - items,
        relevant_through - relevant,
        relevant_through[:, -1],
        int(through[0, -1]),
    )


def _check_cut(at):
    if at is not None and (at != int(at) or at < 1):
        raise ValueError(f"the cut K must be a positive integer, not {at}")


def _divide(numerator, denominator, empty=0.0):
    """numerator / denominator, and `empty` where the denominator is 0."""
    out = np.full(np.broadcast(numerator, denominator).shape, empty, np.float64)
    return np.divide(numerator, denominator, out=out, where=np.asarray(denominator) != 0)


def _precision_sums(ties, cut):
    """Sum of the precision at the relevant ranks of each tie, its first `cut` items only; (Q, b + 1) each."""
    harmonic = _rank_sums.harmonic(ties.database)
    n, r, before, relevant_before = ties[:4]
    # Expected: eq. (apt), its summand A + B/t with A = (n+ - 1)/(n - 1).
    slope = _divide(r - 1, n - 1)
    inverse_ranks = harmonic.between(before, before + cut)
    expected = slope * cut + (relevant_before + 1 - slope * (before + 1)) * inverse_ranks
    expected = _divide(r, n) * expected

    def run(first, length):  # relevant items at ranks first + 1 .. first + length
        return length + (relevant_before - first) * harmonic.between(first, first + length)

    maximum = run(before, np.minimum(r, cut))
    minimum = run(before + n - r, np.maximum(cut - (n - r), 0))
    # n - r irrelevant items first may pass the cut: then `run` starts beyond it, with length 0.
    return TieRange(expected, minimum, maximum)


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
    if normaliser not in AP_AT_NORMALISERS:
        raise ValueError(f"the normaliser of AP@K must be one of {AP_AT_NORMALISERS}, not {normaliser!r}")
    ties = _ties(histograms)
    at = ties.database if at is None else min(int(at), ties.database)
    cut = np.clip(at - ties.items_before, 0, ties.items)
    sums = _precision_sums(ties, cut)
    if normaliser == "hits" and at < ties.database:
        return _per_hit(ties, at, cut, sums)
    divisor = ties.total_relevant if normaliser != "min" else np.minimum(at, ties.total_relevant)
    return TieRange(*(_divide(values.sum(axis=1), divisor) for values in sums))


def _per_hit(ties, at, cut, sums):
    from tiebench import _ap_at_k  # compiled: loaded only where a cut needs it

    partial = (cut > 0) & (cut < ties.items)
    whole = (cut > 0) & ~partial
    queries = np.arange(len(cut))
    tie = np.argmax(partial, axis=1)  # at most one tie is cut; where none is, index 0 is masked out below
    has_cut = partial[queries, tie]
    before = [np.where(whole, values, 0).sum(axis=1) for values in sums]
    hits = np.where(whole, ties.relevant, 0).sum(axis=1)

    def boundary(values):
        return np.where(has_cut, values[queries, tie], 0).astype(np.int64)

    result = [np.empty(len(cut)) for _ in range(3)]
    # Of ranks up to K: the kernel looks no further.
    harmonic = _rank_sums.harmonic(ties.database).at(np.arange(at + 1))
    _ap_at_k.average_precision_per_hit(
        *before,
        hits.astype(np.int64),
        boundary(ties.items_before),
        boundary(ties.items),
        boundary(ties.relevant),
        boundary(cut),
        harmonic.astype(np.float64),
        *result,
    )
    return TieRange(*result)


def ndcg(histograms: "JointHistograms", at: int | None = None) -> TieRange:
    """Tie-aware NDCG_T (eq. (dcgt)), or NDCG@K, with its range over tie orders.

    Gain 2^affinity - 1, discount 1/log2(rank + 1); the ideal ranking is cut at K too. A query whose ideal
    DCG is 0 has NDCG 1. Returns TieRange of (Q,) arrays in [0, 1]. Raises ValueError for K < 1.
    """
    _check_cut(at)
    counts = histograms.counts
    queries, levels, distances = counts.shape
    gains = np.exp2(histograms.levels.astype(np.float64)) - 1
    items = int(counts[0].sum())
    at = items if at is None else min(int(at), items)
    discount = _rank_sums.discounts(items)

    def total(groups, group_gains):
        """DCG of ranking (Q, groups) runs of items one after the other."""
        end = np.cumsum(groups, axis=1)
        weights = discount.between(np.minimum(end - groups, at), np.minimum(end, at))
        return (weights * group_gains).sum(axis=1)

    ideal = total(counts.sum(axis=2)[:, ::-1], gains[::-1])
    tied = counts.sum(axis=1)
    mean_gain = _divide(np.tensordot(counts, gains, axes=([1], [0])), tied)
    by_distance = counts.transpose(0, 2, 1)  # (Q, b + 1, V): inside a tie, level after level
    ascending = by_distance.reshape(queries, distances * levels)
    descending = by_distance[:, :, ::-1].reshape(queries, distances * levels)
    values = (
        total(tied, mean_gain),
        total(ascending, np.tile(gains, distances)),
        total(descending, np.tile(gains[::-1], distances)),
    )
    return TieRange(*(_divide(value, ideal, empty=1.0) for value in values))


def precision(histograms: "JointHistograms", at: int) -> TieRange:
    """Precision among the first K items (of all items if there are fewer), with its range over tie orders.

    Returns TieRange of (Q,) arrays. Raises ValueError for K < 1.
    """
    _check_cut(at)
    ties = _ties(histograms)
    at = min(int(at), ties.database)
    cut = np.clip(at - ties.items_before, 0, ties.items)
    irrelevant = ties.items - ties.relevant
    hits = (
        _divide(ties.relevant * cut, ties.items),
        np.maximum(cut - irrelevant, 0),
        np.minimum(cut, ties.relevant),
    )
    return TieRange(*(found.sum(axis=1) / at for found in hits))


def precision_within_radius(histograms: "JointHistograms", radius: int = 2) -> NDArray[np.float64]:
    """Share of relevant items at Hamming distance <= radius, 0 if no item is so near: float64 (Q,)."""
    near = slice(0, radius + 1)
    items = histograms.counts[:, :, near].sum(axis=(1, 2))
    irrelevant = histograms.counts[:, 0, near].sum(axis=1)
    return _divide(items - irrelevant, items)


def precision_recall_curve(
    histograms: "JointHistograms",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision and recall of retrieving everything within radius 0, 1, ..., b: two float64 (b + 1,) arrays.

    Precision is averaged over the queries that retrieve anything at that radius (NaN where none does), recall
    over those with something relevant. Whole ties are retrieved, so no order plays a part.
    """
    ties = _ties(histograms)
    items = ties.items_before + ties.items
    hits = ties.relevant_before + ties.relevant
    precision_sum = _divide(hits, items).sum(axis=0)
    answered = ties.total_relevant > 0
    recall = _divide(hits[answered], ties.total_relevant[answered, None])
    mean_recall = recall.mean(axis=0) if answered.any() else np.full(items.shape[1], np.nan)
    return _divide(precision_sum, (items > 0).sum(axis=0), empty=np.nan), mean_recall


def precision_at_curve(
    histograms: "JointHistograms", cuts: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """Tie-aware precision among the first K items, averaged over queries, for each K: float64 (len(cuts),).

    Inside a tie the expected number of relevant items grows linearly with rank, as all orders are alike.
    K beyond the database counts as the whole database. Raises ValueError for K < 1.
    """
    if np.min(cuts) < 1:
        raise ValueError(f"the cuts K must be positive, not {np.min(cuts)}")
    ties = _ties(histograms)
    ranks_cut = np.minimum(cuts, ties.database)
    zero = np.zeros((len(ties.items), 1), np.int64)
    items = np.hstack([zero, ties.items_before + ties.items])
    relevant = np.hstack([zero, ties.relevant_before + ties.relevant])
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
    return _divide(relevant, relevant.sum(), np.nan), _divide(irrelevant, irrelevant.sum(), np.nan)


def queries_without_relevant(histograms: "JointHistograms") -> int:
    """Number of queries to which no database item is relevant."""
    return int(np.count_nonzero(histograms.counts[:, 1:].sum(axis=(1, 2)) == 0))
