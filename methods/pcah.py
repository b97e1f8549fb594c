"""PCAH: signs of the leading principal components.

Wang, Kumar, Chang. Semi-Supervised Hashing for Scalable Image Retrieval. CVPR 2010 (a
baseline of it).
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.learners.linear import LinearProjections, principal_components


@dataclass(kw_only=True)
class PCAH(LinearProjections):
    r"""Bit k of x is

    $$[w_k^\top (x - \bar{x}) > 0]$$

    with $\bar{x}$ the mean of the training items and $w_k$ the eigenvector of their covariance with the k-th
    largest eigenvalue.
    """

    title = "PCAH"
    paper = "https://doi.org/10.1109/CVPR.2010.5539994"
    colour = "#B8860B"
    marker = "v"
    supervision = "none"
    family = "unsupervised"

    def fit(self, training_set):
        started = time.perf_counter()
        self.mean, centred, self.projections, variances = principal_components(
            training_set.items.reshape(len(training_set), -1), self.bits, "pcah"
        )
        explained = float(variances.sum() * len(centred) / np.vdot(centred, centred))
        training_set.log(
            {"objective": None, "explained_variance": explained, "seconds": time.perf_counter() - started}
        )
        return self
