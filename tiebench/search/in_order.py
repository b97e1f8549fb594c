"""Scores of codes whose ties are broken by position: what a program reports that sorts items stably.

Such a program ranks by (Hamming distance, position in the database). One counting sort a query finds the
ranks of the relevant items; nothing of size Q x N is held.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench import metrics
from tiebench._compiled import NUMBA
from tiebench.affinities import Affinity, check_affinity, checked_blocks
from tiebench.codes.packing import as_words, check_bits, check_packed
from tiebench.counting.histograms import share_queries
from tiebench.rankings.in_order import Ranked
from tiebench.search.neighbours import distances_to
from tiebench.values import integers

if TYPE_CHECKING:
    from tiebench.scoring import Scores

FILE = "file"
IN_FILE_ORDER, IN_ORDER = "_in_file_order", "_in_order"
RANDOM_ORDERS = 5
# Standard deviations of random orders. Of one estimated from 5 of them, about a known mean, one shuffled file
# in 500 is farther off (Student's t of 5 degrees of freedom), in each metric.
FAR = 6.0
_LEAST = 0.001  # what tables do not print is not worth a warning
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
            found[begin] = metrics.evaluate_in_order(ranked, at, ap_at_normaliser, only)

    share_queries(score, len(query), threads)
    parts = [found[begin] for begin in sorted(found)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


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


def fault_of_order(
    scores: "Scores",
    query: np.ndarray,
    database: np.ndarray,
    bits: int,
    affinity: Affinity,
    at: int | Sequence[int] = (),
    ap_at_normaliser: str = "hits",
    threads: int = 1,
) -> str:
    """One line on the metric that the order of the file moves farthest from its mean; "" if none is far.

    Far is more than `FAR` standard deviations of random orders, and 0.001. The expectation of a random order
    is the exact mean, so the deviation is that of `RANDOM_ORDERS` shuffles of the database from it. Small
    databases, where any order is far from the mean, are not warned of.

    Parameters
    ----------
    scores
        What `score_codes` returns of the same codes with order="file".
    query, database, bits, affinity, at, ap_at_normaliser, threads
        As of `score_in_order`.

    Returns
    -------
    str
        One line, or "".
    """
    names = [name.removesuffix(IN_FILE_ORDER) for name in scores.means if name.endswith(IN_FILE_ORDER)]
    rng, squares = np.random.default_rng(0), dict.fromkeys(names, 0.0)
    for _ in range(RANDOM_ORDERS):
        order = rng.permutation(len(database))
        found = score_in_order(query, database, bits, affinity, order, at, ap_at_normaliser, threads, names)
        for name, values in found.items():
            squares[name] += (float(values.mean()) - scores.means[name]) ** 2 / RANDOM_ORDERS
    spread = {name: square**0.5 for name, square in squares.items()}
    off = {name: abs(scores.means[name + IN_FILE_ORDER] - scores.means[name]) for name in names}
    far = [name for name in names if off[name] > max(FAR * spread[name], _LEAST)]
    if not far:
        return ""
    name = max(far, key=lambda name: off[name] / max(metrics.resolve(name)[0].high, 1.0))
    return (
        f"the order of the file moves {len(far)} of {len(names)} metrics beyond random orders, {name} most: "
        f"{scores.means[name + IN_FILE_ORDER]:.3f} in it, {scores.means[name]:.3f} ± {spread[name]:.4f} in "
        "random orders; is the database sorted by class? Report the mean, or shuffle it"
    )
