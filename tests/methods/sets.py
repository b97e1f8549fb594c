"""Training sets of vectors around the centres of classes, for tests of several methods."""

import numpy as np

from methods.base import TrainingSet


def clusters(count, dimensions, classes, spread=1.0, seed=0):
    """Vectors around class centres that do not depend on the seed, float32 (n, d), and classes int64 (n,)."""
    labels = np.arange(count) % classes
    centres = np.random.default_rng(99).normal(size=(classes, dimensions))
    vectors = centres[labels] + spread * np.random.default_rng(seed).normal(size=(count, dimensions))
    return vectors.astype(np.float32), labels


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


def block(affinity):
    return lambda rows, columns: affinity[np.ix_(rows, columns)]
