"""Health of codes: what binary codes make of their bits, and when they count as collapsed.

A ranking metric does not show that a code of 48 bits uses only a few of them. What is measured here needs no
labels: bits that never change, bits that say the same, items that share one code, and the ties that follow.
`tiebench.codes.collapse` has the rule by which codes count as collapsed; docs/health.md explains it.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.codes.collapse import code_counts, collapse_reason, entropy, varying_bits
from tiebench.codes.inputs import check_shapes, label_affinity, packed_codes
from tiebench.codes.packing import check_bits, check_packed
from tiebench.counting.histograms import JointHistograms, joint_histograms
from tiebench.rankings import exact
from tiebench.values import as_array

RANKS = (10, 100, 1000)
RADII = (0, 1, 2)
_ITEMS_AT_ONCE = 1 << 16  # whose bit planes are held at once
_MOST_BIT_PAIRS = 1 << 33  # of items times bits squared: about half a second


class Health(NamedTuple):
    """What `health` measures. Of the database unless it says otherwise; float fields are NaN if undefined.

    Parameters
    ----------
    queries, database, bits : int
        How many of each.
    ones : float64 (b,)
        Share of items whose bit is 1.
    constant_bits, constant_bits_of_queries : int
        Bits that are the same for all items, or for all queries.
    correlation_mean, correlation_max : float
        Of the absolute correlation of any two bits that are not constant, over at most 2^33 / b^2 items,
        evenly spaced (3.7 million of 48 bits, 8,192 of 1,024 bits).
    distinct_codes : int
        How many there are.
    entropy : float
        Of the codes in bits, -sum p log2 p over the shares p of items with each code.
    effective_bits : float
        -log2 sum p^2, the entropy of the event that two items share a code.
    largest_bucket : int
        Items of the most frequent code.
    ties : dict
        Rank -> mean size, over queries, of the tie that holds the rank, NaN beyond the database.
    nearest : dict
        Radius 0, 1, 2 -> share of queries whose nearest items are at this distance.
    ap_range : float
        (mean of ap_max - mean of ap_min) / mean of ap: how much of AP is left to the order of ties.
    """

    queries: int
    database: int
    bits: int
    ones: NDArray[np.float64]
    constant_bits: int
    constant_bits_of_queries: int
    correlation_mean: float
    correlation_max: float
    distinct_codes: int
    entropy: float
    effective_bits: float
    largest_bucket: int
    ties: dict[int, float]
    nearest: dict[int, float]
    ap_range: float

    def collapsed(self, class_counts: ArrayLike | None = None, unused_bits: int = 0) -> str:
        """Why these codes count as collapsed, "" if they do not: see `collapse_reason`."""
        measured = self.bits, self.constant_bits, self.distinct_codes, self.entropy
        return collapse_reason(*measured, class_counts, unused_bits)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values for JSON: "tie@10", "nearest_radius_0", ...; None instead of NaN."""
        plain: dict[str, Any] = {}
        for name, value in self._asdict().items():
            if name == "ties":
                plain |= {f"tie@{rank}": _or_none(size) for rank, size in value.items()}
            elif name == "nearest":
                plain |= {f"nearest_radius_{radius}": _or_none(share) for radius, share in value.items()}
            elif name == "ones":
                plain[name] = value.tolist()
            else:
                plain[name] = _or_none(value)
        return plain


def health(
    query: ArrayLike,
    database: ArrayLike,
    query_labels: ArrayLike | None = None,
    database_labels: ArrayLike | None = None,
    bits: int | None = None,
    threads: int = 1,
) -> Health:
    """Diagnose binary codes: constant, unbalanced and correlated bits, distinct codes, buckets and ties.

    Memory: some 17 bytes an item besides the codes, and one histogram of distances a query.

    Parameters
    ----------
    query, database : arrays or tensors (Q, b) and (N, b)
        In {0, 1} or {-1, +1}, or bool; with `bits` packed as by `numpy.packbits(codes, axis=1)`, uint8 (n,
        ceil(b / 8)).
    query_labels, database_labels : optional
        As of `score`. They serve `Health.ap_range` alone.
    bits : int, optional
        b of packed codes.
    threads : int
        They share the queries; the result does not depend on it.

    Raises
    ------
    ValueError
        One line, for codes or labels that `score` refuses, and for one side's labels alone.
    """
    one, two = as_array(query, "query"), as_array(database, "database")
    if (query_labels is None) != (database_labels is None):
        raise ValueError("query_labels and database_labels go together")
    labelled = query_labels is not None
    labels: tuple[Any, Any] = (None, None)
    if labelled:
        labels = as_array(query_labels, "query_labels"), as_array(database_labels, "database_labels")
    check_shapes(one, two, *labels)
    one, two, bits = packed_codes(one, two, bits)
    if not labelled:
        labels = np.zeros(len(one), np.int64), np.zeros(len(two), np.int64)
    histograms = joint_histograms(one, two, bits, label_affinity(*labels), threads=threads)
    means = None
    if labelled:
        found = exact.average_precision(histograms)
        names = zip(("ap", "ap_min", "ap_max"), (found.expected, found.minimum, found.maximum))
        means = {name: float(values.mean()) for name, values in names}
    return health_of(one, two, histograms, means)


def health_of(
    query: np.ndarray,
    database: np.ndarray,
    histograms: JointHistograms,
    means: Mapping[str, float] | None = None,
) -> Health:
    """`health` of packed codes whose joint histograms are known, of any affinity.

    Parameters
    ----------
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        As `packing.check_packed` wants them.
    histograms : `JointHistograms`
        Theirs, of the whole database.
    means : mapping, optional
        Of `scoring.Scores`, for `Health.ap_range`.
    """
    bits = histograms.bits
    query, database = check_packed(query, bits, "query"), check_packed(database, bits, "database")
    items = len(database)
    ones = _ones(database, bits)
    mean, largest = _correlations(database, bits)
    counts = code_counts(database)
    ties, nearest = _ties(histograms.counts.sum(axis=1))
    return Health(
        queries=len(query),
        database=items,
        bits=bits,
        ones=ones / items,
        constant_bits=int(np.count_nonzero((ones == 0) | (ones == items))),
        constant_bits_of_queries=bits - varying_bits(query),
        correlation_mean=mean,
        correlation_max=largest,
        distinct_codes=len(counts),
        entropy=entropy(counts),
        effective_bits=-math.log2(math.fsum((counts / items) ** 2)) + 0.0,
        largest_bucket=int(counts.max()),
        ties=ties,
        nearest=nearest,
        ap_range=_ap_range(means),
    )


# -- what codes hold ------------------------------------------------------------------------------


def bits_set_together(codes: np.ndarray, bits: int) -> NDArray[np.int64]:
    """Number of items whose bits k and l are both 1, on the diagonal those whose bit k is 1.

    Parameters
    ----------
    codes : uint8 (n, ceil(b/8))
        Packed; popcounts of bit planes are taken 65,536 items at a time.

    Returns
    -------
    int64 (b, b)
    """
    codes, bits = check_packed(codes, bits), check_bits(bits)
    together = np.zeros((bits, bits), np.int64)
    for planes in _bit_planes(codes, bits):
        for bit in range(bits):
            both = np.bitwise_count(planes[bit] & planes[bit:])
            together[bit, bit:] += both.sum(axis=1, dtype=np.int64)
    return together + np.triu(together, 1).T


def _ones(codes, bits):
    """Items whose bit is 1, int64 (b,)."""
    counts = (np.bitwise_count(planes).sum(axis=1, dtype=np.int64) for planes in _bit_planes(codes, bits))
    return sum(counts, np.zeros(bits, np.int64))


def _bit_planes(codes, bits):
    """Some items at a time, as words of one bit of 64 items: uint64 (b, words), 0 beyond the last item."""
    for begin in range(0, len(codes), _ITEMS_AT_ONCE):
        columns = np.ascontiguousarray(codes[begin : begin + _ITEMS_AT_ONCE].T)
        planes = np.zeros((bits, -(-columns.shape[1] // 64) * 8), np.uint8)
        for bit in range(bits):
            packed = np.packbits(columns[bit // 8] & np.uint8(128 >> bit % 8))
            planes[bit, : len(packed)] = packed
        yield planes.view(np.uint64)


def _correlations(codes, bits):
    """Mean and largest absolute Pearson correlation of two bits that vary; NaN for fewer than two."""
    codes = codes[:: -(-len(codes) * bits**2 // _MOST_BIT_PAIRS)]
    items, together = len(codes), bits_set_together(codes, bits)
    ones = np.diagonal(together)
    varying = (ones > 0) & (ones < items)
    if np.count_nonzero(varying) < 2:
        return math.nan, math.nan
    ones = ones[varying]
    # Of integers: two equal bits have a correlation of 1, not of nearly 1.
    variance = (ones * (items - ones)).astype(np.float64)
    covariance = items * together[np.ix_(varying, varying)] - np.outer(ones, ones)
    one, two = np.triu_indices(len(ones), 1)
    found = np.abs(covariance[one, two]) / np.sqrt(variance[one] * variance[two])
    return float(found.mean()), float(found.max())


def _ties(items):
    """Mean size of the tie at each of RANKS, and shares of queries by their nearest items' distance.

    items: int64 (Q, b + 1), database items at each distance.
    """
    through = np.cumsum(items, axis=1)
    queries = np.arange(len(items))
    ties = {}
    for rank in RANKS:
        size = items[queries, np.argmax(through >= rank, axis=1)]
        ties[rank] = float(size.mean()) if rank <= through[0, -1] else math.nan
    distance = np.argmax(items > 0, axis=1)
    return ties, {radius: float(np.mean(distance == radius)) for radius in RADII}


def _ap_range(means):
    if means is None or not means["ap"]:
        return math.nan
    return (means["ap_max"] - means["ap_min"]) / means["ap"]


def _or_none(value):
    return None if isinstance(value, float) and math.isnan(value) else value
