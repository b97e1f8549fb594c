"""Levels of Euclidean distance: that of the smallest threshold that a distance does not exceed, else 0.

Distances are those of what methods see under the protocol: vectors, or what a network makes of images.
Thresholds are percentiles of the distances of all pairs of training items. LabelMe in "Hashing as Tie-Aware
Learning to Rank" (He et al., CVPR 2018).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from datasets.affinity import Affinity, Inputs, indices
from datasets.specification import positive

# Distances are float64: 2 GB of them, which keeps the process under 4 GB.
MOST_PAIRS = 250_000_000
ROWS_AT_ONCE = 1024


class DistanceLevels(Affinity):
    """levels: 0, then the levels of the specification; thresholds: distances, in the order of `percentiles`
    (descending)."""

    needs: ClassVar = {
        "percentiles": "percentiles of the distances of training pairs, descending, as [5, 1, 0.2, 0.1]",
        "levels": "affinity within each of these distances, ascending, as [1, 2, 5, 10]",
    }
    labels = ("classes", "multi-hot", "none")
    from_features = True

    def __init__(
        self,
        features: np.ndarray,
        levels: Sequence[int],
        percentiles: Sequence[float],
        thresholds: Sequence[float],
    ) -> None:
        """features: real (n, d)."""
        self.features = features
        self.levels = (0, *levels)
        self.percentiles = tuple(float(value) for value in percentiles)
        self.thresholds = tuple(float(value) for value in thresholds)

    @classmethod
    def check_values(cls, spec: Mapping) -> None:
        percentiles, levels = spec["percentiles"], spec["levels"]
        for key, values in (("percentiles", percentiles), ("levels", levels)):
            if not isinstance(values, (list, tuple)) or not values:
                raise ValueError(f"affinity: key '{key}' must be a list of numbers, not {values!r}")
        for value in percentiles:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 100:
                raise ValueError(
                    f"affinity: key 'percentiles' must hold numbers between 0 and 100, not {value!r}"
                )
        for value in levels:
            positive(value, "affinity: key 'levels'")
        if len(percentiles) != len(levels):
            raise ValueError(
                f"affinity: {len(percentiles)} percentiles and {len(levels)} levels: each needs the other"
            )
        if any(first <= second for first, second in pairwise(percentiles)):
            raise ValueError(
                f"affinity: key 'percentiles' must descend, as in [5, 1, 0.2, 0.1], not {list(percentiles)}"
            )
        if any(first >= second for first, second in pairwise(levels)):
            raise ValueError(f"affinity: key 'levels' must ascend, as in [1, 2, 5, 10], not {list(levels)}")

    @classmethod
    def make(cls, spec: Mapping, inputs: Inputs) -> "DistanceLevels":
        """Percentiles are those of MATLAB's prctile (Hazen): the k-th of m sorted distances is at
        100 (k - 0.5) / m, with linear interpolation between."""
        features, training = _checked(inputs.features, inputs.training)
        percentiles = tuple(float(value) for value in spec["percentiles"])
        if inputs.measured is None:
            thresholds = _percentiles_of_distances(features, training, percentiles)
        else:
            thresholds = inputs.measured["thresholds"]
            if tuple(inputs.measured["percentiles"]) != percentiles:
                raise ValueError(
                    f"affinity: thresholds are those of percentiles {list(inputs.measured['percentiles'])}, "
                    f"not of {list(percentiles)}: delete affinity.json to measure them again"
                )
        return cls(features, spec["levels"], percentiles, thresholds)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        distances = _distances(self.features, indices(rows, "rows"), indices(columns, "columns"))
        # Ascending thresholds: the first that is not below the distance, or one past the last.
        place = np.searchsorted(self.thresholds[::-1], distances, side="left")
        return np.array([*sorted(self.levels, reverse=True)], np.int64)[place]

    def metadata(self) -> dict:
        measured = {"percentiles": list(self.percentiles), "thresholds": list(self.thresholds)}
        return super().metadata() | measured


def _checked(features: np.ndarray | None, training: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Both, of a protocol: finite vectors, and different items."""
    if features is None or training is None:
        raise ValueError(
            "affinity: kind 'distance_levels' needs the features of the dataset and its training set"
        )
    if len(training) < 2:
        raise ValueError("affinity: kind 'distance_levels' needs at least two training items")
    if len(training) * (len(training) - 1) // 2 > MOST_PAIRS:
        most = int((1 + (1 + 8 * MOST_PAIRS) ** 0.5) / 2)
        raise ValueError(
            f"affinity: kind 'distance_levels' takes thresholds from at most {most} training items, "
            f"not {len(training)}"
        )
    return features, np.sort(indices(training, "training"))


def _distances(features: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Euclidean distances float64 (r, c), each summed over differences on its own.

    |x|^2 + |y|^2 - 2xy would be faster, but loses the small distances that the thresholds are made of, and
    its last digits change with the shape of the block.
    """
    # Importing it takes a third of a second: only affinities from distances pay for it.
    from scipy.spatial.distance import cdist

    return cdist(features[rows].astype(np.float64), features[columns].astype(np.float64))


def _percentiles_of_distances(
    features: np.ndarray, training: np.ndarray, percentiles: tuple[float, ...]
) -> tuple[float, ...]:
    count = len(training)
    distances = np.empty(count * (count - 1) // 2)
    filled = 0
    for first in range(0, count, ROWS_AT_ONCE):
        rows = training[first : first + ROWS_AT_ONCE]
        # Columns from `first` on hold every pair of these rows that was not met before.
        block = _distances(features, rows, training[first:])
        for offset in range(len(rows)):
            later = block[offset, offset + 1 :]
            distances[filled : filled + len(later)] = later
            filled += len(later)
    return tuple(
        float(value) for value in np.percentile(distances, percentiles, method="hazen", overwrite_input=True)
    )
