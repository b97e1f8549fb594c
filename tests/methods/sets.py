"""Training sets of vectors around the centres of classes, for tests of several methods."""

import numpy as np

from methods.base import TrainingSet
from methods.relations.pairs import Pairs


def clusters(count, dimensions, classes, spread=1.0, seed=0):
    """Vectors around class centres that do not depend on the seed, float32 (n, d), and classes int64 (n,)."""
    labels = np.arange(count) % classes
    centres = np.random.default_rng(99).normal(size=(classes, dimensions))
    vectors = centres[labels] + spread * np.random.default_rng(seed).normal(size=(count, dimensions))
    return vectors.astype(np.float32), labels


def units(count=200, dimensions=16, classes=10, spread=1.0, seed=0):
    """As `clusters`, around the mean of all and of length 1."""
    vectors, labels = clusters(count, dimensions, classes, spread, seed)
    vectors -= vectors.mean(axis=0)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), labels


def mixed(seed=0, count=200, dimensions=12, rank=None):
    """Correlated vectors, float32 (n, d), that span a part of the dimensions, but for a constant."""
    generator, rank = np.random.default_rng(seed), rank or dimensions
    vectors = generator.normal(size=(count, rank)) @ generator.normal(size=(rank, dimensions))
    return (vectors + 3).astype(np.float32)


def labelled(items, labels, affinity=None, **more):
    """A training set whose affinity is, unless it is given, 1 for a label in common, else 0."""
    affinity = np.minimum(affinity_of(labels), 1) if affinity is None else affinity
    return TrainingSet(items, block(affinity), labels=labels, **more)


def class_set(items=80, classes=4, **more):
    """Vectors (items, 12)."""
    return labelled(*clusters(items, 12, classes, spread=0.5, seed=3), **more)


def unit_set(labels, affinity=None, levels=None, has_labels=True, seed=0, **more):
    """Vectors (n, 8) of length 1; by default with the affinity that labels give, and its levels."""
    items = np.random.default_rng(seed).normal(size=(len(labels), 8))
    if labels.ndim == 1 and len(labels):
        items += 2 * np.random.default_rng(7).normal(size=(max(labels) + 1, 8))[labels]
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    affinity = affinity_of(labels) if affinity is None else affinity
    levels = tuple(np.union1d(affinity, 0).tolist()) if levels is None else levels
    given = labels if has_labels else None
    return TrainingSet(items.astype(np.float32), block(affinity), levels, given, **more)


def affinity_of(labels):
    """Same class, or the number of labels in common: int64 (n, n)."""
    if labels.ndim == 1:
        return (labels[:, None] == labels).astype(np.int64)
    return labels.astype(np.int64) @ labels.T.astype(np.int64)


def graded(labels):
    """2 within a class, 1 between the sister classes 2k and 2k + 1."""
    return affinity_of(labels) + affinity_of(labels // 2)


def from_matrix(affinity, levels=(0, 1), labels=None):
    """A training set that is nothing but its affinity."""
    affinity = np.asarray(affinity, np.int64)
    return TrainingSet(np.zeros((len(affinity), 1), np.float32), block(affinity), levels, labels)


def pairs_of(labels, share=1.0, generator=None):
    """All pairs of items, or about a share of them; similar are those of one class."""
    first, second = np.array(np.triu_indices(len(labels), 1), np.int32)
    if share < 1:
        chosen = generator.random(len(first)) < share
        first, second = first[chosen], second[chosen]
    return Pairs(len(labels), first, second, labels[first] == labels[second])


def block(affinity):
    return lambda rows, columns: affinity[np.ix_(rows, columns)]
