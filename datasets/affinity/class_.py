"""1 for two items of the same class, else 0."""

from collections.abc import Mapping

import numpy as np

from datasets.affinity import Affinity, Inputs, indices
from datasets.specification import present


class SameClass(Affinity):
    """See the module."""

    labels = ("classes",)
    decided_by_labels = "equal"
    levels = (0, 1)

    def __init__(self, classes: np.ndarray) -> None:
        """classes: int64 (n,)."""
        self.classes = classes

    @classmethod
    def make(cls, spec: Mapping, inputs: Inputs) -> "SameClass":
        return cls(present(inputs.labels, "affinity: labels").astype(np.int64, copy=False))

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        first, second = self.classes[indices(rows, "rows")], self.classes[indices(columns, "columns")]
        return (first[:, None] == second[None, :]).astype(np.int64)

    def scoring(self, query: np.ndarray, database: np.ndarray, keep: bool = False):
        from tiebench.affinities import EqualLabels

        return EqualLabels(self.classes[query], self.classes[database])
