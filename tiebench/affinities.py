"""Affinities of queries with a database: what a pair is worth, as levels, block by block."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.values import (
    as_array,
    classes,
    form,
    integers,
    is_text,
    several_labels,
)


@dataclass(frozen=True)
class SparseJudgements:
    """Affinities given as a list of (query, item, value), as relevance judgements are; 0 for all other pairs.

    Parameters
    ----------
    rows, columns : integers (m,)
        Places of a query and of a database item. No pair may be listed twice.
    values : integers (m,)
        The affinity, 0 or more.
    shape : (Q, N)
        Numbers of queries and of database items.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        names = ("rows", "columns", "values")
        given = {name: integers(getattr(self, name), f"{name} of judgements") for name in names}
        for name, array in given.items():
            if array.ndim != 1:
                raise ValueError(f"{name} of judgements must be integers of shape (m,), not {form(array)}")
            object.__setattr__(self, name, array.astype(np.int64))
        if len({len(array) for array in given.values()}) != 1:
            raise ValueError(
                f"judgements have {len(self.rows)} rows, {len(self.columns)} columns and "
                f"{len(self.values)} values: each needs all three"
            )
        object.__setattr__(self, "shape", tuple(self.shape))
        for name, size in zip(("rows", "columns"), self.shape):
            places = getattr(self, name)
            if places.size and not 0 <= places.min() <= places.max() < size:
                wrong = int(places[(places < 0) | (places >= size)][0])
                raise ValueError(f"{name} of judgements must be 0 to {size - 1}, not {wrong}")
        if self.values.min(initial=0) < 0:
            raise ValueError(f"values of judgements must not be negative, as {self.values.min()} is")
        pairs = np.sort(self.rows * self.shape[1] + self.columns)
        if twice := pairs[1:][pairs[1:] == pairs[:-1]][:1].tolist():
            row, column = divmod(twice[0], self.shape[1])
            raise ValueError(f"query {row} and item {column} are judged twice")

    @functools.cached_property
    def levels(self) -> NDArray[np.int64]:
        """The affinity values, int64 (V,), ascending, 0 among them."""
        return np.unique(np.append(self.values, [0, 1]))

    def block(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Level indices of queries begin..end-1 against the whole database: uint8 (end - begin, N)."""
        some = (self.rows >= begin) & (self.rows < end)
        block = np.zeros((end - begin, self.shape[1]), np.uint8)
        block[self.rows[some] - begin, self.columns[some]] = np.searchsorted(self.levels, self.values[some])
        return block


MAX_AFFINITY = 255  # gains are 2^affinity: sums of these stay far from the end of double precision


def check_levels(levels: NDArray[np.int64]) -> None:
    """Check that affinity values are within 0 to 255.

    Parameters
    ----------
    levels : int64 (V,)
        Ascending.

    Raises
    ------
    ValueError
        For any other values.
    """
    if levels[0] != 0 or levels[-1] > MAX_AFFINITY:
        raise ValueError(f"affinities must be 0 to {MAX_AFFINITY}, not {levels[0]} to {levels[-1]}")


@dataclass(frozen=True)
class EqualLabels:
    """Affinity 1 for the same class, else 0.

    Parameters
    ----------
    query, database : integers or strings (Q,) and (N,)
        Strings are kept as the integers 0, 1, ... of the queries' sorted classes and -1 of any other class;
        see `values.classes`.
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
    """Affinity = number of shared labels.

    Parameters
    ----------
    query, database : 0/1 (Q, L) and (N, L)
        Any real or bool dtype.
    binary : bool
        Affinity 1 for at least one shared label instead.
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

    @functools.cached_property
    def levels(self) -> NDArray[np.int64]:
        """The affinity values, int64 (V,), ascending: up to the most that a query and an item can share."""
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

    Parameters
    ----------
    compute : function
        compute(begin, end) returns non-negative integers (end - begin, N), each one of `values`.
    values : sequence of int
        All affinities that there can be.
    """

    compute: Callable[[int, int], ArrayLike]
    values: Sequence[int]

    @property
    def levels(self) -> NDArray[np.int64]:
        """The affinity values, int64 (V,), ascending, 0 among them."""
        return np.unique(integers(np.array([0, *self.values]), "values").astype(np.int64))

    def block(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Level indices of queries begin..end-1 against the whole database: uint8 (end - begin, N)."""
        affinity = as_array(self.compute(begin, end), "affinities")
        levels = self.levels
        index = np.minimum(np.searchsorted(levels, affinity), len(levels) - 1)
        if not np.array_equal(levels[index], affinity):
            raise ValueError(f"affinities must be among {levels.tolist()}")
        return index.astype(np.uint8)


Affinity: TypeAlias = EqualLabels | SharedLabels | AffinityBlocks | SparseJudgements


def check_affinity(affinity: Affinity, queries: int, items: int) -> NDArray[np.int64]:
    """Levels of an affinity, if it is one of so many queries and items.

    Returns
    -------
    int64 (V,)
        Ascending affinity values.

    Raises
    ------
    ValueError
        If sizes do not fit, or for levels beyond 0 to 255.
    """
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
