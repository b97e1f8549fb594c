"""The base of affinities that follow from the number of labels that two items share."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from datasets.affinity import Affinity, Inputs, indices
from datasets.specification import present


class SharedLabelsAffinity(Affinity):
    """Affinity of multi-hot labels: the number of labels in common, cut at 1 where any label decides."""

    labels = ("multi-hot",)

    def __init__(self, multi_hot: np.ndarray) -> None:
        """multi_hot: uint8 (n, L), 0 and 1."""
        self.multi_hot = multi_hot
        self.binary = self.decided_by_labels == "any"
        most = 1 if self.binary else int(multi_hot.sum(axis=1, dtype=np.int64).max(initial=0))
        self.levels = tuple(range(most + 1))

    @classmethod
    def make(cls, spec: Mapping, inputs: Inputs) -> Self:
        labels = present(inputs.labels, "affinity: labels")
        if labels.size and (labels.min() < 0 or labels.max() > 1):
            raise ValueError("affinity: multi-hot labels must be 0 or 1")
        return cls(labels.astype(np.uint8, copy=False))

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        rows, columns = indices(rows, "rows"), indices(columns, "columns")
        # float32 goes through BLAS and counts exactly up to 2^24 labels.
        first, second = self.multi_hot[rows].astype(np.float32), self.multi_hot[columns].astype(np.float32)
        shared = first @ second.T
        return (shared > 0).astype(np.int64) if self.binary else shared.astype(np.int64)

    def scoring(self, query: np.ndarray, database: np.ndarray, keep: bool = False):
        from tiebench.affinities import SharedLabels

        return SharedLabels(self.multi_hot[query], self.multi_hot[database], self.binary)
