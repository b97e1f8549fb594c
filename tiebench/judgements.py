"""Relevance judgements as a sparse list: the affinity of queries and items that no labels express."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tiebench.texts import LARGEST


@dataclass(frozen=True)
class SparseJudgements:
    """Affinities given as a list of (query, item, value), as relevance judgements are; 0 for all other pairs.

    rows, columns, values: integers (m,): places of a query and of a database item, and the affinity, 0 or
    more. No pair may be listed twice. shape: (Q, N), the numbers of queries and of database items.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        given = {name: np.asarray(getattr(self, name)) for name in ("rows", "columns", "values")}
        for name, array in given.items():
            if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
                raise ValueError(
                    f"{name} of judgements must be integers of shape (m,), not {array.dtype} {array.shape}"
                )
            if array.dtype == np.uint64 and array.max(initial=0) > LARGEST:
                raise ValueError(
                    f"{name} of judgements must not be larger than 2^63 - 1, as {array.max()} is"
                )
            object.__setattr__(self, name, array.astype(np.int64))
        if len({len(array) for array in given.values()}) != 1:
            raise ValueError(
                f"judgements have {len(self.rows)} rows, {len(self.columns)} columns and "
                f"{len(self.values)} values: each needs all three"
            )
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

    @property
    def levels(self) -> NDArray[np.int64]:
        """The affinity values, int64 (V,), ascending, 0 among them."""
        return np.unique(np.append(self.values, [0, 1]))

    def block(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Level indices of queries begin..end-1 against the whole database: uint8 (end - begin, N)."""
        some = (self.rows >= begin) & (self.rows < end)
        block = np.zeros((end - begin, self.shape[1]), np.uint8)
        block[self.rows[some] - begin, self.columns[some]] = np.searchsorted(self.levels, self.values[some])
        return block
