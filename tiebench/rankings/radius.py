"""Metrics of a lookup that retrieves every item within a Hamming radius of the query.

Whole ties are retrieved, so that only AP, which ranks the items of the ball, depends on their order. What a
lookup costs is in `tiebench.search.lookup`.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tiebench.rankings import ties
from tiebench.rankings.ties import TieRange, divide
from tiebench.values import integer

if TYPE_CHECKING:  # these need no kernel, and loading one takes time
    from tiebench.counting.histograms import JointHistograms


def _within(histograms, radius):
    """Items and relevant items at distance <= radius, int64 (Q,) each."""
    tied, end = histograms.ties, _end(radius)
    return tied.items[:, :end].sum(axis=1), tied.relevant[:, :end].sum(axis=1)


def _end(radius):
    """Number of distances within a radius. Raises ValueError for one that is not an integer of at least 0."""
    return integer(radius, "radius", 0) + 1


def precision_within_radius(histograms: "JointHistograms", radius: int = 2) -> NDArray[np.float64]:
    """Share of relevant items at Hamming distance <= radius.

    Source: Liu et al., CVPR 2012 (precision of hash lookup).

    Parameters
    ----------
    histograms : `JointHistograms`
    radius : int
        0 or more.

    Returns
    -------
    float64 (Q,)
        0 if no item is so near.

    Raises
    ------
    ValueError
        For a radius that is not an integer of at least 0.
    """
    items, relevant = _within(histograms, radius)
    return divide(relevant, items)


def recall_within_radius(histograms: "JointHistograms", radius: int = 2) -> NDArray[np.float64]:
    """Share of all relevant items that is at Hamming distance <= radius.

    Source: Salakhutdinov and Hinton, IJAR 2009.

    Parameters
    ----------
    histograms, radius
        As of `precision_within_radius`.

    Returns
    -------
    float64 (Q,)
        0 for a query without relevant items.

    Raises
    ------
    ValueError
        As of `precision_within_radius`.
    """
    return divide(_within(histograms, radius)[1], histograms.ties.total_relevant)


def f1_within_radius(histograms: "JointHistograms", radius: int = 2) -> NDArray[np.float64]:
    """Harmonic mean of precision and recall within a radius.

    Parameters
    ----------
    histograms, radius
        As of `precision_within_radius`.

    Returns
    -------
    float64 (Q,)
        0 if either is 0.

    Raises
    ------
    ValueError
        As of `precision_within_radius`.
    """
    items, relevant = _within(histograms, radius)
    return divide(2 * relevant, items + histograms.ties.total_relevant)


def candidates_within_radius(histograms: "JointHistograms", radius: int = 2) -> NDArray[np.float64]:
    """Number of items at Hamming distance <= radius.

    Parameters
    ----------
    histograms, radius
        As of `precision_within_radius`.

    Returns
    -------
    float64 (Q,)

    Raises
    ------
    ValueError
        As of `precision_within_radius`.
    """
    return _within(histograms, radius)[0].astype(np.float64)


def empty_within_radius(histograms: "JointHistograms", radius: int = 2) -> NDArray[np.float64]:
    """Whether no item is at Hamming distance <= radius; the mean is a share of queries.

    Parameters
    ----------
    histograms, radius
        As of `precision_within_radius`.

    Returns
    -------
    float64 (Q,)
        1 or 0.

    Raises
    ------
    ValueError
        As of `precision_within_radius`.
    """
    return (_within(histograms, radius)[0] == 0).astype(np.float64)


def average_precision_within_radius(histograms: "JointHistograms", radius: int = 2) -> TieRange:
    """Tie-aware AP of the items at Hamming distance <= radius, divided by the relevant ones among them.

    DCH's "MAP within Hamming radius 2" (Cao et al., CVPR 2018) has this divisor, but its code ranks the items
    of the ball by real-valued outputs; here they are ranked by the distances of codes, with the range over
    tie orders.

    Parameters
    ----------
    histograms, radius
        As of `precision_within_radius`.

    Returns
    -------
    TieRange of (Q,) arrays in [0, 1]
        0 if nothing relevant is so near.

    Raises
    ------
    ValueError
        As of `precision_within_radius`.
    """
    tied, end = histograms.ties, _end(radius)
    ball = ties.from_counts(tied.items[:, :end], tied.relevant[:, :end])
    return ties.average_precision(ball, None, "relevant")


def radius_aware_average_precision(
    histograms: "JointHistograms", radius: int = 2, per_bucket: bool = False
) -> NDArray[np.float64]:
    """RAAP: mean of the precision within radius 0, 1, ..., R, an empty ball counting as 0.

    It is a mean of R + 1 terms also where R exceeds b: the balls beyond b hold all items. Its mean over
    queries is RAMAP.

    Source: Jiang, Li and Li, arXiv 1905.10951, after a third-party implementation; docs/differences.md says
    more.

    Parameters
    ----------
    histograms : `JointHistograms`
    radius : int
        R, 0 or more.
    per_bucket : bool
        Divide the precision within each radius r by the number of buckets of a lookup to it, the sum of C(b,
        i), i <= r.

    Returns
    -------
    float64 (Q,)

    Raises
    ------
    ValueError
        As of `precision_within_radius`.
    """
    end = _end(radius)
    items = np.cumsum(histograms.ties.items[:, :end], axis=1)
    relevant = np.cumsum(histograms.ties.relevant[:, :end], axis=1)
    weights = np.ones(items.shape[1])
    if per_bucket:
        weights = 1 / np.cumsum([float(math.comb(histograms.bits, r)) for r in range(items.shape[1])])
    weights[-1] *= 1 + end - items.shape[1]  # all balls beyond b are the last
    return divide(relevant, items) @ weights / end


def lookup_curves(histograms: "JointHistograms") -> dict[str, NDArray[np.float64]]:
    """Means over the queries of what a lookup to radius 0, 1, ..., b retrieves.

    Parameters
    ----------
    histograms : `JointHistograms`

    Returns
    -------
    dict
        Name -> float64 (b + 1,): "precision", over the queries that retrieve anything at that radius (NaN
        where none does); "recall" and "f1", over those with something relevant (NaN without any); over all
        queries, "precision_or_0", empty balls counting as 0, "candidates", the number of items, and "empty",
        the share of empty balls.
    """
    tied = histograms.ties
    items = tied.items_before + tied.items
    found = tied.relevant_before + tied.relevant
    precision_sum = divide(found, items).sum(axis=0)
    answered = tied.total_relevant > 0
    relevant = tied.total_relevant[answered, None]
    some, none = found[answered], np.full(items.shape[1], np.nan)
    queries = len(items)
    return {
        "precision": divide(precision_sum, (items > 0).sum(axis=0), empty=np.nan),
        "recall": divide(some, relevant).mean(axis=0) if answered.any() else none,
        "f1": divide(2 * some, items[answered] + relevant).mean(axis=0) if answered.any() else none,
        "precision_or_0": precision_sum / queries,
        "candidates": items.mean(axis=0),
        "empty": (items == 0).mean(axis=0),
    }
