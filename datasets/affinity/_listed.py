"""The base of affinities that are a list of pairs: a query, an item of the database, a value."""

from typing import ClassVar

import numpy as np

from datasets.affinity import Affinity, indices


class ListedAffinity(Affinity):
    """Affinity of the pairs of a list, 0 of all others. A query comes first: the list is not symmetric."""

    labels = ("classes", "multi-hot", "none")
    of_queries_only: ClassVar[bool] = True

    def __init__(self, query: np.ndarray, database: np.ndarray, values: np.ndarray, items: int) -> None:
        """query, database: int64 (m,) items; values: int64 (m,), 0 or more; items: how many there are."""
        order = np.lexsort((database, query))
        self.query, self.database, self.values = query[order], database[order], values[order]
        self.items = items
        self.levels = tuple(np.unique(np.append(values, [0, 1])).tolist())

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        rows, columns = indices(rows, "rows"), indices(columns, "columns")
        found = np.zeros((len(rows), len(columns)), np.int64)
        of_row = np.zeros(self.items, np.int64)
        of_row[rows]  # raises IndexError for an item that does not exist
        edges = np.searchsorted(self.query, rows), np.searchsorted(self.query, rows, side="right")
        for place, (begin, end) in enumerate(zip(*edges)):
            of_row[self.database[begin:end]] = self.values[begin:end]
            found[place] = of_row[columns]
            of_row[self.database[begin:end]] = 0
        return found

    def scoring(self, query: np.ndarray, database: np.ndarray, keep: bool = False):
        from tiebench.affinities import SparseJudgements

        places = []
        for items, listed in ((query, self.query), (database, self.database)):
            place = np.full(self.items, -1)
            place[items] = np.arange(len(items))
            places.append(place[listed])
        met = (places[0] >= 0) & (places[1] >= 0)
        return SparseJudgements(places[0][met], places[1][met], self.values[met], (len(query), len(database)))
