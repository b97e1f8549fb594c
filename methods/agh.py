"""AGH: thresholded eigenvectors of a neighbourhood graph of anchors.

Liu, Wang, Kumar, Chang. Hashing with Graphs. ICML 2011. One-layer hash functions.
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base import HashingMethod, Refusal, check_settings
from methods.learners.kernels import squared_distances

_ROWS = 8192  # items whose neighbours are found at once
_MOST = 1 - 1e-3  # eigenvalues are below it


@dataclass(kw_only=True)
class AnchorGraphHashing(HashingMethod):
    r"""Bit k of x is $[z(x)^\top w_k > 0]$: z(x) are the Gaussian weights of the `neighbours` nearest of
    `anchors` k-means centres, normalised to a sum of one, and $w_k$ the k-th eigenvector of the anchor graph,
    after the constant one, extended to all items (Nystrom):

    $$
    W = \sqrt{n} \, \Lambda^{-1/2} V \Sigma^{-1/2}, \qquad
    \Lambda^{-1/2} Z^\top Z \Lambda^{-1/2} = V \Sigma V^\top, \qquad \Lambda = \mathrm{diag}(Z^\top 1)
    $$

    with Z (n, m) the weights of the training items. The kernel's width is the mean distance of an item to its
    `neighbours`-th anchor. Eigenvalues of 0.999 and more are left out, as in the MATLAB code: that of the
    constant eigenvector is 1, those of a few items that hardly hang together with the others are near it.
    That code's demo has 2 neighbours.
    """

    title = "AGH"
    paper = "https://icml.cc/2011/papers/6_icmlpaper.pdf"
    colour = "#2F4F4F"
    marker = "d"
    supervision = "none"
    family = "unsupervised"
    learned = ("anchor_items", "width", "weights")
    space = {
        "anchors": [100, 200, 300, 500, 700, 1000, 1500],
        "neighbours": [2, 3, 5, 8, 12],
    }
    bounds = {"anchors": "[1, inf)", "neighbours": "[1, inf)", "kmeans_iterations": "[1, inf)"}

    anchors: int = 300
    neighbours: int = 3
    kmeans_iterations: int = 20

    def fit(self, training_set):
        check_settings(self)
        from sklearn.cluster import KMeans

        started = time.perf_counter()
        items = training_set.items.reshape(len(training_set), -1).astype(np.float64)
        count = min(self.anchors, len(items))
        if self.neighbours > count:
            raise Refusal(f"agh: neighbours must be at most {count}, not {self.neighbours}")
        if self.bits >= count:
            raise Refusal(f"agh makes at most {count - 1} bits with {count} anchors, not {self.bits}")
        kmeans = KMeans(
            count, init="random", n_init=1, max_iter=self.kmeans_iterations, random_state=self.seed
        )
        self.anchor_items = kmeans.fit(items).cluster_centers_
        nearest = np.sqrt(np.partition(squared_distances(items, self.anchor_items), self.neighbours - 1))
        self.width = float(nearest[:, self.neighbours - 1].mean())
        if self.width <= 0:
            raise Refusal("agh needs training items that differ: most of them lie on their anchors")
        weights = self.anchor_weights(items)
        used = weights.sum(axis=0)
        roots = np.where(used > 0, 1 / np.sqrt(np.maximum(used, 1e-300)), 0)
        graph = roots[:, None] * (weights.T @ weights) * roots
        eigenvalues, vectors = np.linalg.eigh(graph)
        kept = np.flatnonzero((eigenvalues < _MOST) & (eigenvalues > 1e-10))[::-1][: self.bits]
        if len(kept) < self.bits:
            raise Refusal(f"agh finds {len(kept)} eigenvectors in the graph of these items, not {self.bits}")
        scale = np.sqrt(len(items)) / np.sqrt(eigenvalues[kept])
        self.weights = roots[:, None] * vectors[:, kept] * scale
        training_set.log(
            {
                "objective": float(np.sum(1 - eigenvalues[kept])),
                "seconds": time.perf_counter() - started,
            }
        )
        return self

    def anchor_weights(self, items):
        """Z, float64 (n, m): exp(-|x - a|^2 / width^2) of the nearest anchors, rows of sum one."""
        result = np.zeros((len(items), len(self.anchor_items)))
        for begin in range(0, len(items), _ROWS):
            distances = squared_distances(items[begin : begin + _ROWS], self.anchor_items)
            nearest = np.argpartition(distances, self.neighbours - 1, axis=1)[:, : self.neighbours]
            near = np.take_along_axis(distances, nearest, axis=1)
            # Relative to the nearest: far from all anchors every weight would underflow to zero.
            values = np.exp((near.min(axis=1, keepdims=True) - near) / self.width**2)
            values /= values.sum(axis=1, keepdims=True)
            np.put_along_axis(result[begin : begin + _ROWS], nearest, values, axis=1)
        return result

    def encode_block(self, items):
        return self.anchor_weights(items.reshape(len(items), -1)) @ self.weights > 0
