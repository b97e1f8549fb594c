"""Scores of codes whose ties are broken by position: what a program reports that sorts items stably.

Such a program ranks by (Hamming distance, position in the database). One counting sort a query finds the
ranks of the relevant items; nothing of size Q x N is held.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench._compiled import NUMBA
from tiebench.affinities import Affinity, check_affinity, checked_blocks
from tiebench.codes.packing import as_words, check_bits, check_packed
from tiebench.counting.histograms import share_queries
from tiebench.metric_table import entries
from tiebench.rankings.in_order import Ranked
from tiebench.rankings.ties import check_normaliser
from tiebench.search.neighbours import distances_to
from tiebench.values import integers

FILE = "file"
IN_FILE_ORDER, IN_ORDER = "_in_file_order", "_in_order"
_PAIRS_AT_ONCE = 1 << 20  # of a query and an item, whose affinities are held


def check_order(order: ArrayLike, items: int) -> NDArray[np.int64]:
    """The order of a database: "file", or places 0 .. N - 1, each once, the first item first; int64 (N,).

    Raises ValueError, one line, for anything else.
    """
    if isinstance(order, str):
        if order != FILE:
            raise ValueError(f"order must be {FILE!r} or an array of {items} places, not {order!r}")
        return np.arange(items)
    places = integers(order, "order")
    if places.shape != (items,) or not np.array_equal(np.sort(places), np.arange(items)):
        raise ValueError(f"order must hold each of 0 to {items - 1} once, shape ({items},)")
    return places.astype(np.int64)


def score_in_order(
    query: ArrayLike,
    database: ArrayLike,
    bits: int,
    affinity: Affinity,
    order: ArrayLike = FILE,
    at: int | Sequence[int] = (),
    ap_at_normaliser: str = "hits",
    threads: int = 1,
    only: Collection[str] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Metrics of the ranking by Hamming distance, then by place in an order of the database.

    Parameters
    ----------
    query, database
        Packed codes, uint8 (Q, ceil(b/8)) and (N, ceil(b/8)).
    bits
        b, 1 to 1024.
    affinity
        One of `tiebench.affinities`, of these queries and items.
    order
        "file", the items as they stand; or a permutation of the database, int (N,): of two tied items, the
        one that it names first is ranked first.
    at, ap_at_normaliser, threads
        As of `tiebench.score`.
    only
        Names of metrics, as "ap@100"; all that have a range over tie orders by default.

    Returns
    -------
    dict
        Name of a metric -> float64 (Q,). Each value is one of those whose mean over orders, minimum and
        maximum `tiebench.score` returns.

    Raises
    ------
    ValueError
        Codes, labels or an order that do not fit.
    """
    bits = check_bits(bits)
    query, database = check_packed(query, bits, "query codes"), check_packed(database, bits, "database codes")
    levels = check_affinity(affinity, len(query), len(database))
    order = check_order(order, len(database))
    codes, words = as_words(query), np.ascontiguousarray(as_words(database).T)
    block = checked_blocks(affinity, len(database))
    step = max(1, _PAIRS_AT_ONCE // len(database))
    found: dict[int, dict[str, np.ndarray]] = {}

    def score(low, high):
        for begin in range(low, high, step):
            end = min(begin + step, high)
            ranked = _ranked(codes[begin:end], words, bits, block(begin, end), levels, order)
            found[begin] = _evaluate(ranked, at, ap_at_normaliser, only)

    share_queries(score, len(query), threads)
    parts = [found[begin] for begin in sorted(found)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _evaluate(ranked, at, ap_at_normaliser, only):
    """Metrics of some queries: name -> float64 (q,)."""
    check_normaliser(ap_at_normaliser)
    values = {}
    for metric, value in entries(at):
        name = metric.spell(value)
        if metric.in_order is not None and (only is None or name in only):
            options = {"normaliser": ap_at_normaliser} if metric.takes_normaliser else {}
            values[name] = metric.in_order(ranked, *([] if value is None else [value]), **options)
    return values


def _ranked(codes, words, bits, level, levels, order):
    """`Ranked` of some queries: codes uint64 (q, W); words (W, N); level uint8 (q, N), of `levels`."""
    items = np.stack([np.count_nonzero(level == one, axis=1) for one in range(len(levels))], axis=1)
    width = max(1, int(items[:, 1:].sum(axis=1).max()))
    ranks, indices = np.ones((len(codes), width), np.int64), np.zeros((len(codes), width), np.uint8)
    through = np.empty((len(codes), bits + 1), np.int64)
    distances = np.empty(words.shape[1], np.uint16)
    for q, code in enumerate(codes):
        counts = distances_to(code, words, bits, distances)
        np.cumsum(counts, out=through[q])
        if NUMBA:
            from tiebench.search import one_query

            one_query.rank_relevant(distances, level[q], order, bits, ranks[q], indices[q])
            continue
        found = level[q, order[np.argsort(distances[order], kind="stable")]]
        places = np.flatnonzero(found)
        ranks[q, : len(places)], indices[q, : len(places)] = places + 1, found[places]
    return Ranked(ranks, levels[indices], levels, items, through)
