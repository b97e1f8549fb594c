"""ITQ: rotate the leading principal components so that rounding them to signs loses least.

Gong, Lazebnik. Iterative Quantization: A Procrustean Approach to Learning Binary Codes. CVPR 2011.
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base import check_settings
from methods.learners.linear import LinearProjections, principal_components


@dataclass(kw_only=True)
class ITQ(LinearProjections):
    r"""Minimises, over codes B in $\{-1, +1\}$ and rotations R,

    $$\|B - V R\|^2$$

    with V (n, b) the centred items on their leading principal components. Codes are sgn(V R).

    iterations: alternations of B = sign(V R) and the orthogonal Procrustes problem for R."""

    title = "ITQ"
    paper = "https://doi.org/10.1109/CVPR.2011.5995432"
    colour = "#AA4499"
    marker = "X"
    supervision = "none"
    family = "unsupervised"
    bounds = {"iterations": "[0, inf)"}

    iterations: int = 50

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        self.mean, items, leading, _ = principal_components(
            training_set.items.reshape(len(training_set), -1), self.bits, "itq"
        )
        projected = items @ leading
        random = np.random.default_rng(self.seed).standard_normal((self.bits, self.bits))
        rotation = np.linalg.qr(random)[0]
        for iteration in range(self.iterations):
            rotated = projected @ rotation
            codes = np.where(rotated > 0, 1.0, -1.0)
            training_set.log(
                {
                    "iteration": iteration + 1,
                    "objective": float(np.mean((codes - rotated) ** 2)),
                    "seconds": time.perf_counter() - started,
                }
            )
            left, _, right = np.linalg.svd(codes.T @ projected)
            rotation = (left @ right).T
        self.projections = leading @ rotation
        return self
