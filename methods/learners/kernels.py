"""Gaussian kernel functions of anchors, and the methods whose hash functions are linear in them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from methods.base import HashingMethod, Refusal

_ROWS = 2048  # items whose kernel values are computed at once


def squared_distances(items, anchors):
    """Squared Euclidean distances of items (n, d) and anchors (m, d): float64 (n, m), none negative."""
    items, anchors = np.asarray(items, np.float64), np.asarray(anchors, np.float64)
    distances = items @ anchors.T
    distances *= -2
    distances += np.einsum("ij,ij->i", items, items)[:, None]
    distances += np.einsum("ij,ij->i", anchors, anchors)
    return np.maximum(distances, 0, out=distances)


def gaussian_kernel(items, anchors, variance):
    """exp(-|x - a|^2 / (2 variance)) of items (n, d) and anchors (m, d): float64 (n, m)."""
    values = squared_distances(items, anchors)
    values /= -2 * variance
    return np.exp(values, out=values)


def draw_anchors(items, count, generator):
    """`count` different items, all of them where there are fewer: float64 (m, d)."""
    rows = generator.choice(len(items), min(count, len(items)), replace=False)
    return np.asarray(items[np.sort(rows)], np.float64)


def mean_squared_distance_to(items, anchors, name):
    """Mean of |x - a|^2 over items (n, d) and anchors (m, d).

    Raises `Refusal` where it is zero: all items are the same point, and a kernel of this width is undefined.
    """
    mean = float(squared_distances(items, anchors).mean())
    scale = float(np.square(items).sum(axis=1).max())
    if mean <= 1e-12 * scale:
        raise Refusal(f"{name} needs training items that differ: a kernel of their distances has no width")
    return mean


def ridge_regression(inputs, targets, penalty):
    """W (m, k) that minimises |inputs W - targets|^2 + penalty |W|^2; inputs (n, m), targets (n, k).

    Solved by Cholesky factorisation of inputs' inputs + penalty I, penalty > 0.
    """
    from scipy.linalg import cho_factor, cho_solve

    gram = inputs.T @ inputs
    gram[np.diag_indices_from(gram)] += penalty
    return cho_solve(cho_factor(gram, lower=True, overwrite_a=True), inputs.T @ targets)


@dataclass(kw_only=True)
class KernelHashing(HashingMethod):
    """Bit k of x is [sum_a weights_ak K(x, a) > thresholds_k], K a Gaussian kernel.

    `fit` sets `anchor_items` float64 (m, d), `variance` of `gaussian_kernel`, `weights` (m, bits) and
    `thresholds` (bits,).
    """

    learned: ClassVar[tuple[str, ...]] = ("anchor_items", "variance", "weights", "thresholds")

    if TYPE_CHECKING:  # `fit` of each method sets what `learned` names

        def __getattr__(self, name: str) -> np.ndarray: ...

    def encode_block(self, items):
        items = items.reshape(len(items), -1)
        codes = np.empty((len(items), self.bits), bool)
        for begin in range(0, len(items), _ROWS):
            values = gaussian_kernel(items[begin : begin + _ROWS], self.anchor_items, self.variance)
            codes[begin : begin + _ROWS] = values @ self.weights > self.thresholds
        return codes
