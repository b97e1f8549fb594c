"""Training sets of vectors around the centres of classes, for tests of several methods."""

import numpy as np

from methods.base import TrainingSet


def class_set(items=80, classes=4, several=False, **more):
    """Vectors (items, 12); with `several`, each item has the label of the next class too."""
    labels = np.arange(items) % classes
    vectors = np.random.default_rng(9).normal(size=(classes, 12))[labels]
    vectors = vectors + 0.5 * np.random.default_rng(3).normal(size=(items, 12))
    if several:
        kinds = np.eye(classes, dtype=np.uint8)
        labels = kinds[labels] | kinds[(labels + 1) % classes]
    affinity = np.minimum(affinity_of(labels), 1)
    return TrainingSet(vectors.astype(np.float32), block(affinity), labels=labels, **more)


def unit_set(labels, affinity=None, levels=None, labelled=True, seed=0, **more):
    """Vectors (n, 8) of length 1; by default with the affinity that labels give, and its levels."""
    items = np.random.default_rng(seed).normal(size=(len(labels), 8))
    if labels.ndim == 1 and len(labels):
        items += 2 * np.random.default_rng(7).normal(size=(max(labels) + 1, 8))[labels]
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    affinity = affinity_of(labels) if affinity is None else affinity
    levels = tuple(np.union1d(affinity, 0).tolist()) if levels is None else levels
    given = labels if labelled else None
    return TrainingSet(items.astype(np.float32), block(affinity), levels, given, **more)


def affinity_of(labels):
    """Same class, or the number of labels in common: int64 (n, n)."""
    if labels.ndim == 1:
        return (labels[:, None] == labels).astype(np.int64)
    return labels.astype(np.int64) @ labels.T.astype(np.int64)


def block(affinity):
    return lambda rows, columns: affinity[np.ix_(rows, columns)]
