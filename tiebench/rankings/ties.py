"""Metrics of rankings with blocks of tied items, from the number of items and of relevant ones in each block.

This is all that metrics of relevant or irrelevant items can depend on, whatever the ranking is of: distances
of codes (`tiebench.rankings.exact` calls these functions), similarities, or scores of a search engine. Every
function returns the exact mean over all orders inside the blocks and the smallest and largest value of any
order.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, NamedTuple, ParamSpec, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.rankings import rank_sums
from tiebench.values import as_array, cutoff, form, integer, integers

AP_AT_NORMALISERS = ("hits", "min", "relevant")


class TieRange(NamedTuple):
    """A metric per query, over the orders of tied items.

    Parameters
    ----------
    expected : float64 (Q,)
        The mean over all orders, which is the tie-aware value.
    minimum, maximum : float64 (Q,)
        The smallest and the largest value that any order reaches.
    """

    expected: NDArray[np.float64]
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]


class Ties(NamedTuple):
    """Blocks of tied items of Q rankings, best first; D is the largest number of blocks.

    A block without items plays no part, so rankings with fewer blocks end in zeros.

    Parameters
    ----------
    items, relevant : int64 (Q, D)
        The counts of a block.
    items_before, relevant_before : int64 (Q, D)
        Those of all blocks before it.
    total_items, total_relevant : int64 (Q,)
        Of a ranking. total_relevant may exceed the relevant items of the blocks: what was not retrieved
        counts too.
    """

    items: NDArray[np.int64]
    relevant: NDArray[np.int64]
    items_before: NDArray[np.int64]
    relevant_before: NDArray[np.int64]
    total_items: NDArray[np.int64]
    total_relevant: NDArray[np.int64]


class _Counted(Protocol):
    """What has `Ties`, as joint histograms do."""

    @property
    def ties(self) -> Ties:
        """Its blocks."""


P = ParamSpec("P")


def _of_blocks(
    metric: Callable[Concatenate[Ties, P], TieRange],
) -> Callable[Concatenate[Ties | _Counted, P], TieRange]:
    @functools.wraps(metric)
    def of(ties: Ties | _Counted, *arguments: P.args, **options: P.kwargs) -> TieRange:
        return metric(ties if isinstance(ties, Ties) else ties.ties, *arguments, **options)

    return of


def from_counts(
    items: NDArray[np.int64], relevant: NDArray[np.int64], total_relevant: NDArray[np.int64] | None = None
) -> Ties:
    """`Ties` of the counts per block.

    Parameters
    ----------
    items, relevant : int (Q, D)
        Best block first.
    total_relevant : int (Q,), optional
        All relevant items of each query, retrieved or not; by default those of the blocks.

    Returns
    -------
    `Ties`

    Raises
    ------
    ValueError
        For counts that do not fit.
    """
    items, relevant = _counts(items, "items"), _counts(relevant, "relevant")
    if items.ndim != 2 or 0 in items.shape[1:] or relevant.shape != items.shape:
        raise ValueError(f"items and relevant must be (Q, D), D >= 1, not {form(items)} and {form(relevant)}")
    if not ((relevant >= 0) & (relevant <= items)).all():
        raise ValueError("relevant must be 0 to items in every block")
    items_through, relevant_through = np.cumsum(items, axis=1), np.cumsum(relevant, axis=1)
    retrieved = relevant_through[:, -1]
    total = retrieved if total_relevant is None else _counts(total_relevant, "total_relevant")
    if total.shape != retrieved.shape or (total < retrieved).any():
        raise ValueError("total_relevant must be (Q,), and at least the relevant items of the blocks")
    return Ties(
        items,
        relevant,
        items_through - items,
        relevant_through - relevant,
        items_through[:, -1],
        total,
    )


def _counts(values, name):
    return integers(values, name).astype(np.int64, copy=False)


def hits(ties: Ties, at: int | NDArray[np.int64]) -> TieRange:
    """Number of relevant items among the first K of each ranking.

    Inside a block the mean grows linearly, as all orders are alike.

    Parameters
    ----------
    ties : `Ties`
    at : int, or int (Q,)
        K >= 0, of all rankings or of each.

    Returns
    -------
    TieRange of (Q,) arrays

    Raises
    ------
    ValueError
        For K < 0.
    """
    queries, tie, taken = cut(ties, at)
    items, relevant = ties.items[queries, tie], ties.relevant[queries, tie]
    before = ties.relevant_before[queries, tie]
    return TieRange(
        before + divide(relevant * taken.astype(np.float64), items),
        (before + np.maximum(taken - (items - relevant), 0)).astype(np.float64),
        (before + np.minimum(taken, relevant)).astype(np.float64),
    )


def cut(
    ties: Ties, at: int | NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The block of each ranking that holds rank K, and how many of its items are among the first K.

    Parameters
    ----------
    ties : `Ties`
    at : int, or int (Q,)
        As of `hits`.

    Returns
    -------
    (int64 (Q,), int64 (Q,), int64 (Q,))
        Rows 0..Q - 1, columns of the blocks, numbers of items. Where a ranking ends before K it is the last
        block, whole; for K = 0 none of the first.

    Raises
    ------
    ValueError
        For K < 0.
    """
    queries = np.arange(len(ties.items))
    ranks = as_array(at, "the cut K")
    ranks = _counts(ranks, "the cut K") if ranks.ndim else np.asarray(integer(ranks, "the cut K", 0))
    integer(ranks.min(initial=0), "the cut K", 0)
    begun = (ties.items_before < ranks[..., None]) & (ties.items > 0)
    last = ties.items.shape[1] - 1 - np.argmax(begun[:, ::-1], axis=1)
    tie = np.where(begun.any(axis=1), last, 0)
    return queries, tie, np.clip(ranks - ties.items_before[queries, tie], 0, ties.items[queries, tie])


@_of_blocks
def precision(ties: Ties, at: int) -> TieRange:
    """Relevant items among the first K, over K, as trec_eval.

    Places beyond the last item of a shorter ranking count as irrelevant.

    Parameters
    ----------
    ties : `Ties`, or `JointHistograms`
    at : int
        K >= 1.

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]

    Raises
    ------
    ValueError
        For K < 1.
    """
    at = cutoff(at)
    return TieRange(*(found / at for found in hits(ties, at)))


@_of_blocks
def recall(ties: Ties, at: int) -> TieRange:
    """Share of all relevant items that is among the first K.

    Parameters
    ----------
    ties : `Ties`, or `JointHistograms`
    at : int
        K >= 1.

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]
        0 for a query without relevant items.

    Raises
    ------
    ValueError
        For K < 1.
    """
    return TieRange(*(divide(found, ties.total_relevant) for found in hits(ties, cutoff(at))))


@_of_blocks
def r_precision(ties: Ties) -> TieRange:
    """Precision among the first R, R the number of relevant items.

    Source: Buckley and Voorhees, SIGIR 2000.

    Parameters
    ----------
    ties : `Ties`, or `JointHistograms`

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]
        0 for a query without relevant items.
    """
    return TieRange(*(divide(found, ties.total_relevant) for found in hits(ties, ties.total_relevant)))


@_of_blocks
def success(ties: Ties, at: int) -> TieRange:
    """Probability that any relevant item is among the first K, and whether it is in the worst and best order.

    The number of relevant items among m of a block of n, r of them relevant, is hypergeometric: none with
    probability C(n - r, m) / C(n, m).

    Parameters
    ----------
    ties : `Ties`, or `JointHistograms`
    at : int
        K >= 1.

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]

    Raises
    ------
    ValueError
        For K < 1.
    """
    from tiebench.rankings import first_hit  # compiled: loaded only where it is needed

    queries, tie, taken = cut(ties, cutoff(at))
    items, relevant = ties.items[queries, tie], ties.relevant[queries, tie]
    certain = ties.relevant_before[queries, tie] > 0
    expected = np.empty(len(items))
    first_hit.probability_of_a_hit(items, relevant, taken, expected)
    return TieRange(
        np.where(certain, 1.0, expected),
        (certain | (taken > items - relevant)).astype(np.float64),
        (certain | ((taken > 0) & (relevant > 0))).astype(np.float64),
    )


@_of_blocks
def reciprocal_rank(ties: Ties, at: int | None = None) -> TieRange:
    """1 / rank of the first relevant item, 0 without one, or without one among the first K.

    In the first block with relevant items, r of n, after N others, the first relevant one stands at place j
    with probability C(n - j, r - 1) / C(n, r). The mean of 1 / (N + j) is computed by whichever of three
    recurrences is short and stable (`tiebench.rankings.first_hit`): for blocks of a million items a few
    thousand steps at most, unless K is far inside one of them.

    Source: Voorhees, TREC-8, 1999; McSherry and Najork, ECIR 2008.

    Parameters
    ----------
    ties : `Ties`, or `JointHistograms`
    at : int, optional
        K >= 1; by default the whole ranking.

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]

    Raises
    ------
    ValueError
        For K < 1.
    """
    from tiebench.rankings import first_hit

    queries = np.arange(len(ties.items))
    tie = np.argmax(ties.relevant > 0, axis=1)
    items, relevant = ties.items[queries, tie], ties.relevant[queries, tie]
    before = ties.items_before[queries, tie]
    last = np.full(len(items), np.iinfo(np.int64).max if at is None else cutoff(at), np.int64)
    harmonic = rank_sums.harmonic(_longest(ties)).between(before, before + items)
    expected = np.empty(len(items))
    first_hit.expected_reciprocal_rank(items, relevant, before, last, harmonic, expected)
    first, latest = before + 1, before + items - relevant + 1
    found = relevant > 0
    return TieRange(
        expected,
        np.where(found & (latest <= last), 1 / latest, 0.0),
        np.where(found & (first <= last), 1 / first, 0.0),
    )


@_of_blocks
def average_precision(ties: Ties, at: int | None = None, normaliser: str = "hits") -> TieRange:
    """Tie-aware average precision AP_T of the whole ranking, or AP@K of the first K.

    Under "hits" the divisor itself depends on the order of the tie that K cuts: the mean conditions on the
    number of relevant items inside the cut, which is hypergeometric.

    Source: McSherry and Najork, ECIR 2008; He et al., CVPR 2018, eq. (apt).

    Parameters
    ----------
    ties : `Ties`, or `JointHistograms`
    at : int, optional
        K >= 1; by default the whole ranking.
    normaliser : str
        What the sum of precisions at the relevant ranks up to K is divided by: "hits", the number of relevant
        items among the first K (the convention of hashing papers); "min", min(K, relevant items); "relevant",
        all relevant items.

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]
        0 for a query with nothing to divide by.

    Raises
    ------
    ValueError
        For K < 1 or another normaliser.
    """
    check_normaliser(normaliser)
    longest = _longest(ties)
    last = longest if at is None else cutoff(at)
    taken = np.clip(last - ties.items_before, 0, ties.items)
    sums = _precision_sums(ties, taken)
    if normaliser == "hits":
        if last < longest:
            return _per_hit(ties, taken, sums)
        divisor = ties.relevant.sum(axis=1)
    elif normaliser == "min" and at is not None:
        divisor = np.minimum(last, ties.total_relevant)
    else:
        divisor = ties.total_relevant
    return TieRange(*(divide(values.sum(axis=1), divisor) for values in sums))


def check_normaliser(normaliser: str) -> str:
    """What AP@K divides by, checked.

    Parameters
    ----------
    normaliser : str

    Returns
    -------
    str
        One of `AP_AT_NORMALISERS`.

    Raises
    ------
    ValueError
        One line, for all else.
    """
    if normaliser not in AP_AT_NORMALISERS:
        raise ValueError(f"the normaliser of AP@K must be one of {AP_AT_NORMALISERS}, not {normaliser!r}")
    return normaliser


def _per_hit(ties, taken, sums):
    from tiebench.rankings import ap_at_k  # compiled: loaded only where a cut needs it

    partial = (taken > 0) & (taken < ties.items)
    whole = (taken > 0) & ~partial
    queries = np.arange(len(taken))
    tie = np.argmax(partial, axis=1)  # at most one tie is cut; where none is, index 0 is masked out below
    has_cut = partial[queries, tie]
    before = [np.where(whole, values, 0).sum(axis=1) for values in sums]
    found = np.where(whole, ties.relevant, 0).sum(axis=1)

    def boundary(values):
        return np.where(has_cut, values[queries, tie], 0).astype(np.int64)

    first, n, r, m = map(boundary, (ties.items_before, ties.items, ties.relevant, taken))
    low, high = np.maximum(0, m - (n - r)), np.minimum(m, r)
    end = first + m
    harmonic = rank_sums.harmonic(_longest(ties))
    inverse_ranks = harmonic.between(
        np.stack([first, first, first, end - low]), np.stack([end, first + low, first + high, end])
    )
    result = [np.empty(len(taken)) for _ in range(3)]
    ap_at_k.average_precision_per_hit(*before, found.astype(np.int64), first, n, r, m, inverse_ranks, *result)
    return TieRange(*result)


def _precision_sums(ties, taken):
    """Sum of the precision at the relevant ranks of each tie, its first `taken` items only; (Q, D) each."""
    some = (ties.relevant > 0) & (taken > 0)  # most blocks are empty, or beyond a cut
    harmonic = rank_sums.harmonic(_longest(ties))
    n, r, before, relevant_before, taken = (part[some] for part in (*ties[:4], taken))
    # Expected: eq. (apt), its summand A + B/t with A = (n+ - 1)/(n - 1).
    slope = divide(r - 1, n - 1)
    inverse_ranks = harmonic.between(before, before + taken)
    expected = slope * taken + (relevant_before + 1 - slope * (before + 1)) * inverse_ranks
    expected = divide(r, n) * expected

    def run(first, length):  # relevant items at ranks first + 1 .. first + length
        return length + (relevant_before - first) * harmonic.between(first, first + length)

    maximum = run(before, np.minimum(r, taken))
    minimum = run(before + n - r, np.maximum(taken - (n - r), 0))
    # n - r irrelevant items first may pass the cut: then `run` starts beyond it, with length 0.
    sums = TieRange(*(np.zeros(some.shape) for _ in range(3)))
    for whole, values in zip(sums, (expected, minimum, maximum)):
        whole[some] = values
    return sums


def dcg(
    begin: NDArray[np.int64], length: NDArray[np.int64], gains: NDArray[np.float64], at: int | None = None
) -> NDArray[np.float64]:
    """Discounted cumulative gain of the first K items, or of all; discount 1/log2(rank + 1).

    A ranking is given as stretches of ranks. A tie of n items is one stretch of their mean gain; in a given
    order, each of its gains is a stretch. Stretches may overlap and may leave out ranks without gain.

    Source: Järvelin and Kekäläinen, TOIS 2002.

    Parameters
    ----------
    begin : int (Q, G)
        The ranks before a stretch.
    length : int (Q, G)
        Its items.
    gains : float64 (Q, G)
        Of each of its items.
    at : int, optional
        K >= 1; by default the whole ranking.

    Returns
    -------
    float64 (Q,)

    Raises
    ------
    ValueError
        For K < 1.
    """
    begin, length = _counts(begin, "begin"), _counts(length, "length")
    gains = as_array(gains, "gains")
    at = None if at is None else cutoff(at)
    end = begin + length
    # One table for all lengths of the same magnitude: it is kept.
    discount = rank_sums.discounts(1 << int(end.max(initial=1)).bit_length())
    if at is not None:
        begin, end = np.minimum(begin, at), np.minimum(end, at)
    return (discount.between(begin, end) * gains).sum(axis=1)


def _longest(ties):
    return int(ties.total_items.max(initial=1))


def divide(numerator: ArrayLike, denominator: ArrayLike, empty: float = 0.0) -> NDArray[np.float64]:
    """numerator / denominator, and `empty` where the denominator is 0.

    Parameters
    ----------
    numerator, denominator : numbers that broadcast
    empty : float

    Returns
    -------
    float64 of their common shape
    """
    numerator, denominator = as_array(numerator), as_array(denominator)
    out = np.full(np.broadcast(numerator, denominator).shape, empty, np.float64)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)
