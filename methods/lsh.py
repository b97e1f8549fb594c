"""LSH: signs of random projections of centred items; learns nothing, the baseline of learned linear hashes.

Charikar. Similarity estimation techniques from rounding algorithms. STOC 2002.
"""

from dataclasses import dataclass

import numpy as np

from methods.learners.linear import LinearProjections


@dataclass(kw_only=True)
class LSH(LinearProjections):
    r"""Bit k of x is

    $$[w_k^\top (x - \bar{x}) > 0], \qquad w_k \sim N(0, I)$$

    with $\bar{x}$ the mean of the training items.
    """

    title = "LSH"
    paper = "https://doi.org/10.1145/509907.509965"
    colour = "#777777"
    marker = "v"
    supervision = "none"
    family = "unsupervised"

    def fit(self, training_set):
        items = training_set.items.reshape(len(training_set), -1)
        self.mean = items.mean(axis=0, dtype=np.float64).astype(np.float32)
        projections = np.random.default_rng(self.seed).standard_normal((items.shape[1], self.bits))
        self.projections = projections.astype(np.float32)
        training_set.log({"objective": None, "seconds": 0.0})
        return self
