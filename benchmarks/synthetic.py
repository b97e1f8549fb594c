"""Synthetic codes that look like trained ones: every class or label has a prototype, and bits are flipped."""

from dataclasses import dataclass

import numpy as np

from tiebench.affinities import EqualLabels, SharedLabels
from tiebench.codes.packing import pack

FLIPPED = 0.1  # share of the bits that differ from the prototype


@dataclass(frozen=True)
class Shape:
    """Sizes of an evaluation: queries, database items, and classes or (multi-hot) labels."""

    name: str
    queries: int
    items: int
    labels: int
    multi_hot: bool = False


IMAGENET100 = Shape("ImageNet100", 5000, 128503, 100)
CIFAR10_S1 = Shape("CIFAR-10 S1", 1000, 59000, 10)
NUS21 = Shape("NUS-WIDE 21", 2100, 193734, 21, multi_hot=True)


@dataclass(frozen=True)
class Codes:
    """query, database: packed codes uint8 (Q or N, ceil(b / 8)); the labels: int64 (n,) or uint8 (n, L)."""

    shape: Shape
    bits: int
    query: np.ndarray
    database: np.ndarray
    query_labels: np.ndarray
    database_labels: np.ndarray

    @property
    def affinity(self):
        kind = SharedLabels if self.shape.multi_hot else EqualLabels
        return kind(self.query_labels, self.database_labels)

    @property
    def pairs(self):
        return len(self.query) * len(self.database)


def codes(shape, bits, seed=0):
    """Draw the codes of a shape."""
    rng = np.random.default_rng(seed)
    prototypes = rng.standard_normal((shape.labels, bits), np.float32)
    popularity = np.geomspace(0.4, 0.02, shape.labels)  # about two labels an item, as in NUS-WIDE

    def draw(number):
        if shape.multi_hot:
            labels = (rng.random((number, shape.labels), np.float32) < popularity).astype(np.uint8)
            labels[np.arange(number), rng.integers(0, shape.labels, number)] = 1
            ones = labels.astype(np.float32) @ prototypes > 0
        else:
            labels = rng.integers(0, shape.labels, number)
            ones = prototypes[labels] > 0
        ones ^= rng.random(ones.shape, np.float32) < FLIPPED
        return pack(ones), labels

    query, query_labels = draw(shape.queries)
    database, database_labels = draw(shape.items)
    return Codes(shape, bits, query, database, query_labels, database_labels)
