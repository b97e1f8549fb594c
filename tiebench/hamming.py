"""Packed codes to joint histograms of Hamming distance and affinity, without ever holding a Q x N matrix.

The histograms hold everything that ranking metrics can depend on: items at one distance are tied, and a
metric that averages over the orders of ties only needs to know how many items of each affinity a tie holds
(McSherry and Najork 2008; He et al. 2018, Proposition 1). `tiebench.exact` computes the metrics from them.
Compiled kernels count where Numba is installed; without it NumPy does, to the same integers.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench._compiled import NUMBA
from tiebench.judgements import SparseJudgements
from tiebench.ties import Ties, from_counts
from tiebench.values import as_array, classes, form, hint_of_packed, integer, is_text, several_labels

if NUMBA:
    from tiebench import _bitslice

MAX_CODE_BITS = 1024
SLICED_BITS = 128  # up to which the bit-sliced kernel counts, where Numba is installed
MAX_AFFINITY = 255  # gains are 2^affinity: sums of these stay far from the end of double precision
_BLOCK_PAIRS = 1 << 22  # pairs whose affinities are held at once where they are given block by block


def pack(codes: ArrayLike, name: str = "codes") -> NDArray[np.uint8]:
    """Pack codes to bytes as `numpy.packbits(bits, axis=1)` does.

    codes: (n, b) bool, or numbers all in {0, 1}, or all in {-1, +1}; bit 1 stands for +1. name: what messages
    call them. Returns uint8 (n, ceil(b / 8)). Raises ValueError for anything else.
    """
    given = as_array(codes, name)
    if given.ndim != 2:
        raise ValueError(f"{name} must be a matrix (n, bits), not an array of shape {given.shape}")
    ones = given
    if given.dtype != bool:
        if given.dtype.kind not in "iuf":
            raise ValueError(f"{name} must hold numbers, not {given.dtype}")
        ones = given == 1
        if not (np.all(ones | (given == 0)) or np.all(ones | (given == -1))):
            refuse_unpacked(given, name)
    return np.packbits(ones, axis=1)


def refuse_unpacked(codes: Any, name: str) -> NoReturn:
    """Raise the ValueError of codes, an array or a tensor, that are neither {0, 1} nor {-1, +1}."""
    kind = str(codes.dtype).removeprefix("torch.")
    hint = f"; of real-valued outputs, score the signs: {name} > 0"
    if not kind.startswith(("float", "bfloat")):
        hint = "; packed codes are uint8 and need `bits`, the number of bits of a code"
    elif bool((codes != codes).any()):
        hint = "; there is a NaN, which has no sign"
    raise ValueError(
        f"unpacked {name} must all be in {{0, 1}} or all in {{-1, +1}}, not {kind} of others{hint}"
    )


def check_bits(bits: Any) -> int:
    """The number of bits of a code, 1 to 1024. Raises ValueError for all else."""
    return integer(bits, "bits", 1, MAX_CODE_BITS)


def check_packed(codes: ArrayLike, bits: int, name: str = "codes") -> NDArray[np.uint8]:
    """Check packed codes: uint8 (n, ceil(bits / 8)), padding bits zero, 1 <= bits <= 1024.

    Returns them C-contiguous. Raises ValueError that names the fault and `name`.
    """
    codes, bits = as_array(codes, name), check_bits(bits)
    width = -(-bits // 8)
    if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != width:
        raise ValueError(
            f"{name} of {bits} bits must be uint8 of shape (n, {width}), not {form(codes)}"
            f"{hint_of_packed(codes, bits)}"
        )
    if len(codes) == 0:
        raise ValueError(f"{name} holds no codes")
    if bits % 8 and np.any(codes[:, -1] & (0xFF >> (bits % 8))):
        raise ValueError(f"{name} has bits set beyond bit {bits}: is `bits` right?")
    return np.ascontiguousarray(codes)


def check_levels(levels: NDArray[np.int64]) -> None:
    """Raise ValueError unless ascending affinity values are within 0 to 255."""
    if levels[0] != 0 or levels[-1] > MAX_AFFINITY:
        raise ValueError(f"affinities must be 0 to {MAX_AFFINITY}, not {levels[0]} to {levels[-1]}")


@dataclass(frozen=True)
class EqualLabels:
    """Affinity 1 for the same class, else 0.

    query (Q,), database (N,): integers, or strings, kept as the integers 0, 1, ... of the queries' sorted
    classes and -1 of any other class; see `values.classes`.
    """

    query: np.ndarray
    database: np.ndarray

    def __post_init__(self) -> None:
        given = {name: classes(getattr(self, name), f"{name} labels") for name in ("query", "database")}
        strings = [name for name, labels in given.items() if is_text(labels)]
        if len(strings) == 1:
            (other,) = set(given) - set(strings)
            raise ValueError(
                f"{strings[0]} labels are strings but {other} labels are {given[other].dtype}: "
                "both must be of one kind"
            )
        if strings:
            given = dict(zip(given, _numbered(*given.values())))
        for name, labels in given.items():
            object.__setattr__(self, name, labels)

    @property
    def levels(self) -> NDArray[np.int64]:
        """The affinity values, int64 (V,), ascending."""
        return np.arange(2)

    def block(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Level indices of queries begin..end-1 against the whole database: uint8 (end - begin, N)."""
        return (self.query[begin:end, None] == self.database[None, :]).view(np.uint8)


def _numbered(query, database):
    """Classes as integers, which depend on the queries alone: parts of a database then agree on them."""
    names, numbers = np.unique(query, return_inverse=True)
    place = np.minimum(np.searchsorted(names, database), len(names) - 1)
    return numbers.astype(np.int64), np.where(names[place] == database, place, -1)


@dataclass(frozen=True)
class SharedLabels:
    """Affinity = number of shared labels, or, with `binary`, 1 for at least one shared label.

    query: 0/1 (Q, L); database: 0/1 (N, L), any real or bool dtype.
    """

    query: np.ndarray
    database: np.ndarray
    binary: bool = False

    def __post_init__(self) -> None:
        for name in ("query", "database"):
            object.__setattr__(self, name, several_labels(getattr(self, name), f"{name} labels"))
        if self.query.shape[1] != self.database.shape[1]:
            raise ValueError(
                f"query and database must have the same labels: {self.query.shape[1]} against "
                f"{self.database.shape[1]}"
            )

    @property
    def levels(self) -> NDArray[np.int64]:
        """The affinity values, int64 (V,), ascending: up to the most labels that a query has."""
        most = int(min(self.query.sum(1).max(initial=0), self.database.sum(1).max(initial=0)))
        return np.arange(2 if self.binary else max(most, 1) + 1)

    def block(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Level indices of queries begin..end-1 against the whole database: uint8 (end - begin, N)."""
        # float32 counts labels exactly up to 2^24 and uses the fast matrix product.
        shared = self.query[begin:end].astype(np.float32) @ self.database.astype(np.float32).T
        return np.minimum(shared, len(self.levels) - 1).astype(np.uint8)


@dataclass(frozen=True)
class AffinityBlocks:
    """Affinities computed on demand, for what labels cannot express, such as levels of distance.

    compute(begin, end) returns non-negative integers (end - begin, N), each one of `values`.
    """

    compute: Callable[[int, int], ArrayLike]
    values: Sequence[int]

    @property
    def levels(self) -> NDArray[np.int64]:
        """The affinity values, int64 (V,), ascending, 0 among them."""
        return np.unique(np.array([0, *self.values], np.int64))

    def block(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Level indices of queries begin..end-1 against the whole database: uint8 (end - begin, N)."""
        affinity = as_array(self.compute(begin, end), "affinities")
        levels = self.levels
        index = np.minimum(np.searchsorted(levels, affinity), len(levels) - 1)
        if not np.array_equal(levels[index], affinity):
            raise ValueError(f"affinities must be among {levels.tolist()}")
        return index.astype(np.uint8)


Affinity: TypeAlias = EqualLabels | SharedLabels | AffinityBlocks | SparseJudgements


@dataclass(frozen=True)
class JointHistograms:
    """counts[q, v, d] = number of database items at distance d whose affinity to query q is levels[v].

    levels: int64 (V,), ascending from 0; counts: int64 (Q, V, b + 1).
    """

    levels: np.ndarray
    counts: np.ndarray
    memo: dict[str, Any] = field(
        default_factory=dict, repr=False, compare=False
    )  # of metrics, for one another

    def __post_init__(self) -> None:
        for name in ("levels", "counts"):
            object.__setattr__(self, name, as_array(getattr(self, name), name))

    @property
    def bits(self) -> int:
        """b, the number of bits of a code."""
        return self.counts.shape[2] - 1

    @cached_property
    def ties(self) -> Ties:
        """The ties, a distance each; affinity > 0 is relevant. Most metrics start from them."""
        items = self.counts.sum(axis=1)
        return from_counts(items, items - self.counts[:, 0])


def merge(parts: Iterable[JointHistograms]) -> JointHistograms:
    """Joint histograms of a database from those of its parts: counts add up, so nothing is approximated.

    parts: `JointHistograms` of the same queries against disjoint parts of one database, any number of them.
    A part may lack the higher affinity levels. Returns `JointHistograms`. Raises ValueError if queries or
    bits differ, or if `parts` is empty.
    """
    parts = list(parts)
    if not parts:
        raise ValueError("there are no histograms to merge")
    levels = np.unique(np.concatenate([part.levels for part in parts]))
    queries, _, distances = parts[0].counts.shape
    counts = np.zeros((queries, len(levels), distances), np.int64)
    for part in parts:
        if part.counts.shape[::2] != (queries, distances):
            raise ValueError(
                f"histograms of {len(part.counts)} queries and {part.bits} bits do not belong with those of "
                f"{queries} queries and {distances - 1} bits"
            )
        counts[:, np.searchsorted(levels, part.levels)] += part.counts
    return JointHistograms(levels, counts)


def joint_histograms(
    query: ArrayLike, database: ArrayLike, bits: int, affinity: Affinity, threads: int = 1
) -> JointHistograms:
    """Joint histograms of Hamming distance and affinity, a query at a time against the whole database.

    query: packed codes uint8 (Q, ceil(b/8)); database: uint8 (N, ceil(b/8)); bits: b, 1 to 1024;
    affinity: `EqualLabels`, `SharedLabels`, `SparseJudgements` or `AffinityBlocks`. `threads` splits the
    queries; the counts do not depend on it. Returns `JointHistograms`. Raises ValueError for codes and labels
    that do not fit.

    Memory: the codes once more as bit planes, and the histograms; nothing of size Q x N. Labels and up to 128
    bits are counted by the bit-sliced kernel, all else by one popcount a pair; both need Numba. Without it,
    NumPy counts some queries at a time.
    """
    bits = check_bits(bits)
    query = check_packed(query, bits, "query codes")
    database = check_packed(database, bits, "database codes")
    levels = check_affinity(affinity, len(query), len(database))
    counts = np.zeros((len(query), len(levels), bits + 1), np.int64)
    if not NUMBA:
        count = _numpy_counter(query, database, bits, affinity, counts)
    elif isinstance(affinity, AffinityBlocks) or bits > SLICED_BITS:
        count = _popcount_counter(query, database, bits, affinity, counts)
    else:
        count = _bitslice_counter(query, database, bits, affinity, counts)
    share_queries(count, len(query), threads)
    if isinstance(affinity, SparseJudgements) and NUMBA:
        _move_judged(query, database, affinity, counts)
    return JointHistograms(levels, counts)


def check_affinity(affinity: Affinity, queries: int, items: int) -> NDArray[np.int64]:
    """Levels of an affinity, int64 (V,), if it is one of so many queries and items. Raises ValueError."""
    for name, codes in (("query", queries), ("database", items)):
        labels = getattr(affinity, name, None)
        if labels is not None and len(labels) != codes:
            raise ValueError(f"there are {codes} {name} codes but {len(labels)} {name} labels")
    if isinstance(affinity, SparseJudgements) and affinity.shape != (queries, items):
        raise ValueError(
            f"judgements of {affinity.shape[0]} queries and {affinity.shape[1]} items do not fit "
            f"{queries} query codes and {items} database codes"
        )
    check_levels(affinity.levels)
    return affinity.levels


def share_queries(count: Callable[[int, int], None], queries: int, threads: int) -> None:
    """Call count(begin, end) for parts of the queries, one part for each thread."""
    # Never so few queries that slicing the work costs more than it saves.
    shares = max(1, min(integer(threads, "threads", 1), queries // 64))
    edges = np.linspace(0, queries, shares + 1).astype(int)
    if shares == 1:
        count(0, queries)
        return
    with ThreadPoolExecutor(shares) as pool:
        list(pool.map(count, edges[:-1], edges[1:]))


def _bitslice_counter(query, database, bits, affinity, counts):
    width = -(-bits // 8) * 8
    query_bits = np.unpackbits(query, axis=1).astype(bool)
    query_masks = np.where(query_bits, ~np.uint64(0), np.uint64(0))
    items = len(database)
    if isinstance(affinity, SparseJudgements):  # all as irrelevant; `_move_judged` follows
        planes = _bitslice.slice_bits(database, bits, width)
        none = np.zeros(len(query), np.int64)

        def count_all(low, high):
            _bitslice.count_equal_labels(
                planes, items, query_masks[low:high], none[low:high], none[low:high], bits, counts[low:high]
            )

        return count_all

    if isinstance(affinity, EqualLabels):
        order = _class_order(affinity.database)
        classes = affinity.database[order]
        begin = np.searchsorted(classes, affinity.query, side="left")
        end = np.searchsorted(classes, affinity.query, side="right")
        planes = _bitslice.slice_bits(database.take(order, axis=0), bits, width)

        def count_classes(low, high):
            _bitslice.count_equal_labels(
                planes, items, query_masks[low:high], begin[low:high], end[low:high], bits, counts[low:high]
            )

        return count_classes

    labels = affinity.database.shape[1]
    planes = _bitslice.slice_bits(database, bits, width)
    label_planes = _bitslice.slice_bits(np.packbits(affinity.database, axis=1), labels, labels)
    query_labels = affinity.query.astype(bool)

    def count_labels(low, high):
        _bitslice.count_shared_labels(
            planes,
            items,
            query_masks[low:high],
            label_planes,
            query_labels[low:high],
            counts.shape[1],
            bits,
            counts[low:high],
        )

    return count_labels


def _move_judged(query, database, judgements, counts):
    """Move the judged pairs, which were counted as all others, from level 0 to their own."""
    level = np.searchsorted(judgements.levels, judgements.values)
    for begin in range(0, len(level), _BLOCK_PAIRS >> 4):
        some = slice(begin, begin + (_BLOCK_PAIRS >> 4))
        rows = judgements.rows[some]
        differing = np.bitwise_count(query[rows] ^ database[judgements.columns[some]])
        distance = differing.sum(axis=1, dtype=np.int64)
        np.subtract.at(counts, (rows, 0, distance), 1)
        np.add.at(counts, (rows, level[some], distance), 1)


def _class_order(classes):
    """Items in the order of their classes. NumPy sorts 16-bit integers by radix, six times as fast."""
    low = int(classes.min())
    if int(classes.max()) - low < 1 << 16:
        classes = (classes.astype(np.int64) - low).astype(np.uint16)
    return np.argsort(classes, kind="stable")


def _popcount_counter(query, database, bits, affinity, counts):
    # Imported here: most scores never need it, and loading a compiled kernel takes time.
    from tiebench import _popcount

    query_words, database_words = as_words(query), np.ascontiguousarray(as_words(database).T)
    if isinstance(affinity, (SharedLabels, SparseJudgements)):
        # Judged pairs share no label and are moved later.
        none = np.zeros(len(query), np.uint8)[:, None], np.zeros(len(database), np.uint8)[:, None]
        labels = none if isinstance(affinity, SparseJudgements) else (affinity.query, affinity.database)
        query_labels = as_words(np.packbits(labels[0], axis=1))
        database_labels = np.ascontiguousarray(as_words(np.packbits(labels[1], axis=1)).T)

        def count_labels(low, high):
            _popcount.count_shared_labels(
                query_words[low:high], database_words, query_labels[low:high], database_labels, bits,
                counts[low:high],
            )  # fmt: skip

        return count_labels

    step = max(_popcount.QUERIES, _BLOCK_PAIRS // len(database))
    levels_of = checked_blocks(affinity, len(database))

    def count(low, high):
        for begin in range(low, high, step):
            end = min(begin + step, high)
            levels = levels_of(begin, end)
            _popcount.count_levels(query_words[begin:end], database_words, levels, bits, counts[begin:end])

    return count


def _numpy_counter(query, database, bits, affinity, counts):
    from tiebench import _numpy_counts

    query_words, database_words = as_words(query), np.ascontiguousarray(as_words(database).T)
    levels_of = checked_blocks(affinity, len(database))

    def count(low, high):
        _numpy_counts.count_levels(query_words, database_words, levels_of, bits, counts, low, high)

    return count


def checked_blocks(affinity: Affinity, items: int) -> Callable[[int, int], NDArray[np.uint8]]:
    """`affinity.block`, its shape checked: compiled code reads as many values as there should be."""

    def block(begin, end):
        levels = affinity.block(begin, end)
        if levels.shape != (end - begin, items):
            raise ValueError(
                f"affinities of queries {begin}..{end - 1} have shape {levels.shape}, "
                f"not {(end - begin, items)}"
            )
        return levels

    return block


def as_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Packed codes (n, bytes) as words uint64 (n, W), padded with zeros."""
    packed = as_array(packed, "codes")
    words = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return words.view(np.uint64)
