"""1 for the k nearest database items of a query, by the distance of what methods see, else 0.

The relevance of papers on approximate nearest neighbours: it needs no labels. Distances are those of the
vectors under the protocol, or of what a network makes of images; k is part of the protocol. All items at the
distance of the k-th are relevant, so that a query has k of them or, where distances tie, more. Distances are
compared in float64, each summed over differences on its own: items that are equal tie exactly.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from datasets.affinity import Inputs
from datasets.affinity._listed import ListedAffinity
from datasets.specification import positive
from tiebench.messages import did_you_mean

DISTANCES = ("euclidean", "cosine")
_LARGE = 1e12
_DISTANCES_AT_ONCE = 1 << 25  # float32: 128 MB
_DATABASE_VALUES = 1 << 24  # of the database, copied at once


class Neighbours(ListedAffinity):
    """k, distance: of the specification."""

    needs: ClassVar = {"k": "number of nearest database items that are relevant, as 10 or 100"}
    options: ClassVar = {"distance": "euclidean (default) or cosine"}
    from_features = True

    k: int
    distance: str
    _listed: list[np.ndarray]
    _features: np.ndarray

    @classmethod
    def check_values(cls, spec: Mapping) -> None:
        positive(spec["k"], "affinity: key 'k'")
        if (distance := spec.get("distance", DISTANCES[0])) not in DISTANCES:
            raise ValueError(f"affinity: unknown distance {distance!r}{did_you_mean(distance, DISTANCES)}")

    @classmethod
    def make(cls, spec: Mapping, inputs: Inputs) -> "Neighbours":
        features, k, distance = inputs.features, spec["k"], spec.get("distance", DISTANCES[0])
        if features is None or inputs.query is None or inputs.database is None:
            raise ValueError(
                "affinity: kind 'neighbours' needs the features of the dataset, its queries and its database"
            )
        if k > len(inputs.database):
            raise ValueError(f"affinity: k is {k}, and the database has only {len(inputs.database)} items")
        if inputs.measured is None:
            listed = nearest(features, inputs.query, inputs.database, k, distance)
        else:
            listed = [np.array(items, np.int64) for items in inputs.measured["neighbours"]]
            if (inputs.measured["k"], inputs.measured["distance"]) != (k, distance) or len(listed) != len(
                inputs.query
            ):
                raise ValueError(
                    "affinity: affinity.json holds the neighbours of another k, distance or split: delete it "
                    "to measure them again"
                )
        query = np.repeat(inputs.query, [len(items) for items in listed])
        found = np.concatenate(listed)
        made = cls(query, found, np.ones(len(found), np.int64), len(features))
        made.k, made.distance, made._listed, made._features = k, distance, listed, features
        return made

    def among(self, query: np.ndarray, database: np.ndarray) -> "Neighbours":
        inputs = Inputs(features=self._features, query=query, database=database)
        return self.make({"k": self.k, "distance": self.distance}, inputs)

    def metadata(self) -> dict:
        listed = [items.tolist() for items in self._listed]
        return super().metadata() | {"k": self.k, "distance": self.distance, "neighbours": listed}


def nearest(
    features: np.ndarray, query: np.ndarray, database: np.ndarray, k: int, distance: str = DISTANCES[0]
) -> list[np.ndarray]:
    """Items of the database that are no further from each query than its k-th nearest: int64 (>= k,) each.

    features: real (n, d); query, database: items, int64; k: at most len(database). distance: "euclidean", or
    "cosine", the Euclidean distance of unit vectors (an item of length 0 stays 0).
    """
    # Matrix products in float32 find candidates; within their largest possible error, float64 decides.
    step = max(1, _DISTANCES_AT_ONCE // len(database))
    width = max(1, _DATABASE_VALUES // features.shape[1])
    # Squares of larger values would leave float32.
    peak = float(np.abs(features).max(initial=0))
    scale = 1.0 if peak < _LARGE else peak
    epsilon = (features.shape[1] + 8) * float(np.finfo(np.float32).eps)
    found = []
    for begin in range(0, len(query), step):
        rows = query[begin : begin + step]
        queries = _vectors(features, rows, distance, scale)
        single = queries.astype(np.float32)
        square = np.square(queries).sum(axis=1)
        near = np.empty((len(rows), len(database)), np.float32)
        error = np.zeros(len(rows))
        for first in range(0, len(database), width):
            items = _vectors(features, database[first : first + width], distance, scale)
            squares = np.square(items).sum(axis=1)
            part = near[:, first : first + width]
            np.matmul(single, items.astype(np.float32).T, out=part)
            part *= -2
            part += squares.astype(np.float32)
            np.maximum(error, square + squares.max(), out=error)
        for place, row in enumerate(near):
            bound = np.partition(row, k - 1)[k - 1] + 4 * epsilon * error[place]
            candidates = database[row <= bound]
            differences = _vectors(features, candidates, distance, scale) - queries[place]
            exact = np.square(differences).sum(axis=1)
            found.append(candidates[exact <= np.partition(exact, k - 1)[k - 1]])
    return found


def _vectors(features: np.ndarray, rows: np.ndarray, distance: str, scale: float) -> np.ndarray:
    """Rows as float64 (r, d), divided by `scale`, of unit length for the cosine distance."""
    vectors = features[rows].astype(np.float64)
    if scale != 1:
        vectors /= scale
    if distance == DISTANCES[1]:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
    return vectors
