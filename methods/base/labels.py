"""Labels of a training set as the methods that learn from them want them."""

import numpy as np

from methods.base import Refusal


def single_labels(training_set, name):
    """(class of each item as its place among `classes`, int64 (n,); classes, ascending).

    Raises `Refusal`, naming the method, for items with several labels or none, and for a single class.
    """
    labels = training_set.labels
    if labels is None:
        raise Refusal(f"{name} learns from labels, and this training set has none")
    if labels.ndim == 2:
        raise Refusal(f"{name} has no form for items with several labels")
    classes, places = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise Refusal(f"{name} needs at least two classes, the training set has one")
    if len(classes) == len(labels):
        raise Refusal(f"{name} learns what items of a class share: here every item has a class of its own")
    return places.astype(np.int64), classes


def label_matrix(training_set, name):
    """Indicators of the labels, float64 (n, C): one per row for single labels, multi-hot for several.

    Labels that no training item has are left out. Raises `Refusal`, naming the method, where there is none.
    """
    labels = training_set.labels
    if labels is None or labels.ndim == 1:
        places, classes = single_labels(training_set, name)
        return np.eye(len(classes))[places]
    used = labels[:, labels.any(axis=0)].astype(np.float64)
    if used.shape[1] == 0:
        raise Refusal(f"{name} learns from labels, and no training item has any")
    if used.sum(axis=0).max() < 2:
        raise Refusal(f"{name} learns what items of a label share: here every label has one item")
    return used
