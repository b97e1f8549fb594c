"""Codes to scores in one call: every metric of `tiebench.metrics`, per query and averaged.

`score` takes codes and labels in any form; `score_codes` packed codes and any affinity; `score_histograms`
joint histograms, of a whole database or merged from its parts.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tiebench import metrics
from tiebench.affinities import Affinity
from tiebench.codes.inputs import check_shapes, label_affinity, packed_codes
from tiebench.counting.histograms import JointHistograms, joint_histograms
from tiebench.rankings import exact, radius
from tiebench.search import in_order
from tiebench.values import as_array, cutoffs, is_tensor

# Random orders that that of a file is compared with.
RANDOM_ORDERS = 20
# Standard deviations of random orders. Means over few queries have long tails, and several metrics are looked
# at: of 60 shuffled files the farthest was 4.6 off. One that is sorted by class is hundreds off.
FAR = 10.0
_LEAST = 0.001  # what tables do not print is not worth a warning
_CELLS_AT_ONCE = 1 << 16  # of a query and a distance: half a megabyte an array, which caches hold


class Scores(NamedTuple):
    """What scoring returns.

    Parameters
    ----------
    means : dict
        Metric -> float, and the counts "queries", "database", "bits" and "queries_without_relevant" -> int.
    per_query : dict
        Metric -> float64 (Q,).
    curves : dict
        Name -> array. Over the distances 0..b, (b + 1,): of everything within a radius, "precision",
        "precision_or_0", "recall", "f1", "candidates" and "empty" (`radius.lookup_curves`); "relevant_at" and
        "irrelevant_at", the shares of such pairs at a distance. Over ranks: "cuts", K, and "precision_at",
        the mean tie-aware precision among the first K.
    """

    means: dict[str, float]
    per_query: dict[str, np.ndarray]
    curves: dict[str, np.ndarray]


def score(
    query: ArrayLike,
    database: ArrayLike,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    at: int | Sequence[int] = (),
    ap_at_normaliser: str = "hits",
    threads: int = 1,
    bits: int | None = None,
    order: ArrayLike | None = None,
) -> Scores:
    """Score binary codes with every tie-aware metric.

    docs/metrics.md defines each. Metrics: He et al., CVPR 2018 (arXiv 1705.08562); McSherry and Najork, ECIR
    2008.

    Parameters
    ----------
    query, database : arrays, torch tensors or nested lists (Q, b) and (N, b)
        Bool, or numbers all in {0, 1} or all in {-1, +1}. Or, with `bits`, packed: uint8 (Q, ceil(b/8)), as
        `numpy.packbits(codes, axis=1)` makes them. Codes on a CUDA device are counted there, all others by
        the CPU kernels, to the same integers.
    query_labels, database_labels : integers or strings (Q,) and (N,), or 0/1 (Q, labels) and (N, labels)
        Classes: relevant means equal. Of several labels: relevant means at least one shared label, the
        affinity that NDCG weighs is their number.
    at : int or sequence of int
        Cutoffs K, for "ap@K", "ndcg@K", "recall@K" and the like.
    ap_at_normaliser : str
        What AP@K divides by: "hits" (relevant items among the first K), "min" (min(K, relevant items)) or
        "relevant" (all relevant items).
    threads : int
        They share the queries on the CPU; the scores do not depend on it.
    bits : int, optional
        b of packed codes.
    order : "file" or int (N,), optional
        Also score one order of tied items, beside the mean over all: "file", what a program reports that
        breaks ties by position, as <metric>_in_file_order; or a permutation of the database, its first item
        first, as <metric>_in_order. Counted on the CPU.

    Returns
    -------
    `Scores`

    Raises
    ------
    ValueError
        One line, for codes or labels of other forms, or that do not fit together.

    Examples
    --------
    >>> import tiebench
    >>> query, database = [[0, 0, 1]], [[0, 0, 1], [0, 1, 1], [1, 0, 1]]
    >>> scores = tiebench.score(query, database, [7], [7, 7, 8])
    >>> {name: round(scores.means[name], 4) for name in ("ap_min", "ap", "ap_max")}
    {'ap_min': 0.8333, 'ap': 0.9167, 'ap_max': 1.0}
    """
    at = cutoffs(at)  # before anything is counted
    on_gpu = _on_one_gpu(query, database)
    one: Any = query if on_gpu else as_array(query, "query")
    two: Any = database if on_gpu else as_array(database, "database")
    labels = as_array(query_labels, "query_labels"), as_array(database_labels, "database_labels")
    check_shapes(one, two, *labels)
    if on_gpu:
        from tiebench.counting import on_device  # torch is loaded already: these are its tensors

        one, two, bits = on_device.packed_codes(one, two, bits)
        affinity = label_affinity(*labels)
        histograms = on_device.joint_histograms(one, two, bits, affinity)
        scores = score_histograms(histograms, at, ap_at_normaliser)
        one, two = (codes if order is None else as_array(codes) for codes in (one, two))
    else:
        one, two, bits = packed_codes(one, two, bits)
        affinity = label_affinity(*labels)
        scores = score_codes(one, two, bits, affinity, at, ap_at_normaliser, threads)
    return _with_order(scores, one, two, bits, affinity, order, at, ap_at_normaliser, threads)


def _on_one_gpu(query, database):
    return is_tensor(query) and is_tensor(database) and query.is_cuda and query.device == database.device


def score_codes(
    query: np.ndarray,
    database: np.ndarray,
    bits: int,
    affinity: Affinity,
    at: int | Sequence[int] = (),
    ap_at_normaliser: str = "hits",
    threads: int = 1,
    order: ArrayLike | None = None,
) -> Scores:
    """`score` of packed codes and any affinity, of labels or not.

    Parameters
    ----------
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        Packed codes.
    bits : int
        b.
    affinity : `Affinity`
        One of `tiebench.affinities`.
    at, ap_at_normaliser, threads, order
        As of `score`.

    Raises
    ------
    ValueError
        For codes or labels that do not fit together.
    """
    histograms = joint_histograms(query, database, bits, affinity, threads=threads)
    scores = score_histograms(histograms, at, ap_at_normaliser)
    return _with_order(scores, query, database, bits, affinity, order, at, ap_at_normaliser, threads)


def _with_order(scores, query, database, bits, affinity, order, at, ap_at_normaliser, threads):
    """`Scores` with the metrics of one order of tied items; as they are without one."""
    if order is None:
        return scores
    found = in_order.score_in_order(query, database, bits, affinity, order, at, ap_at_normaliser, threads)
    ending = in_order.IN_FILE_ORDER if isinstance(order, str) else in_order.IN_ORDER
    per_query = {name + ending: values for name, values in found.items()}
    means = {name: float(values.mean()) for name, values in per_query.items()}
    return scores._replace(means=scores.means | means, per_query=scores.per_query | per_query)


def fault_of_order(
    scores: Scores,
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
    scores : `Scores`
        What `score_codes` returns of the same codes with order="file".
    query, database, bits, affinity, at, ap_at_normaliser, threads
        As of `score_codes`.

    Returns
    -------
    str
        One line, or "".
    """
    names = [
        name.removesuffix(in_order.IN_FILE_ORDER)
        for name in scores.means
        if name.endswith(in_order.IN_FILE_ORDER)
    ]
    rng, squares = np.random.default_rng(0), dict.fromkeys(names, 0.0)
    for _ in range(RANDOM_ORDERS):
        order = rng.permutation(len(database))
        found = in_order.score_in_order(
            query, database, bits, affinity, order, at, ap_at_normaliser, threads, names
        )
        for name, values in found.items():
            squares[name] += (float(values.mean()) - scores.means[name]) ** 2 / RANDOM_ORDERS
    spread = {name: square**0.5 for name, square in squares.items()}
    off = {name: abs(scores.means[name + in_order.IN_FILE_ORDER] - scores.means[name]) for name in names}
    far = [name for name in names if off[name] > max(FAR * spread[name], _LEAST)]
    if not far:
        return ""
    name = max(far, key=lambda name: off[name] / max(metrics.resolve(name)[0].high, 1.0))
    seen, mean = scores.means[name + in_order.IN_FILE_ORDER], scores.means[name]
    return (
        f"the order of the file moves {len(far)} of {len(names)} metrics beyond random orders, {name} most: "
        f"{seen:.3f} in it, {mean:.3f} ± {spread[name]:.4f} in random orders; is the database sorted by "
        "class? Report the mean, or shuffle it"
    )


def score_histograms(
    histograms: JointHistograms, at: int | Sequence[int] = (), ap_at_normaliser: str = "hits"
) -> Scores:
    """`score` of `JointHistograms`: those of a whole database, or merged from its parts."""
    at = cutoffs(at)
    queries, items = len(histograms.counts), int(histograms.counts[0].sum())
    parts: dict[str, list[Any]] = {}
    for some in some_queries(histograms):
        for name, values in metrics.evaluate(some, at, ap_at_normaliser).items():
            parts.setdefault(name, []).append(values)
    per_query = {name: np.concatenate(values) for name, values in parts.items()}
    means = {name: float(np.mean(values)) for name, values in per_query.items()}
    means |= {
        "queries": queries,
        "database": items,
        "bits": histograms.bits,
        "queries_without_relevant": exact.queries_without_relevant(histograms),
    }
    return Scores(means, per_query, _curves(histograms, items))


def some_queries(histograms: JointHistograms) -> Iterator[JointHistograms]:
    """Histograms of some queries at a time: the metrics' temporaries are larger than what they come from."""
    step = max(1, _CELLS_AT_ONCE // (histograms.bits + 1))
    for begin in range(0, len(histograms.counts), step):
        yield JointHistograms(histograms.levels, histograms.counts[begin : begin + step])


def _curves(histograms, items):
    relevant, irrelevant = exact.distance_shares(histograms)
    cuts = _cuts(items)
    return {
        **radius.lookup_curves(histograms),
        "relevant_at": relevant,
        "irrelevant_at": irrelevant,
        "cuts": cuts,
        "precision_at": exact.precision_at_curve(histograms, cuts),
    }


def _cuts(items):
    """Ranks evenly spaced on a logarithmic axis, six to a decade, from 1 to the last; int64."""
    steps = np.unique(np.round(10 ** (np.arange(6 * np.ceil(np.log10(items))) / 6)).astype(np.int64))
    return np.append(steps[steps < items], items)
