"""Metrics of rankings in one given order, without ties: what a program reports that breaks ties its own way.

Each function is the textbook formula of its metric, of the ranks and affinities of the relevant items alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebench.rankings import exact
from tiebench.rankings.ties import divide


class Ranked(NamedTuple):
    """Relevant items of Q rankings, best first; R is the largest number of them, or 1.

    Parameters
    ----------
    ranks : int64 (Q, R)
        The rank of an item, from 1.
    affinity : int64 (Q, R)
        What it is worth; a ranking with fewer relevant items ends in affinities of 0.
    levels : int64 (V,)
        All affinities, ascending from 0.
    items : int64 (Q, V)
        How many items have each.
    through : int64 (Q, b + 1)
        Items within each Hamming distance.
    """

    ranks: NDArray[np.int64]
    affinity: NDArray[np.int64]
    levels: NDArray[np.int64]
    items: NDArray[np.int64]
    through: NDArray[np.int64]

    @property
    def relevant(self) -> NDArray[np.int64]:
        """Number of relevant items of each query, int64 (Q,)."""
        return self.items[:, 1:].sum(axis=1)


def _first(ranked, at):
    """Which places hold a relevant item of the first K: bool (Q, R); at: K, int (Q, 1) of them, or None."""
    found = ranked.affinity > 0
    return found if at is None else found & (ranked.ranks <= at)


def average_precision(
    ranked: Ranked, at: int | NDArray[np.int64] | None = None, normaliser: str = "hits"
) -> NDArray[np.float64]:
    """AP, or AP@K, divided as `ties.average_precision` says.

    Parameters
    ----------
    ranked : `Ranked`
    at : int, or int (Q, 1), optional
        K, of all rankings or of each; by default the whole ranking.
    normaliser : str
        "hits", "min" or "relevant".

    Returns
    -------
    float64 (Q,)
    """
    found = _first(ranked, at)
    precisions = np.arange(1, ranked.ranks.shape[1] + 1) / ranked.ranks
    divisor = {"hits": found.sum(axis=1), "relevant": ranked.relevant}.get(normaliser)
    if divisor is None:  # "min"
        divisor = np.minimum(ranked.relevant, ranked.relevant if at is None else at)
    return divide((precisions * found).sum(axis=1), divisor)


def average_precision_within_radius(ranked: Ranked, radius: int) -> NDArray[np.float64]:
    """AP of the items within a Hamming distance, divided by the relevant ones among them.

    Parameters
    ----------
    ranked : `Ranked`
    radius : int
        0 or more.

    Returns
    -------
    float64 (Q,)
    """
    within = ranked.through[:, min(radius, ranked.through.shape[1] - 1)]
    return average_precision(ranked, within[:, None])


def ndcg(
    ranked: Ranked, at: int | None = None, gain: exact.Gain = exact.exponential_gain
) -> NDArray[np.float64]:
    """NDCG, or NDCG@K.

    Parameters
    ----------
    ranked : `Ranked`
    at : int, optional
        K; by default the whole ranking.
    gain : function
        As of `exact.ndcg`.

    Returns
    -------
    float64 (Q,)
        1 for a query whose ideal DCG is 0.
    """
    gains = gain(ranked.affinity.astype(np.float64)) * _first(ranked, at)
    found = (gains / np.log2(ranked.ranks + 1)).sum(axis=1)
    return divide(found, exact.ideal_dcg(ranked.items, ranked.levels, at, gain), empty=1.0)


def weighted_average_precision(ranked: Ranked) -> NDArray[np.float64]:
    """Mean, over the relevant items, of the mean affinity up to their ranks.

    Source: Zhao et al., CVPR 2015.

    Parameters
    ----------
    ranked : `Ranked`

    Returns
    -------
    float64 (Q,)
    """
    means = np.cumsum(ranked.affinity, axis=1) / ranked.ranks
    return divide((means * _first(ranked, None)).sum(axis=1), ranked.relevant)


def average_cumulative_gain(ranked: Ranked, at: int) -> NDArray[np.float64]:
    """Mean affinity of the first K items.

    Parameters
    ----------
    ranked : `Ranked`
    at : int
        K.

    Returns
    -------
    float64 (Q,)
    """
    return (ranked.affinity * _first(ranked, at)).sum(axis=1) / at


def precision(ranked: Ranked, at: int) -> NDArray[np.float64]:
    """Share of relevant items among the first K.

    Parameters
    ----------
    ranked : `Ranked`
    at : int
        K.

    Returns
    -------
    float64 (Q,)
    """
    return _first(ranked, at).sum(axis=1) / at


def recall(ranked: Ranked, at: int) -> NDArray[np.float64]:
    """Share of all relevant items that is among the first K.

    Parameters
    ----------
    ranked : `Ranked`
    at : int
        K.

    Returns
    -------
    float64 (Q,)
        0 for a query without relevant items.
    """
    return divide(_first(ranked, at).sum(axis=1), ranked.relevant)


def r_precision(ranked: Ranked) -> NDArray[np.float64]:
    """Share of relevant items among the first R, R the number of relevant items.

    Parameters
    ----------
    ranked : `Ranked`

    Returns
    -------
    float64 (Q,)
        0 for a query without relevant items.
    """
    relevant = ranked.relevant
    return divide(_first(ranked, relevant[:, None]).sum(axis=1), relevant)


def success(ranked: Ranked, at: int) -> NDArray[np.float64]:
    """Whether a relevant item is among the first K.

    Parameters
    ----------
    ranked : `Ranked`
    at : int
        K.

    Returns
    -------
    float64 (Q,)
        0 or 1.
    """
    return _first(ranked, at).any(axis=1).astype(np.float64)


def reciprocal_rank(ranked: Ranked, at: int | None = None) -> NDArray[np.float64]:
    """1 / rank of the first relevant item.

    Parameters
    ----------
    ranked : `Ranked`
    at : int, optional
        K; by default the whole ranking.

    Returns
    -------
    float64 (Q,)
        0 without a relevant item among the first K.
    """
    return _first(ranked, at)[:, 0] / ranked.ranks[:, 0]
