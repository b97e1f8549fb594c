"""The affinity of items: a non-negative integer for any two of them.

kinds of affinity, as written in a protocol:

- {kind: class}: 1 for items of the same class, else 0
- {kind: shared_label}: 1 for items with at least one label in common, else 0
- {kind: shared_labels}: the number of labels in common
- {kind: distance_levels, percentiles: [5, 1, 0.2, 0.1], levels: [1, 2, 5, 10]}: the level of the smallest
  threshold that the Euclidean distance of the items' features does not exceed, else 0; thresholds are
  percentiles of the distances of all pairs of training items. LabelMe in "Hashing as Tie-Aware Learning to
  Rank" (He et al., CVPR 2018).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from datasets._description import Description
from datasets._specification import kind_of, positive

KINDS: dict[str, tuple[set[str], set[str]]] = {
    "class": (set(), set()),
    "shared_label": (set(), set()),
    "shared_labels": (set(), set()),
    "distance_levels": ({"percentiles", "levels"}, set()),
}
FITTING = {
    "classes": ("class", "distance_levels"),
    "multi-hot": ("shared_label", "shared_labels", "distance_levels"),
    "none": ("distance_levels",),
}
# Distances are float64: 2 GB of them, which keeps the process under 4 GB.
MOST_PAIRS = 250_000_000
ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Affinity:
    """The affinity of any two items of one dataset; made by `make`.

    kind:           one of KINDS
    levels:         all values that are possible, ascending, 0 included
    thresholds:     distances, in the order in which the percentiles were given (descending), or None
    percentiles:    those percentiles, or None
    scoring_labels: labels int64 (n,) or uint8 (n, L) from which affinity follows without `block`: equality
                    for `class`, the number of shared labels for `shared_labels`, and that number cut at 1
                    for `shared_label`; None for `distance_levels`
    """

    kind: str
    levels: tuple[int, ...]
    thresholds: tuple[float, ...] | None
    percentiles: tuple[float, ...] | None
    scoring_labels: np.ndarray | None
    _features: np.ndarray | None = field(repr=False, default=None)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Affinity of items `rows` (r,) and `columns` (c,), integer indices into the dataset: int64 (r, c).

        Each entry depends on its two items alone, not on what else is asked for. Raises ValueError for
        indices that are not 1-D integers, IndexError for items that do not exist.
        """
        rows, columns = _indices(rows, "rows"), _indices(columns, "columns")
        if self.kind == "distance_levels":
            distances = _distances(self._features, rows, columns)
            # Ascending thresholds: the first that is not below the distance, or one past the last.
            place = np.searchsorted(self.thresholds[::-1], distances, side="left")
            return np.array([*sorted(self.levels, reverse=True)], np.int64)[place]
        first, second = self.scoring_labels[rows], self.scoring_labels[columns]
        if self.kind == "class":
            return (first[:, None] == second[None, :]).astype(np.int64)
        # float32 goes through BLAS and counts exactly up to 2^24 labels.
        shared = first.astype(np.float32) @ second.astype(np.float32).T
        return (shared > 0).astype(np.int64) if self.kind == "shared_label" else shared.astype(np.int64)

    def card(self) -> dict:
        """Kind, levels, percentiles and thresholds; ready for JSON."""
        return {
            "kind": self.kind,
            "levels": list(self.levels),
            "percentiles": None if self.percentiles is None else list(self.percentiles),
            "thresholds": None if self.thresholds is None else list(self.thresholds),
        }


def check(spec: dict, description: Description) -> None:
    """Raise ValueError, of one line, for an affinity badly written or that the dataset cannot have."""
    kind = _check_spec(spec, description.label_kind)
    if kind == "distance_levels" and description.kind != "vectors":
        raise ValueError(
            "affinity: kind 'distance_levels' needs vectors; make features of these images first"
        )


def make(
    spec: dict,
    labels: np.ndarray | None,
    features: np.ndarray | None = None,
    training: np.ndarray | None = None,
    thresholds: Sequence[float] | None = None,
) -> Affinity:
    """The affinity that `spec` asks for.

    labels:   (n,) integer classes, (n, L) multi-hot of 0 and 1, or None (or (n, 0)) where there are none
    features: real (n, d), needed by `distance_levels` only, as are
    training: (t,) integer indices of the training items, t >= 2
    thresholds: those of an earlier `make` (its card has them), which saves measuring them again

    Percentiles are those of MATLAB's prctile (Hazen): the k-th of m sorted distances stands at
    100 (k - 0.5) / m, with linear interpolation between.
    Raises ValueError where spec, labels, features or training do not fit.
    """
    labels = None if labels is None else np.asarray(labels)
    if labels is None or (labels.ndim == 2 and labels.shape[1] == 0):
        label_kind = "none"
    elif labels.ndim in (1, 2) and labels.dtype.kind in "biu":
        label_kind = "classes" if labels.ndim == 1 else "multi-hot"
    else:
        raise ValueError(
            f"affinity: labels must be integers of shape (n,) or (n, L), not {labels.dtype} {labels.shape}"
        )
    kind = _check_spec(spec, label_kind)
    if kind == "class":
        return Affinity(kind, (0, 1), None, None, labels.astype(np.int64, copy=False))
    if kind in ("shared_label", "shared_labels"):
        if labels.size and (labels.min() < 0 or labels.max() > 1):
            raise ValueError("affinity: multi-hot labels must be 0 or 1")
        labels = labels.astype(np.uint8, copy=False)
        most = 1 if kind == "shared_label" else int(labels.sum(axis=1, dtype=np.int64).max(initial=0))
        return Affinity(kind, tuple(range(most + 1)), None, None, labels)

    features, training = _checked_features(features, training)
    percentiles = tuple(float(value) for value in spec["percentiles"])
    if thresholds is None:
        thresholds = _percentiles_of_distances(features, training, percentiles)
    elif len(thresholds) != len(percentiles):
        raise ValueError(f"affinity: {len(percentiles)} percentiles but {len(thresholds)} thresholds")
    thresholds = tuple(float(value) for value in thresholds)
    return Affinity(kind, (0, *spec["levels"]), thresholds, percentiles, None, features)


def _check_spec(spec: object, label_kind: str) -> str:
    kind = kind_of(spec, KINDS, "affinity")
    fitting = FITTING[label_kind]
    if kind not in fitting:
        have = {"none": "has no labels", "classes": "has classes", "multi-hot": "has multi-hot labels"}[
            label_kind
        ]
        raise ValueError(
            f"affinity: kind '{kind}' does not fit a dataset that {have}; kinds that do: {', '.join(fitting)}"
        )
    if kind != "distance_levels":
        return kind
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
    return kind


def _indices(values: np.ndarray, name: str) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and values.size):
        raise ValueError(f"affinity: {name} must be a list of row numbers, not {values.dtype} {values.shape}")
    return values.astype(np.int64, copy=False)


def _checked_features(
    features: np.ndarray | None, training: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    if features is None or training is None:
        raise ValueError(
            "affinity: kind 'distance_levels' needs the features of the dataset and its training set"
        )
    if features.ndim != 2 or features.dtype.kind not in "biuf":
        raise ValueError(
            "affinity: kind 'distance_levels' needs real vectors (n, d), "
            f"not {features.dtype} {features.shape}"
        )
    for first in range(0, len(features), ROWS_AT_ONCE):
        finite = np.isfinite(features[first : first + ROWS_AT_ONCE]).all(axis=1)
        if not finite.all():
            raise ValueError(f"affinity: features of row {first + int(np.argmin(finite))} are not finite")
    training = np.sort(_indices(training, "training"))
    if (
        len(training) < 2
        or training[0] < 0
        or training[-1] >= len(features)
        or (np.diff(training) == 0).any()
    ):
        raise ValueError(
            f"affinity: training must hold at least two distinct rows of the {len(features)} of the features"
        )
    if len(training) * (len(training) - 1) // 2 > MOST_PAIRS:
        most = int((1 + (1 + 8 * MOST_PAIRS) ** 0.5) / 2)
        raise ValueError(
            f"affinity: kind 'distance_levels' takes thresholds from at most {most} training items, "
            f"not {len(training)}"
        )
    return features, training


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
